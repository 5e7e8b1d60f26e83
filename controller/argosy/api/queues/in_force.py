"""The sharing document in force, and whether its queues include the one that a spec names."""

from __future__ import annotations

from math import inf

from argosy.api.request_context import RequestContext
from argosy.model.damage import Damage
from argosy.model.run_terms import DEFAULT_QUEUE, RunTerms
from argosy.model.shares.sharing import SHARING, Sharing
from argosy.model.stored import documents
from argosy.model.stored.sharing import sharing_in
from argosy.spec.faults import Fault, SpecError


def in_force(context: RequestContext) -> Sharing:
    """An unreadable document counts as none: a new one may then be applied."""
    body = context.store.read((documents.STATE, SHARING))
    found = Sharing() if body is None else sharing_in({SHARING: body})
    return Sharing() if isinstance(found, Damage) else found


def may_exceed(context: RequestContext, terms: RunTerms) -> bool:
    """Whether there is a limit, besides the size of instances, that a single task of the run could exceed."""
    has_own, sharing = bool(terms.max_hourly_usd is not None or context.policy.vcpu_quotas), in_force(context)
    return has_own or sharing.limits_queues or sharing.usd_per_hour < inf


def queue_faults(context: RequestContext, terms: RunTerms) -> list[Fault]:
    """The fault of a spec whose queue does not exist. The default queue always exists."""
    if terms.queue == DEFAULT_QUEUE or terms.queue in (names := in_force(context).queues()):
        return []
    return [Fault("queue", f"there is no queue {terms.queue}; the queues are: {', '.join(sorted(names))}")]


def check_queue(context: RequestContext, terms: RunTerms) -> None:
    """Raises SpecError."""
    if faults := queue_faults(context, terms):
        raise SpecError(faults)
