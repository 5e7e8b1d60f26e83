"""Retries: whether a run may be tried again, and the request to the controller (decision 11).

Created conditionally together with its client token, as a submit is: the same request twice reopens the run once.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from argosy.api import reading
from argosy.api.admission.spending_caps import once_retried
from argosy.api.requests import TOKEN_DAYS
from argosy.engine.loading import load_run
from argosy.model import inbox
from argosy.model.damage import FAULTS
from argosy.model.inbox import RetryRequest
from argosy.model.moment import Moment
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, RunStatus
from argosy.model.tasks import TERMINAL, TaskStatus
from argosy.model.wording import dollars
from argosy.ports import AlreadyExists, Store
from argosy.spec.fields import USD_LIMIT

LEAST_MORE_USD = 0.01


class NotRetried(Exception):
    """The run cannot be tried again; the message says why."""


def put(store: Store, record: RunRecord, request: RetryRequest, token: str, market: Callable[[], Moment]) -> bool:
    """Leave the request in the inbox. False: this token has done so before. Raises NotRetried.

    record: the run as it is stored; token: the client's, or another value that distinguishes two requests; market: the
    current offers, on a state that is made for this call, if the run has a budget that has to pay for another attempt.
    """
    key = (inbox.TOKENS, hashlib.sha256(f"retry\0{request.run_id}\0{token}".encode()).hexdigest())
    wish = {"runId": request.run_id, "failed": request.failed, "cancelled": request.cancelled}
    wish |= {} if request.budget_usd is None else {"budgetUsd": request.budget_usd}
    wish |= {"tasks": [list(each) for each in request.tasks]} if request.tasks else {}
    wish |= {**request.size, **({"job": request.job} if request.job else {})}
    if (earlier := store.read(key)) is not None:
        if json.loads(earlier) != wish:
            raise NotRetried("this clientToken has already retried other tasks of this run")
        return False
    run = _check(store, record, request)
    if run is not None and budget_of(record, request) is not None:
        _check_budget(run, request, market())
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


def check_readable(store: Store, run_id: str) -> Run | None:
    """A run that no controller works on. Raises NotRetried when its documents cannot be read."""
    with readable(run_id):
        return load_run(store, run_id)


@contextmanager
def readable(run_id: str) -> Iterator[None]:
    """For reading documents of a run: one that cannot be read raises NotRetried."""
    try:
        yield
    except FAULTS as fault:
        what = f"the stored data of {run_id} cannot be read ({type(fault).__name__}: {str(fault)[:200]})"
        raise NotRetried(f"{what}: restore it first, as docs/guides/operations.md describes") from fault


def _check(store: Store, record: RunRecord, request: RetryRequest) -> Run | None:
    """The run as it would be reopened; None for a suspended one. Raises NotRetried."""
    run_id, counts = record.id, record.counts
    if record.suspended_at:  # it is tried again at once, as it is
        if request.changes or request.tasks or request.job:
            what = "--budget, --memory, --vcpus, --tasks and --with-program"
            raise NotRetried(f"{run_id} is suspended, and is retried unchanged: leave {what} out")
        return None
    if not record.has_ended and reading.is_stranded(store, run_id):
        if request.size or request.tasks or request.job:
            what = "--memory, --vcpus, --tasks and --with-program"
            raise NotRetried(f"{run_id} never ended, and is resumed unchanged: leave {what} out")
        return check_readable(store, run_id)
    if not record.has_ended:
        raise NotRetried(f"{run_id} is {record.shown_status}: only a run that has ended can be retried")
    if record.status is RunStatus.SUCCEEDED:
        raise NotRetried(f"every task of {run_id} succeeded: there is nothing to retry")
    run = check_readable(store, run_id)
    if run is not None and request.tasks:
        _check_chosen(run, request)
    elif not task_count(record, request) and not was_never_closed(record):
        raise NotRetried(_what_there_is(run_id, counts, request))
    return run


def _check_chosen(run: Run, request: RetryRequest) -> None:
    """Every one of them is to run again. Raises NotRetried."""
    for first, last in request.tasks:
        if last >= run.task_count:
            raise NotRetried(f"there is no task {last} in {run.id}: it has {run.task_count}, counted from 0")
        succeeded = np.flatnonzero(run.tasks["status"][first : last + 1] == TaskStatus.SUCCEEDED)
        if len(succeeded):
            done = first + int(succeeded[0])
            raise NotRetried(
                f"task {done} of {run.id} succeeded and keeps its result: choose other tasks, or submit the run again"
            )


def budget_of(record: RunRecord, request: RetryRequest) -> float | None:
    """USD for all tries of the run together, once it is tried again; None without a budget."""
    return record.budget_usd if request.budget_usd is None else request.budget_usd


def _check_budget(run: Run, request: RetryRequest, market: Moment) -> None:
    """A run whose budget pays for no attempt would end again at once. Raises NotRetried.

    Idle instances do not count: by the time the run is prepared they may be gone or in use by another run.
    """
    before_usd = run.terms.budget_usd or 0.0
    found = once_retried(run, request, market)
    if found is None:
        return
    budget, attempt_usd = found
    if not (budget.is_used_up or budget.lacks(attempt_usd)):
        return
    more_usd = max(before_usd, 0.0 if math.isinf(attempt_usd) else 2 * attempt_usd, LEAST_MORE_USD)
    enough = typed(budget.spent_usd + budget.reserved_usd + budget.wind_down_usd + more_usd)
    tasks = " ".join(f"--{name}" for name in ("failed", "cancelled") if getattr(request, name))
    needed = f", and an attempt costs about {dollars(attempt_usd)}" if 0 < attempt_usd < math.inf else ""
    spent = f"{run.id} has spent {dollars(budget.spent_usd)} of a budget of {dollars(run.terms.budget_usd)}{needed}"
    command = f"argosy retry {run.id} {tasks} --budget {enough}"
    raise NotRetried(f"{spent}: it would end again at once. Give it a budget that covers all its attempts: {command}")


def typed(usd: float) -> str:
    """The amount or a little more, as a number to type: in whole cents, without cents if there are none."""
    cents = math.ceil(round(min(usd, USD_LIMIT) * 100, 6))
    return f"{cents // 100}.{cents % 100:02}".removesuffix(".00")


def task_count(record: RunRecord, request: RetryRequest) -> int:
    """How many tasks would run again. Those that still count as pending or live in a run that was set aside are among
    them."""
    counts = record.counts
    if request.tasks:
        return len({index for first, last in request.tasks for index in range(first, last + 1)})
    wanted = {TaskStatus.FAILED: request.failed, TaskStatus.CANCELLED: request.cancelled}
    live = sum(counts[status] for status in TaskStatus if status not in TERMINAL)
    return int(live + sum(counts[status] for status, asked in wanted.items() if asked))


def was_never_closed(record: RunRecord) -> bool:
    """All tasks succeeded, but manifest and marker could not be written: reopened, it is closed once more."""
    return bool(record.task_count) and record.counts[TaskStatus.SUCCEEDED] == record.task_count


def _what_there_is(run_id: str, counts: Sequence[int], request: RetryRequest) -> str:
    failed, cancelled = counts[TaskStatus.FAILED], counts[TaskStatus.CANCELLED]
    if cancelled and not request.cancelled:
        return f"no task of {run_id} failed; {cancelled} were cancelled: retry those with --cancelled"
    return f"no task of {run_id} was cancelled; {failed} failed: retry those with --failed"
