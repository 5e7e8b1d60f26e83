"""How large is the cluster to be kept? ScaleCluster.

What is asked for is a request to the controller, like any other. What could never be kept is refused at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from argosy.api import reading, requests
from argosy.api.means import Actions, Means
from argosy.api.refusals import RequestRefused
from argosy.api.views import floor_view, iso
from argosy.model import inbox
from argosy.model.floor import Floor
from argosy.model.inbox import ScaleRequest
from argosy.ports import AlreadyExists
from argosy.spec.faults import Fault, SpecError

TRIES = 10


def _scale(means: Means, request: requests.ScaleCluster, request_id: str) -> dict[str, Any]:
    now = means.now()
    if faults := list(_faults(means, request, now)):
        raise SpecError(faults)
    types = tuple(sorted({*request.instance_types})) if request.instances else ()
    asked = ScaleRequest(now, request.instances, types, (request.until or 0.0) if request.instances else 0.0)
    _put(means, asked)
    means.wake.controller()
    return {"floor": floor_view(Floor(asked.instances, types, asked.until, now))}


def _put(means: Means, asked: ScaleRequest) -> None:
    for again in range(TRIES):
        place = inbox.inbox_key(asked.requested_at, f"cluster#scale#{again}")
        try:
            means.store.create({(inbox.INBOX, place): inbox.to_bytes(asked)})
        except AlreadyExists:
            continue  # somebody asked at the same moment: the later of the two counts
        return
    raise RequestRefused("ThrottlingException", "too many ask for a size of the cluster at once: try again")


def _faults(means: Means, request: requests.ScaleCluster, now: float) -> Iterator[Fault]:
    most = means.policy.max_instances
    if request.instances > most:
        yield Fault("instances", f"must be at most maxInstances of the deployment, {most}")
    deployed = {kind for _, kind, _ in means.fleets}
    deployed |= {pool.instance_type for pool in reading.cluster(means.store)[0].pools.values()}
    for place, name in enumerate(request.instance_types):
        if name not in deployed:
            known = ", ".join(sorted(deployed)) or "none"
            yield Fault(f"instanceTypes[{place}]", f"this deployment has no fleet of {name}; it has: {known}")
    if request.until is not None and request.until <= now:
        yield Fault("until", f"{iso(request.until)} is over: name a later time, or instances 0 to keep none")


ACTIONS: Actions = {requests.ScaleCluster: _scale}
