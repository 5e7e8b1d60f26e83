"""The actions on runs: DescribeRun, ListRuns, CancelRun, RetryRun, UpdateRun,
ExplainRun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from argosy.api import reading, requests, views
from argosy.api.refusals import RequestRefused, conflict
from argosy.api.request_context import Actions, RequestContext
from argosy.api.runs import cancellations, costs, retries, updates
from argosy.api.runs.costs import estimates
from argosy.api.waiting import explanation
from argosy.catalogue.lookup import load_catalogue
from argosy.model.inbox import RetryRequest
from argosy.model.moment import Moment
from argosy.model.program_versions import ProgramVersion, submitted_version
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.spec.faults import Fault, SpecError


def _describe(context: RequestContext, request: requests.DescribeRun, request_id: str) -> dict[str, Any]:
    record = costs.of_run(context.store, context.record(request.run_id), context.now(), context.policy)
    view = {**views.full_run_view(record), "startUp": costs.start_up_view(record)}
    if "cost" in request.include:
        view["cost"] = {**views.cost_view(record), "estimates": estimates(record, context.policy.data_cell)}
    if "standing" in request.include:
        view |= _outlook(context, record)
    if "statuses" in request.include:
        chunks = reading.task_chunks(context.store, record, 0, record.task_count)
        view["statuses"] = views.statuses_view(chunk for _, chunk in chunks)
    if "tasks" in request.include:
        view |= _task_page(context, record, request)
    elif request.next_token is not None:
        raise SpecError([Fault("nextToken", 'is only possible with include: ["tasks"]')])
    return view


def _task_page(context: RequestContext, record: RunRecord, request: requests.DescribeRun) -> dict[str, Any]:
    start = requests.index_of_page(request.next_token)
    end = min(start + request.max_results, record.task_count)
    state = reading.cluster(context.store)[0]
    rows: list[dict[str, Any]] = []
    chunks = list(reading.task_chunks(context.store, record, start, end))
    # There may have been a commit since the record was read. A record read after the chunks holds every reason that
    # they refer to by number.
    record = replace(record, reasons=context.record(request.run_id).reasons)
    for first, chunk in chunks:
        wanted = range(max(start - first, 0), min(end - first, chunk.rows))
        rows += views.task_rows(views.ChosenTasks(record, first, chunk, wanted), state, context.now())
    more = end < record.task_count
    return {"taskList": rows, "nextToken": requests.page_token(str(end)) if more else None}


def _list(context: RequestContext, request: requests.ListRuns, request_id: str) -> dict[str, Any]:
    after = None if request.next_token is None else requests.page_place(request.next_token)
    page, following = reading.page(context.store, request.max_results, after)
    records = reading.with_requests(context.store, page)
    runs = [views.run_view(each) for each in costs.up_to_now(context.store, records, context.now(), context.policy)]
    return {"runs": runs, "nextToken": None if following is None else requests.page_token(following)}


def _check_is_batch(record: RunRecord) -> None:
    """Raises RequestRefused for a run that belongs to an environment."""
    if record.healthy_s is not None:
        name = record.name
        message = f"the run belongs to the environment {name}: `argosy env scale {name} 0` stops its tasks"
        raise conflict(f"{message}, `argosy env delete {name}` deletes it")


def _cancel(context: RequestContext, request: requests.CancelRun, request_id: str) -> dict[str, Any]:
    record = context.record(request.run_id)
    _check_is_batch(record)
    if request.tasks:
        return _cancel_tasks(context, request, record, request_id)
    if not record.has_ended:
        if reading.is_stranded(context.store, request.run_id):
            with _refusing():  # the controller would set such a request aside without a reply
                retries.check_readable(context.store, request.run_id)
        who = cancellations.Dependents(request.dependents, context.queue)
        cancellations.put(context, record, request.reason, request_id, who)
        context.wake.controller()
        record = replace(record, cancelled=True)
    return views.full_run_view(record)


def _cancel_tasks(
    context: RequestContext, request: requests.CancelRun, record: RunRecord, request_id: str
) -> dict[str, Any]:
    """Of a run that has ended nothing is left to cancel. One that the controller leaves aside is cancelled whole."""
    tasks = tuple((first, last) for first, last in request.tasks or ())
    for _, last in tasks:
        if last >= record.task_count:
            raise conflict(f"there is no task {last} in {record.id}: it has {record.task_count}, counted from 0")
    if record.suspended_at or reading.is_stranded(context.store, record.id):
        raise conflict(
            f"{record.id} is not being worked on: cancel all of it, or type `argosy retry {record.id}` first"
        )
    if not record.has_ended:
        cancellations.put_tasks(context, record, tasks, request_id)
        context.wake.controller()
    return views.full_run_view(record)


def _retry(context: RequestContext, request: requests.RetryRun, request_id: str) -> dict[str, Any]:
    record = context.record(request.run_id)
    _check_is_batch(record)
    now = max(context.now(), record.submitted_at)
    chosen = tuple((first, last) for first, last in request.tasks or ())
    size = {name: value for name in ("memory", "vcpus") if (value := getattr(request, name)) is not None}
    if size and record.has_ended:
        size = updates.resized(context, record, _submitted(context, record.id), size)
    if request.job is not None and record.has_ended:
        updates.check_job(context, record, _submitted(context, record.id), request.job)
    wanted = RetryRequest(
        request.run_id,
        now,
        request.failed or bool(chosen),
        request.cancelled or bool(chosen),
        request.budget_usd,
        chosen,
        size,
        request.job or "",
    )
    with _refusing():
        created = retries.put(context.store, record, wanted, request.client_token or request_id, context.market)
    context.wake.controller()
    tasks = retries.task_count(record, wanted) if created else 0
    program = None if record.suspended_at else _program_of(context, record, wanted)
    return {**context.full_view(request.run_id), "created": created, "tasksToRetry": tasks, "program": program}


def _program_of(context: RequestContext, record: RunRecord, wanted: RetryRequest) -> dict[str, Any] | None:
    """The version of the program that the retried tasks run; None for a run that brought none."""
    versions = list(record.programs)
    if not versions:  # an earlier version of Argosy stored the run
        versions = submitted_version(_submitted(context, record.id)[0], record.submitted_at)
    if versions and wanted.job and wanted.job != versions[-1].job:
        versions.append(ProgramVersion(wanted.job, wanted.requested_at))
    return views.program_view(len(versions), versions[-1]) if versions else None


def _update(context: RequestContext, request: requests.UpdateRun, request_id: str) -> dict[str, Any]:
    record = context.record(request.run_id)
    _check_is_batch(record)
    token = request.client_token or request_id
    if updates.was_asked(context, request, token):
        return {**views.full_run_view(record), "created": False}
    updates.check_open(context, record)
    submitted = _submitted(context, record.id)
    changes = updates.checked(context, record, submitted, request.changes)
    created = updates.put(context, record, request, changes, token)
    context.wake.controller()
    return {**views.full_run_view(record.with_changes(submitted[1], changes, request.reason)), "created": created}


def _explain(context: RequestContext, request: requests.ExplainRun, request_id: str) -> dict[str, Any]:
    record = context.record(request.run_id)
    if request.index is not None and request.index >= record.task_count:
        raise SpecError([Fault("index", f"the run has {record.task_count} tasks, counted from 0")])
    run = _open_run(context, request.run_id)
    if run is None:
        return explanation.not_open(record)
    state, its_run = run
    moment = Moment(state, load_catalogue(), context.now(), context.policy)
    return explanation.explain_run(moment, its_run, request.index, context.store.switches().deployment)


def _outlook(context: RequestContext, record: RunRecord) -> dict[str, Any]:
    """standing: the place in line of a run with waiting tasks and no running one. nextPool: of an interrupted run. For
    other runs the state is not read."""
    found: dict[str, Any] = {"standing": None, "nextPool": None}
    at_work = sum(record.counts[each] for each in (TaskStatus.STARTING, TaskStatus.RUNNING, TaskStatus.VERIFYING))
    waits = bool(record.counts[TaskStatus.PENDING] and not at_work)
    if record.has_ended or not (waits or record.interruptions):
        return found
    try:
        run = _open_run(context, record.id)
    except RequestRefused:
        return found  # the controller commits faster than this reads: the rest of the reply is known
    if run is None or context.store.switches().deployment is not None:
        return found
    moment = Moment(run[0], load_catalogue(), context.now(), context.policy)
    if waits:
        found["standing"] = explanation.explain_run(moment, run[1])["standing"]
    if record.interruptions and not run[1].complete:
        found["nextPool"] = explanation.next_pool(moment, run[1])
    return found


def _open_run(context: RequestContext, run_id: str) -> tuple[State, Run] | None:
    """The whole state and a run in it; None when the run is not folded in yet, or is closed."""
    state = context.whole_state()
    return (state, state.runs[run_id]) if run_id in state.runs else None


def _submitted(context: RequestContext, run_id: str) -> updates.Submitted:
    with _refusing(), retries.readable(run_id):
        return reading.submitted(context.store, run_id)


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except retries.NotRetried as why:
        raise conflict(str(why)) from why


ACTIONS: Actions = {
    requests.DescribeRun: _describe,
    requests.ListRuns: _list,
    requests.CancelRun: _cancel,
    requests.RetryRun: _retry,
    requests.UpdateRun: _update,
    requests.ExplainRun: _explain,
}
