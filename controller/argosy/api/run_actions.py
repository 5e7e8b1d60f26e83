"""What may be asked of runs, and done to them? DescribeRun, ListRuns, CancelRun, RetryRun, UpdateRun,
ExplainRun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from argosy.api import cancelling, explaining, reading, requests, retrying, spending, updating, views
from argosy.api.estimates import estimates
from argosy.api.means import Actions, Means
from argosy.api.refusals import RequestRefused
from argosy.catalogue.lookup import load_catalogue
from argosy.model.inbox import RetryRequest
from argosy.model.moment import Moment
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.spec.faults import Fault, SpecError


def _describe(means: Means, request: requests.DescribeRun, request_id: str) -> dict[str, Any]:
    record = spending.of_run(means.store, means.record(request.run_id), means.now(), means.policy)
    view = views.full_run_view(record)
    if "cost" in request.include:
        view["cost"] = {**views.cost_view(record), "estimates": estimates(record, means.policy.data_cell)}
    if "standing" in request.include:
        view["standing"] = _standing(means, record)
    if "tasks" in request.include:
        view |= _task_page(means, record, request)
    elif request.next_token is not None:
        raise SpecError([Fault("nextToken", 'is only possible with include: ["tasks"]')])
    return view


def _task_page(means: Means, record: RunRecord, request: requests.DescribeRun) -> dict[str, Any]:
    start = requests.index_of_page(request.next_token)
    end = min(start + request.max_results, record.task_count)
    state = reading.cluster(means.store)[0]
    rows: list[dict[str, Any]] = []
    chunks = list(reading.task_chunks(means.store, record, start, end))
    # There may have been a commit since the record was read. A record read after the chunks holds every reason that
    # they refer to by number.
    record = replace(record, reasons=means.record(request.run_id).reasons)
    for first, chunk in chunks:
        wanted = range(max(start - first, 0), min(end - first, chunk.rows))
        rows += views.task_rows(record, chunk, first, wanted, state, means.now())
    more = end < record.task_count
    return {"taskList": rows, "nextToken": requests.page_token(str(end)) if more else None}


def _list(means: Means, request: requests.ListRuns, request_id: str) -> dict[str, Any]:
    after = None if request.next_token is None else requests.page_place(request.next_token)
    page, following = reading.page(means.store, request.max_results, after)
    records = reading.with_requests(means.store, page)
    runs = [views.run_view(each) for each in spending.up_to_now(means.store, records, means.now(), means.policy)]
    return {"runs": runs, "nextToken": None if following is None else requests.page_token(following)}


def _check_is_batch(record: RunRecord) -> None:
    """Raises RequestRefused for a run that an environment rules over."""
    if record.healthy_s is not None:
        name = record.name
        message = f"the run belongs to the environment {name}: `argosy env scale {name} 0` stops its tasks"
        raise RequestRefused("ConflictException", f"{message}, `argosy env delete {name}` ends it")


def _cancel(means: Means, request: requests.CancelRun, request_id: str) -> dict[str, Any]:
    record = means.record(request.run_id)
    _check_is_batch(record)
    if not record.has_ended:
        if reading.is_stranded(means.store, request.run_id):
            with _refusing():  # the controller would set the request aside without a reply
                retrying.check_readable(means.store, request.run_id)
        who = cancelling.Dependents(request.dependents, means.queue)
        cancelling.put(means.store, record, request.reason, request_id, means.now(), who)
        means.wake.controller()
        record = replace(record, cancelled=True)
    return views.full_run_view(record)


def _retry(means: Means, request: requests.RetryRun, request_id: str) -> dict[str, Any]:
    record = means.record(request.run_id)
    _check_is_batch(record)
    now = max(means.now(), record.submitted_at)
    chosen = tuple((first, last) for first, last in request.tasks or ())
    size = {name: value for name in ("memory", "vcpus") if (value := getattr(request, name)) is not None}
    if size and record.has_ended:
        size = updating.resized(means, record, reading.spec_of(means.store, record.id), size)
    wanted = RetryRequest(
        request.run_id,
        now,
        request.failed or bool(chosen),
        request.cancelled or bool(chosen),
        request.budget_usd,
        chosen,
        size,
    )
    with _refusing():
        created = retrying.put(means.store, record, wanted, request.client_token or request_id, means.market)
    means.wake.controller()
    tasks = retrying.task_count(record, wanted) if created else 0
    return {**means.full_view(request.run_id), "created": created, "tasksToRetry": tasks}


def _update(means: Means, request: requests.UpdateRun, request_id: str) -> dict[str, Any]:
    record = means.record(request.run_id)
    _check_is_batch(record)
    token = request.client_token or request_id
    if updating.was_asked(means, request, token):
        return {**views.full_run_view(record), "created": False}
    updating.check_open(means, record)
    spec = reading.spec_of(means.store, record.id)
    changes = updating.checked(means, record, spec, request.changes)
    created = updating.put(means, record, request, changes, token)
    means.wake.controller()
    return {**views.full_run_view(record.with_changes(spec, changes, request.reason)), "created": created}


def _explain(means: Means, request: requests.ExplainRun, request_id: str) -> dict[str, Any]:
    record = means.record(request.run_id)
    if request.index is not None and request.index >= record.task_count:
        raise SpecError([Fault("index", f"the run has {record.task_count} tasks, counted from 0")])
    run = _open_run(means, request.run_id)
    if run is None:
        return explaining.not_open(record)
    state, its_run = run
    moment = Moment(state, load_catalogue(), means.now(), means.policy)
    return explaining.explain_run(moment, its_run, request.index, means.store.switches().deployment)


def _standing(means: Means, record: RunRecord) -> dict[str, Any] | None:
    """Of a run of which nothing runs and something waits: of no other is the whole state read for it."""
    at_work = sum(record.counts[each] for each in (TaskStatus.STARTING, TaskStatus.RUNNING, TaskStatus.VERIFYING))
    if record.has_ended or at_work or not record.counts[TaskStatus.PENDING]:
        return None
    try:
        run = _open_run(means, record.id)
    except RequestRefused:
        return None  # the controller commits faster than we read: all else that is asked of the run is known
    if run is None or means.store.switches().deployment is not None:
        return None
    moment = Moment(run[0], load_catalogue(), means.now(), means.policy)
    standing: dict[str, Any] | None = explaining.explain_run(moment, run[1])["standing"]
    return standing


def _open_run(means: Means, run_id: str) -> tuple[State, Run] | None:
    """The whole state and a run in it; None when the run is not folded in yet, or is closed."""
    state = means.whole_state()
    return (state, state.runs[run_id]) if run_id in state.runs else None


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except retrying.NotRetried as why:
        raise RequestRefused("ConflictException", str(why)) from why


ACTIONS: Actions = {
    requests.DescribeRun: _describe,
    requests.ListRuns: _list,
    requests.CancelRun: _cancel,
    requests.RetryRun: _retry,
    requests.UpdateRun: _update,
    requests.ExplainRun: _explain,
}
