"""How does a retry reopen an ended run? (decision 11)

The run keeps its id, results folder and task table. Successful tasks are not touched. Retried tasks get a fresh budget
and their next attempt number, so that no token, prefix or late event can be confused with theirs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argosy.gangs.members import whole
from argosy.lifecycle.setbacks import carried_out
from argosy.model.inbox import RetryRequest
from argosy.model.policy import Policy
from argosy.model.program_versions import ProgramVersion
from argosy.model.purchases import INITIAL_CHOICE
from argosy.model.runs import Run, RunStatus, TaskStretch
from argosy.model.setbacks import LASTING
from argosy.model.state import State
from argosy.model.tasks import CHUNKS_AT_ONCE, TaskStatus

LIVE = (TaskStatus.STARTING, TaskStatus.RUNNING, TaskStatus.VERIFYING)
PENDING = int(TaskStatus.PENDING)  # included in what is revived: pending tasks stay pending
Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


def reopen(state: State, request: RetryRequest, stored: Run | None) -> None:
    """O(1): a mark on the run. Its tasks follow a few chunks at a time (`revive`), then it is prepared again.

    stored: the run in the store, unless it is open, whether or not it counts as ended. A successful run is left
    unchanged. So is a run at work, unless it was just reopened for other tasks: then these follow.
    """
    open_run = state.runs.get(request.run_id)
    run = open_run or stored
    if run is None or _has_its_results(run):
        return
    statuses = {TaskStatus.FAILED: request.failed, TaskStatus.CANCELLED: request.cancelled}
    wanted = [int(status) for status, wished in statuses.items() if wished]
    if open_run is not None and not (run.done or run.complete):
        _widen(state, run, wanted, request)
        return
    _take_in(state, run)
    _change(run, request)
    run.chosen = [TaskStretch(*each) for each in whole(run, request.tasks)]
    run.retried, run.revives, run.revived_to = wanted, [*wanted, *_never_started(run)], 0
    run.tasks.halted = True  # nothing starts before every task has been checked
    run.retries += 1
    run.status, run.status_reason, run.waiting = RunStatus.SUBMITTED, "", ""
    run.cancelled, run.stopped_at, run.capped_at, run.unaffordable_since = False, 0.0, 0.0, 0.0
    run.reopened_at, run.steering = request.requested_at, INITIAL_CHOICE
    run.task_definition, run.prepare_after = "", 0.0  # this also removes the marker
    run.failures.clear()
    run.manifest_bounds.clear()
    run.manifest_after = ""
    run.begin_waiting(run.submitted_at)
    for what in LASTING:
        carried_out(state, what, run.id)
    state.changed_runs.add(run.id)


def _change(run: Run, request: RetryRequest) -> None:
    """Another program is the latest version from now on. A changed size is put into a new definition when the run is
    prepared. No attempt of the old size is alive."""
    if request.changes:
        run.change(request.changes)
    if request.size:
        run.needs = run.terms.needs
    if request.job and request.job != run.programs[-1].job:
        run.programs.append(ProgramVersion(request.job, request.requested_at))


def _widen(state: State, run: Run, wanted: list[int], request: RetryRequest) -> None:
    """Two different retries were sent while the run counted as ended: revive the tasks of the later one as well. A run
    that is being given up again is left unchanged. So is a run where either request chose tasks, or the later one
    brings another program, since the two could contradict each other."""
    if run.chosen or request.tasks or request.job:
        return
    more = [status for status in wanted if status not in run.retried]
    if not more or not run.retries or run.cancelled or (run.halted and not run.revives):
        return
    if request.budget_usd is not None:
        run.change({"budgetUsd": request.budget_usd})
    run.revives = [*(run.revives or [PENDING]), *more]
    run.revived_to = 0
    run.retried += more
    state.changed_runs.add(run.id)


def adopt(state: State, stored: Run | None) -> Run | None:
    """Add a run that is stored as open and missing from the state, so that it can be cancelled."""
    if stored is None or stored.done or stored.id in state.quarantined:  # this tick has closed it
        return None
    _take_in(state, stored)
    stored.revives, stored.revived_to, stored.task_definition = [PENDING], 0, ""
    return stored


def _take_in(state: State, run: Run) -> None:
    """Add the run to the open ones. Its number may be in use: a restored root may be older than the run."""
    if any(other.number == run.number for other in state.runs.values() if other is not run):
        run.number = state.next_run
    state.next_run = max(state.next_run, run.number + 1)
    state.runs[run.id] = run
    state.quarantined.pop(run.id, None)
    state.note_daemon(run)


def _never_started(run: Run) -> list[int]:
    """Pending tasks of a run that was set aside continue to wait; in a halted run they count as cancelled."""
    return [] if run.tasks.halted else [PENDING]


def _has_its_results(run: Run) -> bool:
    return run.status is RunStatus.SUCCEEDED


def revive(state: State, run: Run, policy: Policy) -> None:
    """Make the next tasks pending again, as many as this commit still has room for. If the run has been cancelled
    since, nothing is retried, and live tasks without an attempt are cancelled."""
    rows, touched = run.tasks.chunk_rows, 0
    while run.revived_to < run.task_count and touched < CHUNKS_AT_ONCE and state.has_room(policy):
        end = min(run.revived_to + rows, run.task_count)
        touched += _revive_rows(state, run, np.arange(run.revived_to, end))
        run.revived_to = end
    if run.revived_to >= run.task_count:
        run.revives, run.revived_to = [], 0
        run.failed_before = int(np.count_nonzero(run.tasks["status"] == TaskStatus.FAILED.value))
        run.tasks.halted = bool(run.cancelled or run.status_reason)  # given up while its tasks were checked
    state.changed_runs.add(run.id)


def _revive_rows(state: State, run: Run, rows: Rows) -> bool:
    """Returns whether anything was written. Tasks that a halt left pending count as cancelled until here."""
    table = run.tasks
    status, chosen = table["status"][rows], _chosen(run, rows)
    if TaskStatus.PENDING not in run.revives:
        stay = chosen if TaskStatus.CANCELLED in run.revives else np.zeros(len(rows), dtype=np.bool_)
        unstarted = rows[(status == TaskStatus.PENDING) & ~stay]
        if len(unstarted):
            table.set_many(unstarted, status=TaskStatus.CANCELLED)
    interrupted = _interrupted(state, run, rows)
    if len(interrupted):
        table.set_many(interrupted, attempts=table["attempts"][interrupted] + 1, launch=0)
    wanted = [each for each in run.revives if each != TaskStatus.PENDING]
    again = np.concatenate([rows[np.isin(status, wanted) & chosen], interrupted])
    if run.cancelled:
        table.set_many(interrupted, status=TaskStatus.CANCELLED)
    elif len(again):
        table.set_many(again, status=TaskStatus.PENDING, user_failures=0, losses=0, not_before=0.0, reason=0)
    if not run.cancelled:
        stays = (status == TaskStatus.PENDING) & chosen & (TaskStatus.CANCELLED in run.revives)
        _take_latest_program(run, np.concatenate([again, rows[stays]]))
    return int(rows[0]) // table.chunk_rows in table.dirty


def _take_latest_program(run: Run, rows: Rows) -> None:
    """Retried tasks run the latest version of the program. What an earlier version may have left does not count."""
    table, latest = run.tasks, max(0, len(run.programs) - 1)
    older = rows[table["program"][rows] < latest]
    if len(older):
        table.set_many(older, program=latest, first=table["attempts"][older] + 1)


def _chosen(run: Run, rows: Rows) -> NDArray[np.bool_]:
    """Which of the rows the retry includes; shape (rows,)."""
    if not run.chosen:
        return np.ones(len(rows), dtype=np.bool_)
    firsts, lasts = np.array(sorted(run.chosen)).T
    stretch = np.searchsorted(firsts, rows, side="right") - 1
    found: NDArray[np.bool_] = (stretch >= 0) & (rows <= np.maximum.accumulate(lasts)[stretch])
    return found


def _interrupted(state: State, run: Run, rows: Rows) -> Rows:
    """Live tasks of a run that was set aside: their attempts are no longer known. Tasks of a run at work are left
    unchanged."""
    if run.task_definition:
        return rows[:0]
    live = rows[np.isin(run.tasks["status"][rows], LIVE)].tolist()
    forgotten = [index for index in live if (run.number, index) not in state.attempts.row_of_task]
    return np.array(forgotten, dtype=np.int64)
