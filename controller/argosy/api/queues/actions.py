"""ApplySharing and DescribeSharing: how the cluster is shared, and the most that queues may be guaranteed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import inf
from typing import Any, Literal

from pydantic import Field, model_validator

from argosy.api.admission.specs import DeploymentLimits
from argosy.api.queues.in_force import in_force
from argosy.api.refusals import RequestRefused, conflict, not_found, throttled
from argosy.api.request_context import Actions, RequestContext
from argosy.api.views import iso
from argosy.catalogue.lookup import load_catalogue
from argosy.catalogue.quotas import quota_key
from argosy.model import inbox
from argosy.model.damage import FAULTS
from argosy.model.inbox import SharingRequest
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.pools import as_registered
from argosy.model.resources import CPU_UNITS_PER_VCPU
from argosy.model.sharers import queue_of_run
from argosy.model.shares.sharing import UNITS, Sharing
from argosy.model.state import State
from argosy.ports import AlreadyExists
from argosy.spec.faults import SpecError
from argosy.spec.fields import Strict, refused
from argosy.spec.sharing import Limit, parse_sharing, promised_too_much

JSON = dict[str, Any]
TRIES = 10
NAMED = 10  # runs in warnings


class ApplySharing(Strict):
    """Put a sharing document into force: `document`, or the one that the revision `restore` had. revision: the one that
    it follows, 0 = there was none; by default the one in force. `warnings` in the reply name open runs of which no
    further task could start."""

    action: Literal["ApplySharing"]
    document: dict[str, Any] | None = None
    restore: int | None = Field(default=None, ge=1)
    revision: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_of_them(self) -> ApplySharing:
        if (self.document is None) == (self.restore is None):
            raise refused("give document or restore, and not both")
        return self


class DescribeSharing(Strict):
    """The queues: their shares, their use, and the runs that wait in them."""

    action: Literal["DescribeSharing"]


def _apply(context: RequestContext, request: ApplySharing, request_id: str) -> JSON:
    now, known = context.now(), in_force(context)
    limits = limits_of_guarantees(context.limits, context.policy)
    if request.document is not None:
        document: Mapping[str, Any] = parse_sharing(request.document, limits)
    else:
        document = _earlier(known, request.restore)
        if faults := list(promised_too_much(document, limits)):  # the deployment may have become smaller since
            raise SpecError(faults)
    base = known.revision if request.revision is None else request.revision
    if base != known.revision:
        raise conflict(f"revision {known.revision} is in force now, not {base}: read it, then apply your change to it")
    body = inbox.to_bytes(SharingRequest(document, base, now))
    for again in range(TRIES):
        with suppress(AlreadyExists):  # a concurrent request: the first one counts
            context.store.create({(inbox.INBOX, inbox.inbox_key(now, f"sharing#{again}")): body})
            context.wake.controller()
            return {"revision": base + 1, "document": document, "warnings": _shut_out(context, document)}
    raise throttled("another document is being applied: try again")


def _shut_out(context: RequestContext, document: Mapping[str, Any]) -> list[str]:
    """The open runs of which no further task can start under the document. While the state is unreadable, none is
    known."""
    from argosy.scheduler.buying.whole_limits import WholeLimits  # loads placement, as below

    try:
        state = context.whole_state()
    except (*FAULTS, RequestRefused):
        return []
    state.sharing = state.sharing.with_document(document, context.now())
    moment = Moment(state, as_registered(load_catalogue(), state.pools.values()), context.now(), context.policy)
    limits, minutes = WholeLimits(moment), context.policy.unaffordable_patience_s / 60
    open_runs = [run for run in state.runs.values() if not (run.complete or run.halted)]
    told = [f"{run.id}: {why}" for run in open_runs if (why := limits.exceeded(run))]
    more = [f"{len(told) - NAMED} more open runs cannot continue either"] if len(told) > NAMED else []
    return [f"{each}; it ends after {minutes:.0f} minutes without work" for each in told[:NAMED]] + more


def _earlier(known: Sharing, revision: int | None) -> Mapping[str, Any]:
    kept = [each for each in (known.latest, *known.earlier) if each is not None]
    found = next((each for each in kept if each.revision == revision), None)
    if found is None:
        names = ", ".join(str(each.revision) for each in kept) or "none"
        raise not_found(f"revision {revision} is not kept; kept: {names}")
    return found.document


def _describe(context: RequestContext, request: DescribeSharing, request_id: str) -> JSON:
    from argosy.scheduler.turns.queue_views import (  # loads placement: only this action needs it
        quotas_by_queue,
        use_of_queues,
    )

    state = context.whole_state()
    moment = Moment(state, as_registered(load_catalogue(), state.pools.values()), context.now(), context.policy)
    latest = state.sharing.latest
    owners = _owners(state)
    limit, alive = state.sharing.usd_per_hour, (each for each in state.instances.values() if each.alive)
    return {
        "revision": state.sharing.revision,
        "usdPerHour": {
            "used": round(sum(each.price_usd_per_hour for each in alive), 6),
            "limit": None if limit == inf else limit,
        },
        "halfLifeSeconds": state.sharing.half_life_s,
        "appliedAt": iso(latest.applied_at) if latest else None,
        "document": latest.document if latest else None,
        "earlier": [{"revision": each.revision, "appliedAt": iso(each.applied_at)} for each in state.sharing.earlier],
        "queues": [
            {
                "name": each.name,
                "weight": each.weight,
                "within": "owners" if each.by_owner else None,
                "owners": owners.get(each.name, []) if each.by_owner else None,
                "runs": each.runs,
                "waiting": each.waiting,
                "running": each.running,
                "use": round(each.use, 6),
                "share": round(each.share, 6),
                "level": None if each.level is None else round(each.level, 6),
                "cap": {unit: most for unit, most in zip(UNITS, each.cap, strict=True) if most < inf} or None,
                "guarantee": {each.guarantee.unit: each.guarantee.amount} if each.guarantee else None,
                "lend": each.lend,
                "used": {unit: round(used, 6) for unit, used in zip(UNITS, each.used, strict=True)},
                "preempts": each.preempts,
                "preemptible": each.preemptible,
                "preempted": each.preempted,
                "kept": each.kept,
                "lately": [
                    {"owner": its.owner or None, "use": round(its.use, 6), "factor": round(its.factor, 6)}
                    for its in each.lately
                ],
            }
            for each in use_of_queues(state)
        ],
        "quotas": [
            {
                **dict(zip(("region", "purchase", "family"), each.key, strict=True)),
                "vcpus": each.vcpus,
                "left": each.left,
                "used": {queue: round(vcpus, 3) for queue, vcpus in each.used.items()},
            }
            for each in quotas_by_queue(moment)
        ],
    }


def _owners(state: State) -> dict[str, list[JSON]]:
    """By queue, the owners of its open runs."""
    queues = state.sharing.queues()
    counts = Counter(
        (queue_of_run(run, queues), run.proven_owner or run.terms.owner, bool(run.proven_owner))
        for run in state.runs.values()
        if not run.is_daemon
    )
    found: dict[str, list[JSON]] = {}
    for (queue, name, proven), runs in sorted(counts.items()):
        found.setdefault(queue, []).append({"name": name or None, "proven": proven, "runs": runs})
    return found


def limits_of_guarantees(deployment: DeploymentLimits, policy: Policy) -> Mapping[str, Limit]:
    """By unit, the known limits: `maxInstances`, that number of the largest instances, and the vCPU quotas where every
    purchase has one."""
    most = policy.max_instances
    found = {"instances": Limit(most, f"maxInstances of the deployment is {most:,}")}
    if not deployment.shapes:
        return found
    vcpus = max(shape.cpu_units for shape in deployment.shapes.values()) // CPU_UNITS_PER_VCPU
    gpus = max(shape.gpus for shape in deployment.shapes.values())
    found["vcpus"] = _of_instances(most, vcpus, "vCPUs")
    found["gpus"] = _of_instances(most, gpus, "GPUs")
    quota = _vcpus_of_quotas(deployment.cells, deployment.shapes, policy)
    if quota is not None and quota < found["vcpus"].amount:
        found["vcpus"] = Limit(quota, f"the vCPU quotas of the deployment add up to {quota:,}")
    return found


def _of_instances(most: int, each: int, unit: str) -> Limit:
    told = f"maxInstances of the deployment ({most:,}) times the largest instance is {most * each:,}"
    return Limit(most * each, told if each else f"no instance type of the deployment has {unit}")


def _vcpus_of_quotas(cells: Iterable[str], types: Iterable[str], policy: Policy) -> int | None:
    """None if the quota of a possible purchase is unknown."""
    known = {(quota.cell, quota.purchase, quota.family): quota.vcpus for quota in policy.vcpu_quotas}
    bought = Purchase.SPOT.value, Purchase.ON_DEMAND.value
    ways = {(each, quota_key(name, each)) for name in types for each in bought}
    needed = [(cell, *way) for cell in cells for way in ways]
    return sum(known[each] for each in needed) if needed and all(each in known for each in needed) else None


ACTIONS: Actions = {ApplySharing: _apply, DescribeSharing: _describe}
