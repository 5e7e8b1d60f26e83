"""DescribeCluster, ScaleCluster and DrainInstance: the cluster as it is, the size that is kept, instances that drain.

Both changes are requests to the controller, like any other. A size that could never be kept is refused at once.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.api import reading, requests
from argosy.api.cluster.gpu_devices import show_devices
from argosy.api.cluster.headroom import headroom_view
from argosy.api.cluster.timeline import history_of
from argosy.api.cluster.views import at_work_rows, cluster_view, floor_view
from argosy.api.refusals import throttled
from argosy.api.request_context import Actions, RequestContext
from argosy.api.views import iso
from argosy.catalogue.lookup import load_catalogue
from argosy.lifecycle.cluster_history import sample_of
from argosy.model import inbox
from argosy.model.host_care import DrainRequest
from argosy.model.inbox import ScaleRequest
from argosy.model.instances import InstanceStatus
from argosy.model.moment import Moment
from argosy.model.pools import Floor
from argosy.model.state import State
from argosy.ports import AlreadyExists
from argosy.spec.faults import Fault, SpecError
from argosy.spec.fields import RUN_LIMIT_S

JSON = dict[str, Any]
ATTEMPTS_SHOWN = 150_000  # 14 bytes each, and a third more in base64: 2.8 MB
ENDED_SHOWN = 5_000  # instances; a deployment has at most 10,000 that are alive
WITHOUT_WORK_SHOWN = 500  # instances
OBJECTS_SHOWN = 12_000  # instances as objects
OBJECTS_BESIDE = 3_000  # the same; the work on them and the history take 4.3 MB
_NAMES: Mapping[str, Callable[[JSON], str]] = {
    "type": lambda each: each["instanceType"],
    "zone": lambda each: each["availabilityZone"],
    "pool": lambda each: f"{each['cell']}/{each['instanceType']}/{each['availabilityZone']}",
    "purchase": lambda each: each["purchase"],
    "status": lambda each: each["status"],
}
_SHARES = {"cpuUsed": "cpu", "memoryUsed": "memory", "gpuUsed": "gpus"}
TRIES = 10
LONGEST_DRAIN_S = 7 * 86_400.0  # a draining instance costs money all the time


def _describe_cluster(context: RequestContext, request: requests.DescribeCluster, request_id: str) -> dict[str, Any]:
    state, run_ids = reading.cluster(context.store)
    records = reading.by_number(context.store, run_ids)
    needs = {number: record.needs for number, record in records.items()}
    left_out = leave_out_ended(state)
    view: JSON = {"cluster": context.cluster, "cells": list(context.cells)}
    view |= cluster_view(state, needs, context.now(), context.policy)
    view["headroom"] = None
    if context.policy.headroom:
        view["headroom"] = headroom_view(Moment(context.whole_state(), load_catalogue(), context.now(), context.policy))
    show_devices(view["instances"], state, needs)
    if "attempts" in request.include:
        view["attempts"] = at_work(state, {number: record.id for number, record in records.items()})
    if "history" in request.include:
        counts = [record.counts for record in records.values()]
        view["history"] = history_of(context.store, request, sample_of(state, context.now(), counts, needs))
    return in_form({**view, "endedLeftOut": left_out}, request.form)


def _scale(context: RequestContext, request: requests.ScaleCluster, request_id: str) -> dict[str, Any]:
    now = context.now()
    if faults := list(_faults(context, request, now)):
        raise SpecError(faults)
    types = tuple(sorted({*request.instance_types})) if request.instances else ()
    asked = ScaleRequest(now, request.instances, types, (request.until or 0.0) if request.instances else 0.0)
    _put(context, asked, "cluster#scale")
    context.wake.controller()
    return {"floor": floor_view(Floor(asked.instances, types, asked.until, now))}


def _drain(context: RequestContext, request: requests.DrainInstance, request_id: str) -> dict[str, Any]:
    now = context.now()
    instance = reading.cluster(context.store)[0].instances.get(request.instance_id)
    if instance is None or instance.status not in (InstanceStatus.ACTIVE, InstanceStatus.DRAINING):
        status = f"it is {instance.status}" if instance else "no instance of this deployment has this id"
        sentence = f"{status}: give an instance that is ACTIVE or DRAINING, as argosy instances shows"
        raise SpecError([Fault("instanceId", sentence)])
    if request.until is not None and not now < request.until <= now + LONGEST_DRAIN_S:
        raise SpecError(
            [Fault("until", f"must be in the future and at most {LONGEST_DRAIN_S / 86_400:.0f} days ahead")]
        )
    _put(context, DrainRequest(now, instance.id, request.until or now), f"cluster#drain#{instance.id}")
    context.wake.controller()
    return {"instanceId": instance.id, "drainUntil": iso(request.until) if request.until else None}


def _put(context: RequestContext, asked: ScaleRequest | DrainRequest, name: str) -> None:
    for again in range(TRIES):
        place = inbox.inbox_key(asked.requested_at, f"{name}#{again}")
        try:
            context.store.create({(inbox.INBOX, place): inbox.to_bytes(asked)})
        except AlreadyExists:
            continue  # a concurrent request: the later one counts
        return
    raise throttled("too many requests are changing the cluster: try again")


def _faults(context: RequestContext, request: requests.ScaleCluster, now: float) -> Iterator[Fault]:
    most = context.policy.max_instances
    if request.instances > most:
        yield Fault("instances", f"must be at most maxInstances of the deployment, {most}")
    deployed = {kind for _, kind, _ in context.fleets}
    deployed |= {pool.instance_type for pool in reading.cluster(context.store)[0].pools.values()}
    for place, name in enumerate(request.instance_types):
        if name not in deployed:
            known = ", ".join(sorted(deployed)) or "none"
            yield Fault(f"instanceTypes[{place}]", f"this deployment has no fleet of {name}; it has: {known}")
    latest = now + RUN_LIMIT_S
    if request.until is not None and request.until > latest:
        end = f"the latest time is {iso(latest, 'seconds')} ({latest:.0f}), {RUN_LIMIT_S // 86_400} days from now"
        yield Fault("until", f"{request.until:.15g} s after 1970 is too late: {end}")
    if request.until is not None and request.until <= now:
        yield Fault("until", f"{iso(request.until)} is in the past: give a later time, or instances: 0 to keep none")


def leave_out_ended(state: State) -> int:
    """Drops all ended instances but the last ENDED_SHOWN; returns how many were dropped."""
    ended = sorted((each for each in state.instances.values() if not each.alive), key=lambda each: each.stopped_at)
    dropped = ended[: max(0, len(ended) - ENDED_SHOWN)]
    for each in dropped:
        del state.instances[each.id]
    return len(dropped)


def in_form(cluster: JSON, form: str) -> JSON:
    """DescribeCluster's body in the requested form. Raises SpecError if that would be too large a reply."""
    if form == "columns":
        return in_columns(cluster)
    most = OBJECTS_BESIDE if cluster.keys() & {"attempts", "history"} else OBJECTS_SHOWN
    if (count := len(cluster["instances"])) > most:
        sentence = f"a reply with {count:,} instances as objects is too large: ask for columns, or use ListInstances"
        sentence += ", as argosy instances does"
        raise SpecError([Fault("form", sentence)])
    return cluster


def in_columns(cluster: JSON) -> JSON:
    """DescribeCluster's body with its instances as columns of one length.

    `data` is base64 of little-endian numbers of `dtype`; where there are `values`, of rows in them. The shares in use
    are 0..1, or not a number if an instance has none of the resource; ids are 19 bytes each, filled up with zeros.
    `withoutWork`: the instances that get no new tasks, such as drained ones. `sharedGpus`: those on which tasks share a
    GPU, with their devices.
    """
    instances: Sequence[JSON] = cluster["instances"]
    columns = {"id": _column(np.array([each["instanceId"] for each in instances], dtype="S19"))}
    columns |= {name: _names([of(each) for each in instances]) for name, of in _NAMES.items()}
    for name, source in (("usdPerHour", "priceUsdPerHour"), ("onDemandUsdPerHour", "onDemandUsdPerHour")):
        columns[name] = _column(np.array([each[source] for each in instances], dtype="<f8"))
    for name, source in _SHARES.items():
        columns[name] = _column(np.array([_share(each[source]) for each in instances], dtype="<f4"))
    columns["tasks"] = _column(np.array([each["tasks"] for each in instances], dtype="<u4"))
    idle = [each for each in instances if each.get("noWorkBecause") and each["status"] != "GONE"][:WITHOUT_WORK_SHOWN]
    shown = ("instanceId", "instanceType", "availabilityZone", "tasks", "noWorkBecause")
    without_work = [{name: each[name] for name in shown} for each in idle]
    shared = [{name: each[name] for name in ("instanceId", "gpuDevices")} for each in instances if "gpuDevices" in each]
    columns_view = {"rows": len(instances), "columns": columns}
    return {
        **cluster,
        "instances": columns_view,
        "withoutWork": without_work,
        "sharedGpus": shared[:WITHOUT_WORK_SHOWN],
    }


def at_work(state: State, run_ids: Mapping[int, str], most: int = ATTEMPTS_SHOWN) -> JSON:
    """DescribeCluster's `attempts`: the work on the instances, in the order of the reply's instances.

    instance: its row among the instances. run: of `values`. gpuMask: bit j is the j-th GPU of the instance. left: how
    many others there are. run_ids: by the run's number; attempts of other runs are left out.
    """
    table, place = state.attempts, {name.encode(): row for row, name in enumerate(state.instances)}
    rows = at_work_rows(state)
    where = np.array([place.get(name, -1) for name in table["instance"][rows].tolist()], dtype="<i8")
    shown = (where >= 0) & np.isin(table["run"][rows], sorted(run_ids))
    rows, where = rows[shown], where[shown]
    order = np.lexsort((table["index"][rows], where))
    kept, numbers = rows[order][:most], sorted(run_ids)
    run = np.searchsorted(numbers, table["run"][kept]).astype("<u2")
    columns = {
        "instance": _column(where[order][:most].astype("<u4")),
        "run": {**_column(run), "values": [run_ids[number] for number in numbers]},
        "index": _column(table["index"][kept].astype("<u4")),
        "gpuMask": _column(table["gpu_mask"][kept].astype("<u4")),
    }
    return {"rows": len(kept), "left": len(rows) - len(kept), "columns": columns}


def _share(amount: JSON) -> float:
    return amount["used"] / amount["total"] if amount["total"] else float("nan")


def _names(names: Sequence[str]) -> JSON:
    values = sorted(set(names))
    row = {name: number for number, name in enumerate(values)}
    return {**_column(np.array([row[name] for name in names], dtype="<u2")), "values": values}


def _column(values: NDArray[Any]) -> JSON:
    return {"dtype": values.dtype.str, "data": base64.b64encode(values.tobytes()).decode()}


ACTIONS: Actions = {
    requests.DescribeCluster: _describe_cluster,
    requests.ScaleCluster: _scale,
    requests.DrainInstance: _drain,
}
