"""How is it left for the controller that a run is to be cancelled?"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from argosy.api import reading
from argosy.api.requests import TOKEN_DAYS
from argosy.model import inbox
from argosy.model.inbox import CancelRequest
from argosy.model.run_record import RunRecord
from argosy.ports import AlreadyExists, Store


@dataclass(frozen=True, slots=True)
class Dependents:
    """Whether the runs that depend on it go too. queue: only those of this one; "" = of any."""

    go_too: bool = False
    queue: str = ""


def put(
    store: Store,
    record: RunRecord,
    reason: str,
    request_id: str,
    now: float,
    dependents: Dependents = Dependents(),
) -> None:
    """Leave the request in the inbox, and where it lies for those who read the run before it is taken in. The same
    request, delivered twice, is there once. now: epoch seconds."""
    asked_at = max(now, record.submitted_at, record.retry_at + 1e-6)  # after what it cancels
    place = inbox.inbox_key(asked_at, f"{record.id}#cancel#{request_id}")
    pointer = reading.cancel_pointer(record.id)
    with suppress(AlreadyExists):
        store.create(
            {
                (inbox.INBOX, place): inbox.to_bytes(
                    CancelRequest(record.id, asked_at, reason, dependents.go_too, dependents.queue)
                )
            },
            expires_at={pointer: asked_at + TOKEN_DAYS * 86_400},
            replacing={pointer: place.encode()},
        )
