"""The sharing document in force, and whether its queues include the one that a spec names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.api.request_context import RequestContext
from argosy.model import documents
from argosy.model.damage import Damage
from argosy.model.sharing import SHARING, Sharing, sharing_in
from argosy.spec.faults import Fault, SpecError


def in_force(context: RequestContext) -> Sharing:
    """Raises RequestRefused where it cannot be read, unless a new one is to take its place."""
    body = context.store.read((documents.STATE, SHARING))
    found = sharing_in({} if body is None else {SHARING: body})
    return Sharing() if isinstance(found, Damage) else found


def queue_faults(context: RequestContext, form: Mapping[str, Any]) -> list[Fault]:
    """Of a run that names a queue that is not there."""
    if form.get("queue") is None:
        return []
    names = in_force(context).queues()
    if form["queue"] in names:
        return []
    return [Fault("queue", f"there is no queue {form['queue']}; there are: {', '.join(sorted(names))}")]


def check_queue(context: RequestContext, form: Mapping[str, Any]) -> None:
    """Raises SpecError."""
    if faults := queue_faults(context, form):
        raise SpecError(faults)
