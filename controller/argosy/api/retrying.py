"""May a run be tried again, and how is the request left for the controller? (decision 11)

Created conditionally together with its client token, as a submit is: the same request twice reopens the run once.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence

from argosy.api import reading
from argosy.api.requests import TOKEN_DAYS
from argosy.engine.loading import load_run
from argosy.model import inbox
from argosy.model.damage import FAULTS
from argosy.model.inbox import RetryRequest
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.tasks import TERMINAL, TaskStatus
from argosy.model.wording import dollars
from argosy.ports import AlreadyExists, Store


class NotRetried(Exception):
    """The run cannot be tried again; the message says why."""


def put(store: Store, record: RunRecord, request: RetryRequest, token: str, attempt_usd: float = 0.0) -> bool:
    """Leave the request in the inbox. False: this token has done so before. Raises NotRetried.

    record: the run as it is stored; token: the client's, or what else tells two requests apart; attempt_usd: what one
    more attempt costs at least, which the rest of the run's budget has to pay.
    """
    key = (inbox.TOKENS, hashlib.sha256(f"retry\0{request.run_id}\0{token}".encode()).hexdigest())
    wish = {"runId": request.run_id, "failed": request.failed, "cancelled": request.cancelled}
    wish |= {} if request.budget_usd is None else {"budgetUsd": request.budget_usd}
    if (earlier := store.read(key)) is not None:
        if json.loads(earlier) != wish:
            raise NotRetried("this clientToken has already retried other tasks of this run")
        return False
    _check(store, record, request)
    _check_budget(record, request, attempt_usd)
    place = inbox.retry_key(request.requested_at, request.run_id, key[1][:16])
    pointer, forgotten_at = reading.retry_pointer(request.run_id), request.requested_at + TOKEN_DAYS * 86_400
    try:
        store.create(
            {key: json.dumps(wish).encode(), (inbox.INBOX, place): inbox.to_bytes(request)},
            expires_at={key: forgotten_at, pointer: forgotten_at},
            replacing={pointer: place.encode()},
        )
    except AlreadyExists:  # the same request, delivered twice at once
        return False
    return True


def check_readable(store: Store, run_id: str) -> None:
    """Checks a run that no controller works on. Raises NotRetried when its documents cannot be read."""
    try:
        load_run(store, run_id)
    except FAULTS as fault:
        what = f"what is stored of {run_id} cannot be read ({type(fault).__name__}: {str(fault)[:200]})"
        raise NotRetried(f"{what}: restore it first, as docs/operations.md says") from fault


def _check(store: Store, record: RunRecord, request: RetryRequest) -> None:
    run_id, counts = record.id, record.counts
    if record.suspended_at:  # it is tried again at once, as it is
        if request.budget_usd is not None:
            raise NotRetried(f"{run_id} is suspended: it is tried again as it is, without --budget")
        return
    if not record.has_ended and reading.is_stranded(store, run_id):
        check_readable(store, run_id)
        return
    if not record.has_ended:
        raise NotRetried(f"{run_id} is {record.status}: only a run that has ended can be tried again")
    if record.status is RunStatus.SUCCEEDED:
        raise NotRetried(f"every task of {run_id} succeeded: there is nothing to try again")
    check_readable(store, run_id)
    if not task_count(record, request) and not was_never_closed(record):
        raise NotRetried(_what_there_is(run_id, counts, request))


def budget_of(record: RunRecord, request: RetryRequest) -> float | None:
    """USD for all tries of the run together, once it is tried again; None without a budget."""
    return record.budget_usd if request.budget_usd is None else request.budget_usd


def _check_budget(record: RunRecord, request: RetryRequest, attempt_usd: float) -> None:
    """A run whose budget pays for no attempt would end again at once. Raises NotRetried."""
    budget = budget_of(record, request)
    if record.suspended_at or budget is None or budget - record.cost_usd > attempt_usd:
        return
    more = max(record.budget_usd or 0.0, 2 * attempt_usd)
    enough = math.ceil((record.cost_usd + more) * 100) / 100
    tasks = " ".join(f"--{name}" for name in ("failed", "cancelled") if getattr(request, name))
    needed = f", and an attempt costs about {dollars(attempt_usd)}" if attempt_usd else ""
    spent = f"{record.id} has spent {dollars(record.cost_usd)} of a budget of {dollars(budget)}{needed}"
    command = f"argosy retry {record.id} {tasks} --budget {enough:g}"
    raise NotRetried(f"{spent}: it would end again at once. Give it a budget for all its tries together: {command}")


def task_count(record: RunRecord, request: RetryRequest) -> int:
    """How many tasks would run again. Those that still count as pending or live in a run that was set aside are among
    them."""
    counts = record.counts
    wanted = {TaskStatus.FAILED: request.failed, TaskStatus.CANCELLED: request.cancelled}
    live = sum(counts[status] for status in TaskStatus if status not in TERMINAL)
    return int(live + sum(counts[status] for status, asked in wanted.items() if asked))


def was_never_closed(record: RunRecord) -> bool:
    """All tasks succeeded, but manifest and marker could not be written: reopened, it is closed once more."""
    return bool(record.task_count) and record.counts[TaskStatus.SUCCEEDED] == record.task_count


def _what_there_is(run_id: str, counts: Sequence[int], request: RetryRequest) -> str:
    failed, cancelled = counts[TaskStatus.FAILED], counts[TaskStatus.CANCELLED]
    if cancelled and not request.cancelled:
        return f"no task of {run_id} failed; {cancelled} were cancelled: ask for those (--cancelled)"
    return f"no task of {run_id} was cancelled; {failed} failed: ask for those (--failed)"
