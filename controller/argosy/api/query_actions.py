"""What may be asked of the cluster, of what changes, and of what has happened? DescribeCluster, ListChanges,
DescribeHistory, DescribeTask, ListAttempts, ListTasks, ListInstances.
"""

from __future__ import annotations

from typing import Any

from argosy.api import history, listing, reading, requests, views
from argosy.api.changes import list_changes
from argosy.api.cluster_columns import at_work, in_form, leave_out_ended
from argosy.api.cluster_course import course_of
from argosy.api.history import MOST_ATTEMPTS
from argosy.api.means import Actions, Means
from argosy.api.run_course import history_page
from argosy.model.tasks import TaskStatus
from argosy.spec.faults import Fault, SpecError


def _describe_cluster(means: Means, request: requests.DescribeCluster, request_id: str) -> dict[str, Any]:
    state, run_ids = reading.cluster(means.store)
    records = reading.by_number(means.store, run_ids)
    needs = {number: record.needs for number, record in records.items()}
    left_out = leave_out_ended(state)
    view = views.cluster_view(state, needs, means.cluster, means.cells, means.now(), means.policy)
    if "attempts" in request.include:
        view["attempts"] = at_work(state, {number: record.id for number, record in records.items()})
    if "history" in request.include:
        view["history"] = course_of(means.store, request, means.now())
    return in_form({**view, "endedLeftOut": left_out}, request.form)


def _list_changes(means: Means, request: requests.ListChanges, request_id: str) -> dict[str, Any]:
    if request.run_id is not None:
        means.record(request.run_id)  # of a run that is not there nobody should wait for news
    return list_changes(means.store, request, means.now, means.pause)


def _describe_history(means: Means, request: requests.DescribeHistory, request_id: str) -> dict[str, Any]:
    after, version = requests.place_of(request), means.store.version()
    view, following = history_page(_history(means, request.run_id), version, after, means.now())
    return {**view, "nextToken": None if following is None else requests.token_of(request, following)}


def _describe_task(means: Means, request: requests.DescribeTask, request_id: str) -> dict[str, Any]:
    record = means.record(request.run_id)
    if request.index >= record.task_count:
        raise SpecError([Fault("index", f"the run has {record.task_count} tasks, counted from 0")])
    version = means.store.version()
    past = _history(means, record.id)
    rows = history.attempts_of_task(past, request.index)
    [(first, chunk)] = reading.task_chunks(means.store, record, request.index, request.index + 1)
    record, state = means.record(request.run_id), reading.cluster(means.store)[0]
    log = history.log_of(record, means.sources.definitions)
    return {
        "runId": record.id,
        "asOf": version,
        "index": request.index,
        "status": TaskStatus(int(chunk.statuses()[request.index - first])).name,
        "attempts": [history.task_view(record, row, means.cluster, log, state) for row in rows[-MOST_ATTEMPTS:]],
        "attemptsLeftOut": max(0, len(rows) - MOST_ATTEMPTS),
        "damaged": len(past.damaged),
    }


def _list_attempts(means: Means, request: requests.ListAttempts, request_id: str) -> dict[str, Any]:
    after = requests.place_of(request)
    version = means.store.version()
    past = _history(means, request.run_id)
    page = history.attempts_page(past, after)
    # A record that is read after the rows holds every reason that they refer to by number.
    view = history.attempts_view(means.record(request.run_id), version, page, len(past.damaged))
    following = None if page.is_last or page.end is None else requests.token_of(request, page.end)
    return {**view, "nextToken": following}


def _list_tasks(means: Means, request: requests.ListTasks, request_id: str) -> dict[str, Any]:
    record = None if request.run_id is None else means.record(request.run_id)
    return listing.list_tasks(means.store, means.objects, request, record, means.now())


def _list_instances(means: Means, request: requests.ListInstances, request_id: str) -> dict[str, Any]:
    return listing.list_instances(means.store, request, means.whole_state, means.policy)


def _history(means: Means, run_id: str) -> history.History:
    return history.History(means.store, means.objects, means.record(run_id))


ACTIONS: Actions = {
    requests.DescribeCluster: _describe_cluster,
    requests.ListChanges: _list_changes,
    requests.DescribeHistory: _describe_history,
    requests.DescribeTask: _describe_task,
    requests.ListAttempts: _list_attempts,
    requests.ListTasks: _list_tasks,
    requests.ListInstances: _list_instances,
}
