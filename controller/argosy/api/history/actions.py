"""ListChanges, DescribeHistory, DescribeTask, ListAttempts, ListTasks, ListInstances."""

from __future__ import annotations

from typing import Any

from argosy.api import reading, requests
from argosy.api.history import attempts as attempt_history
from argosy.api.history import filtered_lists
from argosy.api.history.attempts import MOST_ATTEMPTS
from argosy.api.history.changes import list_changes
from argosy.api.history.run_history import history_page
from argosy.api.request_context import Actions, RequestContext
from argosy.model.tasks import TaskStatus
from argosy.spec.faults import Fault, SpecError


def _list_changes(context: RequestContext, request: requests.ListChanges, request_id: str) -> dict[str, Any]:
    if request.run_id is not None:
        context.record(request.run_id)  # raises for a run that does not exist, before any waiting
    return list_changes(context.store, request, context.now, context.pause)


def _describe_history(context: RequestContext, request: requests.DescribeHistory, request_id: str) -> dict[str, Any]:
    after, version = requests.place_of(request), context.store.version()
    view, following = history_page(_history(context, request.run_id), version, after, context.now())
    return {**view, "nextToken": None if following is None else requests.token_of(request, following)}


def _describe_task(context: RequestContext, request: requests.DescribeTask, request_id: str) -> dict[str, Any]:
    record = context.record(request.run_id)
    if request.index >= record.task_count:
        raise SpecError([Fault("index", f"the run has {record.task_count} tasks, counted from 0")])
    version = context.store.version()
    past = _history(context, record.id)
    rows = attempt_history.attempts_of_task(past, request.index)
    [(first, chunk)] = reading.task_chunks(context.store, record, request.index, request.index + 1)
    record, state = context.record(request.run_id), reading.cluster(context.store)[0]
    log = attempt_history.log_of(record, context.sources.definitions)
    return {
        "runId": record.id,
        "asOf": version,
        "index": request.index,
        "status": TaskStatus(int(chunk.statuses()[request.index - first])).name,
        "attempts": [
            attempt_history.task_view(record, row, context.cluster, log, state) for row in rows[-MOST_ATTEMPTS:]
        ],
        "attemptsLeftOut": max(0, len(rows) - MOST_ATTEMPTS),
        "damaged": len(past.damaged),
    }


def _list_attempts(context: RequestContext, request: requests.ListAttempts, request_id: str) -> dict[str, Any]:
    after = requests.place_of(request)
    version = context.store.version()
    past = _history(context, request.run_id)
    page = attempt_history.attempts_page(past, after)
    # A record that is read after the rows holds every reason that they refer to by number.
    view = attempt_history.attempts_view(context.record(request.run_id), version, page, len(past.damaged))
    following = None if page.is_last or page.end is None else requests.token_of(request, page.end)
    return {**view, "nextToken": following}


def _list_tasks(context: RequestContext, request: requests.ListTasks, request_id: str) -> dict[str, Any]:
    record = None if request.run_id is None else context.record(request.run_id)
    return filtered_lists.list_tasks(context.store, context.objects, request, record, context.now())


def _list_instances(context: RequestContext, request: requests.ListInstances, request_id: str) -> dict[str, Any]:
    return filtered_lists.list_instances(context.store, request, context.whole_state, context.policy)


def _history(context: RequestContext, run_id: str) -> attempt_history.History:
    return attempt_history.History(context.store, context.objects, context.record(run_id))


ACTIONS: Actions = {
    requests.ListChanges: _list_changes,
    requests.DescribeHistory: _describe_history,
    requests.DescribeTask: _describe_task,
    requests.ListAttempts: _list_attempts,
    requests.ListTasks: _list_tasks,
    requests.ListInstances: _list_instances,
}
