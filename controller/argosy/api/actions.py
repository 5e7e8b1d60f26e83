"""The actions of every subject, in one table.

The api reads the state and puts requests into the inbox; it never writes the versioned documents (DESIGN D12). A user's
error is a reply, not an exception: an exception from here is our fault or AWS's.

A subject is a package with ACTIONS: the models of its requests, and the functions that answer them from the
`RequestContext`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from argosy.api.access.entrance import confined
from argosy.api.access.identity import opened, owner_of
from argosy.api.cluster import actions as cluster_actions
from argosy.api.environments import actions as environment_actions
from argosy.api.history import actions as history_actions
from argosy.api.history.changes import ChangesExpired
from argosy.api.queues import actions as queue_actions
from argosy.api.refusals import RequestRefused, envelope_of_error, envelope_of_faults
from argosy.api.request_context import Actions, RequestContext
from argosy.api.requests import parse_request
from argosy.api.runs import actions as run_actions
from argosy.api.runs import submission
from argosy.api.schedules import actions as schedule_actions
from argosy.spec.faults import SpecError
from argosy.spec.fields import Strict

_ACTIONS: Actions = {
    **submission.ACTIONS,
    **run_actions.ACTIONS,
    **cluster_actions.ACTIONS,
    **history_actions.ACTIONS,
    **environment_actions.ACTIONS,
    **schedule_actions.ACTIONS,
    **queue_actions.ACTIONS,
}
REQUESTS: Mapping[str, type[Strict]] = {model.__name__: model for model in _ACTIONS}


@dataclass(slots=True)
class Api(RequestContext):
    """The users' actions on one deployment."""

    def handle(self, request: Any, request_id: str, alias: str = "") -> dict[str, Any]:
        """The reply, as an envelope. `request_id` appears in errors and replaces a missing client token. alias: of the
        function, with which it was invoked; "" = none, as its owner does."""
        try:
            inner, proof = opened(request)
            parsed, context = parse_request(inner, REQUESTS), self
            if alias:
                parsed, queue = confined(self, parsed, alias)
                context = replace(self, queue=queue)
            if proof is not None and self.identities is not None:
                action, sessions = type(parsed).__name__, self.limits.session_owners
                context = replace(context, owner=owner_of(proof, action, self.identities, self.now(), sessions))
            return {"statusCode": 200, "body": _ACTIONS[type(parsed)](context, parsed, request_id)}
        except SpecError as refusal:
            return envelope_of_faults(refusal.faults, request_id)
        except RequestRefused as refusal:
            return envelope_of_error(refusal.code, refusal.message, request_id, refusal.faults)
        except ChangesExpired as refusal:
            envelope = envelope_of_error("ChangesExpired", str(refusal), request_id)
            envelope["body"]["error"]["oldest"] = refusal.oldest and refusal.oldest.to_text()
            return envelope
