"""What may users ask for? The actions of every subject, put together.

The api reads the state and puts requests into the inbox; it never writes the versioned documents (DESIGN D12). Users'
errors are replies, not exceptions: an exception from here is a fault of ours or of AWS.

A subject is a module with ACTIONS: the models of its requests, and the functions that answer them from the `Means`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from argosy.api import (
    cluster_actions,
    environment_actions,
    query_actions,
    run_actions,
    schedule_actions,
    sharing_actions,
    submit_actions,
)
from argosy.api.changes import ChangesExpired
from argosy.api.entrance import confined
from argosy.api.identity import opened, owner_of
from argosy.api.means import Actions, Means
from argosy.api.refusals import RequestRefused, envelope_of_error, envelope_of_faults
from argosy.api.requests import parse_request
from argosy.spec.faults import SpecError
from argosy.spec.fields import Strict

_ACTIONS: Actions = {
    **submit_actions.ACTIONS,
    **run_actions.ACTIONS,
    **query_actions.ACTIONS,
    **cluster_actions.ACTIONS,
    **environment_actions.ACTIONS,
    **schedule_actions.ACTIONS,
    **sharing_actions.ACTIONS,
}
REQUESTS: Mapping[str, type[Strict]] = {model.__name__: model for model in _ACTIONS}


@dataclass(slots=True)
class Api(Means):
    """The users' actions on one deployment."""

    def handle(self, request: Any, request_id: str, alias: str = "") -> dict[str, Any]:
        """The reply, as an envelope. `request_id` stands in errors and replaces a missing client token. alias: of the
        function, with which it was invoked; "" = none, as its owner does."""
        try:
            inner, proof = opened(request)
            parsed, means = parse_request(inner, REQUESTS), self
            if alias:
                parsed, queue = confined(self, parsed, alias)
                means = replace(self, queue=queue)
            if proof is not None and self.identities is not None:
                action, sessions = type(parsed).__name__, self.limits.session_owners
                means = replace(means, owner=owner_of(proof, action, self.identities, self.now(), sessions))
            return {"statusCode": 200, "body": _ACTIONS[type(parsed)](means, parsed, request_id)}
        except SpecError as refusal:
            return envelope_of_faults(refusal.faults, request_id)
        except RequestRefused as refusal:
            return envelope_of_error(refusal.code, refusal.message, request_id, refusal.faults)
        except ChangesExpired as refusal:
            envelope = envelope_of_error("ChangesExpired", str(refusal), request_id)
            envelope["body"]["error"]["oldest"] = refusal.oldest and refusal.oldest.to_text()
            return envelope
