"""Requests to the controller to cancel a run, or tasks of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from argosy.api import reading
from argosy.api.request_context import RequestContext
from argosy.api.requests import TOKEN_DAYS
from argosy.model import inbox
from argosy.model.inbox import CancelRequest, CancelTasksRequest
from argosy.model.run_record import RunRecord
from argosy.ports import AlreadyExists


@dataclass(frozen=True, slots=True)
class Dependents:
    """Whether the runs that depend on it are cancelled too. queue: only those of this queue; "" = of any."""

    go_too: bool = False
    queue: str = ""


def put(
    context: RequestContext,
    record: RunRecord,
    reason: str,
    request_id: str,
    dependents: Dependents = Dependents(),
) -> None:
    """Put the request into the inbox, with a pointer to it for requests that read the run before the controller has
    folded it in. The same request, delivered twice, is stored once."""
    asked_at = max(context.now(), record.submitted_at, record.retry_at + 1e-6)  # after the request that it cancels
    place = inbox.inbox_key(asked_at, f"{record.id}#cancel#{request_id}")
    pointer = reading.cancel_pointer(record.id)
    with suppress(AlreadyExists):
        context.store.create(
            {
                (inbox.INBOX, place): inbox.to_bytes(
                    CancelRequest(record.id, asked_at, reason, dependents.go_too, dependents.queue)
                )
            },
            expires_at={pointer: asked_at + TOKEN_DAYS * 86_400},
            replacing={pointer: place.encode()},
        )


def put_tasks(context: RequestContext, record: RunRecord, tasks: tuple[tuple[int, int], ...], request_id: str) -> None:
    """Put the request into the inbox. The same request, delivered twice, is stored once."""
    asked_at = max(context.now(), record.submitted_at, record.retry_at + 1e-6)
    place = inbox.inbox_key(asked_at, f"{record.id}#end-tasks#{request_id}")
    with suppress(AlreadyExists):
        context.store.create({(inbox.INBOX, place): inbox.to_bytes(CancelTasksRequest(record.id, asked_at, tasks))})
