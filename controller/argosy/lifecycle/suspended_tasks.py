"""What happens to the tasks of a suspended run?

They continue for some minutes. Of ECS's reports about them, only the end of a task is taken in. The task then takes
no room on its instance, its time is charged, and its row stays, so that the run finds its outcome when it is retried.
Tasks are stopped if their run's budget is used up, if they exceed their time-out, or if their run stays suspended for
some minutes. The run itself is not touched here, because its code may be what fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np
from numpy.typing import NDArray

from argosy.lifecycle import charges, history
from argosy.lifecycle.accounts import note_idle
from argosy.model.arns import cell_of, name_of, task_arn
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.costs import Work
from argosy.model.events import Observed, TaskSeen
from argosy.model.money.ledger import usd_not_charged
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.model.suspensions import MOST_UNWATCHED, Suspension

STARTED = (AttemptStatus.LAUNCHED, AttemptStatus.RUNNING)
UNSENT = (AttemptStatus.INTENT, AttemptStatus.IN_DOUBT)


@contextmanager
def left_out_if_it_fails(state: State, what: str) -> Iterator[None]:
    """For actions on suspended runs: record any exception and continue the tick without the action."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is, the other runs continue
        state.left_out.append((what, error))


def is_of_suspended(state: State, seen: TaskSeen) -> bool:
    row = state.attempts.row_of_task_id.get(name_of(seen.arn).encode())
    if row is None:
        return seen.key is not None and seen.key.run_id in state.suspended
    return int(state.attempts["run"][row]) in state.suspended_numbers()


def see(state: State, seen: TaskSeen, now: float) -> bool:
    """A task of a suspended run, as an event or a listing showed it. False when its run has no attempt for it."""
    is_known = True  # if it fails: the next sweep shows the task again
    with left_out_if_it_fails(state, "a task of a suspended run"):
        is_known = _see(state, seen, now)
    return is_known  # noqa: RET504 - it may have failed


def _see(state: State, seen: TaskSeen, now: float) -> bool:
    row = state.attempts.row_of_task_id.get(name_of(seen.arn).encode())
    if row is None:
        return _see_launch(state, seen, now)
    _follow(state, row, seen, now)
    return True


def _see_launch(state: State, seen: TaskSeen, now: float) -> bool:
    """A launch with an unknown outcome. It stays in doubt until its run is tried again."""
    key = cast(AttemptKey, seen.key)  # otherwise it could not be matched to a suspended run
    found, table = state.suspended[key.run_id], state.attempts
    row = table.row_of_task.get((found.record.number, key.index))
    if row is None:
        return False
    if not table["task_id"][row] and (table["attempt"][row], table["launch"][row]) == (key.attempt, key.launch):
        _follow(state, row, seen, now)
        if seen.last_status != "STOPPED" and found.times >= MOST_UNWATCHED:
            _ask_to_stop(state, row, seen.arn, StopCause.STUCK, now)
    return True


def _follow(state: State, row: int, seen: TaskSeen, now: float) -> None:
    if state.attempts["absent_since"][row]:
        state.attempts.set(row, absent_since=0.0)
    if seen.last_status == "STOPPED" and not state.attempts["left_at"][row]:
        started_at = seen.started_at or float(state.attempts["started_at"][row])
        if state.attempts["status"][row] in UNSENT:
            started_at = 0.0  # its time is charged when its launch is resolved
        leave(state, row, started_at, seen.stopped_at or now, now)


def leave(state: State, row: int, started_at: float, ended_at: float, now: float) -> None:
    """The attempt takes no more room. Its time counts as useful until its run corrects it. started_at: 0 = it did not
    start."""
    _book(state, row, started_at, ended_at, Work.USEFUL)
    state.attempts.leave(row, ended_at)
    note_idle(state, state.instance_of(row), now)


def lose(state: State, row: int, at: float) -> None:
    """The attempt was lost with its instance: its time is still charged to the run."""
    _book(state, row, float(state.attempts["started_at"][row]), at, Work.REDONE)
    number = int(state.attempts["run"][row])
    run_id = next(run_id for run_id, found in state.suspended.items() if found.record.number == number)
    history.note_lost(state, run_id, row, at)
    state.attempts.remove(row)


def _book(state: State, row: int, started_at: float, ended_at: float, work: Work) -> None:
    number, instance = int(state.attempts["run"][row]), state.instance_of(row)
    for run_id, found in state.suspended.items():
        if found.record.number == number and instance is not None and started_at:
            with left_out_if_it_fails(state, f"charging run {run_id} for an attempt"):
                charges.book(state, found.record, instance, ended_at - started_at, work)


def stop_unwatched(state: State, found: Suspension, now: float, policy: Policy) -> None:
    """Stop the tasks that must not continue, as many as this commit holds."""
    cause = StopCause.STUCK if _is_unwatched(state, found, now) else StopCause.TIMED_OUT
    for row in _to_stop(state, found, cause, now, policy).tolist():
        if state.has_room(policy):
            _stop(state, row, cause, now)


def _placed(state: State, found: Suspension) -> NDArray[np.bool_]:
    """Which rows take room for the run; shape (rows,)."""
    table = state.attempts
    rows: NDArray[np.bool_] = (table["run"] == found.record.number) & (table["left_at"] == 0)
    return rows


def _is_unwatched(state: State, found: Suspension, now: float) -> bool:
    """Whether all of its tasks should stop. Its spending is computed like that of any other run."""
    number, budget = found.record.number, found.record.budget_usd
    if found.times >= MOST_UNWATCHED or budget is None:
        return found.times >= MOST_UNWATCHED
    owed_usd = 0.0
    with left_out_if_it_fails(state, f"what run {found.record.id} owes"):  # the failure may be in an instance
        owed_usd = usd_not_charged(state, state.needs_by_number(), now, {number}).get(number, 0.0)
    return found.record.cost_usd + owed_usd >= budget


def _to_stop(state: State, found: Suspension, cause: StopCause, now: float, policy: Policy) -> NDArray[np.int64]:
    """Rows of attempts that exceeded their time-out, or of all, without those asked to stop just before."""
    table, limit_s = state.attempts, found.record.attempt_timeout_s
    look = _placed(state, found) & table.has_status(*STARTED)
    if cause is StopCause.TIMED_OUT:
        look &= (limit_s > 0) & (table["started_at"] > 0) & (now - table["started_at"] >= limit_s)
    lately_asked = (table["stop_at"] > 0) & (now - table["stop_at"] < policy.stop_again_s)
    return np.flatnonzero(look & ~lately_asked)


def _stop(state: State, row: int, cause: StopCause, now: float) -> None:
    table, instance = state.attempts, state.instance_of(row)
    arn = None if instance is None else task_arn(instance.arn, bytes(table["task_id"][row]).decode())
    if arn is not None:
        _ask_to_stop(state, row, arn, cause, now)


def _ask_to_stop(state: State, row: int, arn: str, cause: StopCause, now: float) -> None:
    state.attempts.set(row, stop_at=now, stop_cause=int(state.attempts["stop_cause"][row]) or cause)
    state.orphans[arn] = cell_of(arn)


def miss(state: State, row: int, at: float) -> None:
    """ECS no longer knows the task: it ended at an unknown time. Its run counts it as lost when it is retried."""
    leave(state, row, float(state.attempts["started_at"][row]), float(state.attempts["absent_since"][row]), at)


def miss_launches(state: State, sweep: Observed, policy: Policy) -> None:
    """Launches in doubt that cannot be resolved in the meantime free their room, as many as this commit holds: launches
    too old to be sent again, for which a complete listing shows no running task."""
    table, shown = state.attempts, {seen.key for seen in sweep.tasks if seen.last_status != "STOPPED"}
    too_old = table.has_status(*UNSENT) & (sweep.at - table["intended_at"] >= policy.intent_age_s)
    for run_id, found in state.suspended.items():
        for row in np.flatnonzero(_placed(state, found) & too_old).tolist():
            numbers = (int(table[name][row]) for name in ("index", "attempt", "launch"))
            if AttemptKey(run_id, *numbers) not in shown and state.has_room(policy):
                leave(state, row, 0.0, sweep.at, sweep.at)
