"""The history of a run: its series, the orders for it, the instances that it used, its failures in groups.

DescribeHistory's body, in pages over the instances. Everything else is on the first page.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from argosy import layout
from argosy.api import reading
from argosy.api.cluster.timeline import history_between, order_view
from argosy.api.history.attempts import History
from argosy.api.views import failure_groups_view, iso
from argosy.model.cluster_history import PlacedOrder
from argosy.model.history_parts import instance_facts
from argosy.model.packing import Unreadable
from argosy.model.series import Sample, Series
from argosy.model.stored import documents
from argosy.ports import ItemsUnreadable

JSON = dict[str, Any]
MOST_INSTANCES = 4_000  # of a page: 1,100 bytes each with 16 GPUs, and Lambda answers with 6 MB at most
MOST_ORDERS = 1_000  # the last ones
_COUNTS = ("queued", "starting", "running", "succeeded", "failed", "cancelled", "instances")
_SPENT = {
    "useful": "useful",
    "boot": "boot",
    "idle": "idle",
    "redone": "redone",
    "failed": "failed_usd",
    "displaced": "displaced",
}


def history_page(past: History, version: int, after: str | None, now: float) -> tuple[JSON, str | None]:
    """DescribeHistory's body without the token, and the instance after which the next page begins; None = that was
    all. after: the last instance of the page before."""
    record, used = past.record, instances_of(past)
    view: JSON = {"runId": record.id, "asOf": version, "origin": record.submitted_at}
    view["instances"], following = instance_page(used, after)
    if after is None:
        view["instancesLeftOut"] = max(0, record.instance_count - len(used))
        view["series"] = _series_view(_series_of(past))
        view |= _orders_view(past, list(used.values()), now)
        view["failures"] = failure_groups_view(record)
        view["damaged"] = len(past.damaged)
    return view, following


def instance_page(used: Mapping[str, JSON], after: str | None) -> tuple[list[JSON], str | None]:
    """The next MOST_INSTANCES of them, by id, and the last of these; None = that was all."""
    names = [name for name in sorted(used) if after is None or name > after]
    shown = names[:MOST_INSTANCES]
    return [_instance_view(used[name]) for name in shown], shown[-1] if len(names) > len(shown) else None


def _series_of(past: History) -> Series:
    """Empty without a readable series."""
    body = past.store.read((documents.run_partition(past.record.id), documents.SERIES))
    try:
        return Series() if body is None else Series.unpack(body)
    except Unreadable:
        past.damaged.add(documents.SERIES)
        return Series()


def _series_view(series: Series) -> JSON:
    """Lists of one length; `at` in epoch seconds, money in USD spent until then."""
    columns = dict(zip(Sample._fields, map(list, zip(*series.samples, strict=True)), strict=False))
    columns = {name: columns.get(name, []) for name in Sample._fields}
    return {
        "intervalSeconds": series.interval_s,
        "at": columns["at"],
        **{name: columns[name] for name in _COUNTS},
        "usdPerHour": columns["usd_per_hour"],
        "onDemandUsd": columns["on_demand"],
        "cost": {kind: columns[name] for kind, name in _SPENT.items()},
    }


def instances_of(past: History) -> dict[str, JSON]:
    """By id, the instances that the run has used: from the cluster's state, else from the record written at the run's
    close."""
    state, record = reading.cluster(past.store)[0], past.record
    found = {name: instance_facts(state.instances[name]) for name in record.instances if name in state.instances}
    if len(found) < record.instance_count and (record.has_ended or record.retries):
        found = _noted_at_the_end(past) | found
    return found


def _noted_at_the_end(past: History) -> dict[str, JSON]:
    try:
        noted = json.loads(past.objects.fetch(layout.instances_uri(past.record.output)))["instances"]
        return {each["id"]: each for each in noted}
    except ItemsUnreadable:  # it is gone, as results may be
        return {}
    except (ValueError, KeyError, TypeError):
        past.damaged.add("instances")
        return {}


def _instance_view(facts: Mapping[str, Any]) -> JSON:
    """One of `instances` of the body."""
    return {**facts, **{name: iso(facts[name]) for name in ("launchedAt", "registeredAt", "warnedAt", "endedAt")}}


def _orders_view(past: History, used: Sequence[JSON], now: float) -> JSON:
    """The purchases while tasks of the run had no place. delivered: how many instances of the run were launched in
    the pool since, and before the next order there."""
    record = past.record
    if not record.submitted_at:
        return {"orders": [], "ordersLeftOut": 0}
    history = history_between(past.store, record.submitted_at, record.stopped_at or now)
    past.damaged.update(f"order {number}" for number in range(history.damaged))
    orders = [each for each in history.orders if record.number in each.runs]
    delivered = _delivered(orders, used)
    views = [{**order_view(each), "delivered": count} for each, count in zip(orders, delivered, strict=True)]
    return {"orders": views[-MOST_ORDERS:], "ordersLeftOut": max(0, len(views) - MOST_ORDERS)}


def _delivered(orders: Sequence[PlacedOrder], used: Sequence[JSON]) -> list[int]:
    launched: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for each in used:
        launched[f"{each['cell']}/{each['type']}/{each['zone']}", each["purchase"]].append(each["launchedAt"])
    for times in launched.values():
        times.sort()
    following: dict[tuple[str, str], int] = {}  # where in `launched` the next order of the pool begins
    counts = []
    for order in reversed(orders):
        place = order.pool, order.purchase
        times = launched[place]
        begin = bisect_left(times, order.at)
        counts.append(following.get(place, len(times)) - begin)
        following[place] = begin
    return counts[::-1]
