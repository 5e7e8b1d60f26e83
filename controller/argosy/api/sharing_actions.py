"""What may be asked of how the cluster is shared? ApplySharing and DescribeSharing; and which queues a run may name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Any

from argosy.api.means import Actions, Means
from argosy.api.refusals import RequestRefused
from argosy.api.sharing_limits import limits_of_guarantees
from argosy.api.sharing_requests import ApplySharing, DescribeSharing
from argosy.api.views import iso
from argosy.catalogue.lookup import load_catalogue
from argosy.market.offers import as_registered
from argosy.model import documents, inbox
from argosy.model.damage import Damage
from argosy.model.inbox import SharingRequest
from argosy.model.moment import Moment
from argosy.model.sharers import queue_of_run
from argosy.model.sharing import SHARING, UNITS, Sharing, sharing_in
from argosy.model.state import State
from argosy.ports import AlreadyExists
from argosy.spec.faults import Fault, SpecError
from argosy.spec.sharing import parse_sharing, promised_too_much

JSON = dict[str, Any]
TRIES = 10


def _apply(means: Means, request: ApplySharing, request_id: str) -> JSON:
    now, known = means.now(), in_force(means)
    limits = limits_of_guarantees(means.limits, means.policy)
    if request.document is not None:
        document: Mapping[str, Any] = parse_sharing(request.document, limits)
    else:
        document = _earlier(known, request.restore)
        if faults := list(promised_too_much(document, limits)):  # the deployment may have become smaller since
            raise SpecError(faults)
    base = known.revision if request.revision is None else request.revision
    if base != known.revision:
        raise RequestRefused(
            "ConflictException",
            f"revision {known.revision} is in force now, not {base}: look at it again, then apply yours to it",
        )
    body = inbox.to_bytes(SharingRequest(document, base, now))
    for again in range(TRIES):
        with suppress(AlreadyExists):  # somebody asked at the same moment: the first of them counts
            means.store.create({(inbox.INBOX, inbox.inbox_key(now, f"sharing#{again}")): body})
            means.wake.controller()
            return {"revision": base + 1, "document": document}
    raise RequestRefused("ThrottlingException", "others apply documents at this moment: try again")


def _earlier(known: Sharing, revision: int | None) -> Mapping[str, Any]:
    kept = [each for each in (known.latest, *known.earlier) if each is not None]
    found = next((each for each in kept if each.revision == revision), None)
    if found is None:
        names = ", ".join(str(each.revision) for each in kept) or "none"
        raise RequestRefused("ResourceNotFoundException", f"revision {revision} is not kept; kept: {names}")
    return found.document


def _describe(means: Means, request: DescribeSharing, request_id: str) -> JSON:
    from argosy.scheduler.turns.queue_views import (  # loads placement: only who looks needs it
        quotas_by_queue,
        use_of_queues,
    )

    state = means.whole_state()
    moment = Moment(state, as_registered(load_catalogue(), state.pools.values()), means.now(), means.policy)
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
    """By queue, whose runs are open in it."""
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


def in_force(means: Means) -> Sharing:
    """Raises RequestRefused where it cannot be read, unless a new one is to take its place."""
    body = means.store.read((documents.STATE, SHARING))
    found = sharing_in({} if body is None else {SHARING: body})
    return Sharing() if isinstance(found, Damage) else found


def queue_faults(means: Means, form: Mapping[str, Any]) -> list[Fault]:
    """Of a run that names a queue that is not there."""
    if form.get("queue") is None:
        return []
    names = in_force(means).queues()
    if form["queue"] in names:
        return []
    return [Fault("queue", f"there is no queue {form['queue']}; there are: {', '.join(sorted(names))}")]


def check_queue(means: Means, form: Mapping[str, Any]) -> None:
    """Raises SpecError."""
    if faults := queue_faults(means, form):
        raise SpecError(faults)


ACTIONS: Actions = {ApplySharing: _apply, DescribeSharing: _describe}
