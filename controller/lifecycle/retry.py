"""How does a run that has ended come back to life, so that what did not succeed is tried again? (decision 11)

The run itself is reopened: same id, same results folder, same task table. What succeeded is not touched. What is tried
again gets a fresh budget and its next attempt number, so that no token, no prefix and no late event can be mistaken.
"""

from __future__ import annotations

import numpy as np

from controller.model.policy import Policy
from controller.model.requests import RetryRequest
from controller.model.runs import Run, RunStatus
from controller.model.stance import UNSTEERED
from controller.model.state import State
from controller.model.tasks import CHUNKS_AT_ONCE, TaskStatus

LIVE = (TaskStatus.STARTING, TaskStatus.RUNNING, TaskStatus.VERIFYING)


def reopen(state: State, request: RetryRequest, stored: Run | None) -> None:
    """O(1): a mark on the run. Its tasks follow a few chunks at a time (`revive`), then it is prepared anew.

    A run that is at work, was reopened already, or succeeded is left alone: the same request twice does it once.
    """
    run = state.runs.get(request.run_id) or stored
    if run is None or not (run.done or run.complete) or _has_its_results(run):
        return
    state.runs[run.id] = run
    statuses = {TaskStatus.FAILED: request.failed, TaskStatus.CANCELLED: request.cancelled}
    run.revives, run.revived_to = [int(status) for status, wanted in statuses.items() if wanted], 0
    run.tasks.halted = True  # nothing starts before every task has been looked at
    run.retries += 1
    run.status, run.status_reason, run.waiting = RunStatus.SUBMITTED, "", ""
    run.cancelled, run.stopped_at, run.capped_at = False, 0.0, 0.0
    run.reopened_at, run.steering = request.requested_at, UNSTEERED
    run.task_definition, run.prepare_after, run.prepare_tries = "", 0.0, 0  # and with it the marker goes
    run.failures.clear()
    for what in ("close", "verify", "launch"):
        state.setbacks.pop(f"{what}:{run.id}", None)
    state.changed_runs.add(run.id)


def _has_its_results(run: Run) -> bool:
    return run.status is RunStatus.SUCCEEDED


def revive(state: State, run: Run, policy: Policy) -> None:
    """Make the next tasks pending again, as many as this commit can hold beside what it holds already. Of a run that
    was cancelled meanwhile nothing is tried again, and what was live without an attempt is cancelled."""
    rows, touched = run.tasks.chunk_rows, 0
    while run.revived_to < run.task_count and touched < CHUNKS_AT_ONCE and _has_room(state, policy):
        end = min(run.revived_to + rows, run.task_count)
        touched += _revive_rows(run, np.arange(run.revived_to, end))
        run.revived_to = end
    if run.revived_to >= run.task_count:
        run.revives, run.revived_to = [], 0
        run.tasks.halted = run.cancelled
    state.changed_runs.add(run.id)


def _has_room(state: State, policy: Policy) -> bool:
    return state.dirty_documents < policy.max_dirty_documents and state.dirty_bytes < policy.max_dirty_bytes


def _revive_rows(run: Run, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    """Whether anything had to be written. What a halt had left pending counts as cancelled until here."""
    table = run.tasks
    status = table["status"][rows]
    if TaskStatus.CANCELLED not in run.revives:
        unstarted = rows[status == TaskStatus.PENDING]
        if len(unstarted):
            table.set_many(unstarted, status=TaskStatus.CANCELLED)
    interrupted = rows[np.isin(status, LIVE)]  # of a run that had to be set aside: their attempts are forgotten
    if len(interrupted):
        table.set_many(interrupted, attempts=table["attempts"][interrupted] + 1, launch=0)
    again = rows[np.isin(status, (*run.revives, *LIVE))]
    if run.cancelled:
        table.set_many(interrupted, status=TaskStatus.CANCELLED)
    elif len(again):
        table.set_many(again, status=TaskStatus.PENDING, user_failures=0, losses=0, not_before=0.0, reason=0)
    return int(rows[0]) // table.chunk_rows in table.dirty
