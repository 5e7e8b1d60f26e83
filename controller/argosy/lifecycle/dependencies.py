"""When may a run start if it waits for a time or for other runs?

It waits as a whole for the end of each run that it depends on (ALL). Task by task (N_TO_N), task *i* waits for task *i*
of the other run: rows are marked as these end, as many as a commit can hold. A met dependency stays met, whatever
happens to the other run later; a retried run waits again.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np
from numpy.typing import NDArray

from argosy.lifecycle.run_stops import give_up
from argosy.model.events import DependencyEnded
from argosy.model.inbox import CancelRequest
from argosy.model.policy import Policy
from argosy.model.run_terms import DEFAULT_QUEUE, Dependency, bits_of
from argosy.model.runs import TERMINAL_RUN, Run, RunStatus
from argosy.model.state import State
from argosy.model.tasks import TERMINAL, TaskStatus

Statuses = NDArray[np.uint8]


def pass_time(state: State, now: float, policy: Policy) -> None:
    """Release runs whose time has come, or whose dependencies among the open runs are met."""
    for run in list(state.runs.values()):
        if not run.waits or run.halted:
            continue
        was_held = run.held
        if run.not_before and now >= run.not_before:
            run.not_before = 0.0
        for dependency in run.terms.depends_on:
            if dependency.run_id in run.unmet:
                _look_at(state, run, dependency, policy)
        _note_release(state, run, was_held, now)


def _look_at(state: State, run: Run, dependency: Dependency, policy: Policy) -> None:
    other = state.runs.get(dependency.run_id)
    if other is None or other.revives:  # a retried run may end differently from before
        return
    if dependency.one_to_one:
        statuses = other.tasks.statuses() if other.done else other.tasks["status"]
        is_level = _follow(state, run, dependency, statuses, policy)
        if other.done and is_level:
            _meet(state, run, dependency)
    elif other.done:
        _take_end(state, run, dependency, other.status, other.tasks.counts())


def note_end(state: State, event: DependencyEnded, now: float, policy: Policy) -> None:
    """A run that is not open has ended. Changes beyond this commit's room follow in the next one."""
    for run in list(state.runs.values()):
        if event.run_id not in run.unmet or run.halted:
            continue
        was_held = run.held
        for dependency in run.terms.depends_on:
            if dependency.run_id != event.run_id:
                continue
            if not dependency.one_to_one:
                _take_end(state, run, dependency, event.status, np.array(event.counts))
            elif _follow(state, run, dependency, _statuses_of(event, run.task_count), policy):
                _meet(state, run, dependency)
        _note_release(state, run, was_held, now)


def cancelled_with(state: State, run_id: str, request: CancelRequest) -> list[Run]:
    """The open runs that depend on it, and those that depend on these, as far as the request goes."""
    if not request.dependents:
        return []
    gone, found, queues = {run_id}, [], state.sharing.queues()
    for run in sorted(state.runs.values(), key=lambda each: each.number):  # a run can name only runs before it
        its = run.terms.queue if run.terms.queue in queues else DEFAULT_QUEUE
        if request.queue not in ("", its):
            continue  # it fails by itself, unless it starts at any end of its dependency
        if run.id not in gone and gone & {each.run_id for each in run.terms.depends_on}:
            gone.add(run.id)
            found.append(run)
    return found


def pack_statuses(statuses: Statuses) -> str:
    return base64.b64encode(zlib.compress(statuses.astype(np.uint8).tobytes(), 6)).decode()


def _statuses_of(event: DependencyEnded, tasks: int) -> Statuses:
    """Final task statuses of a dependency with this many tasks. Tasks that a suspended run left open when it was closed
    count as cancelled; so do all of an unreadable run, whose number of tasks is unknown."""
    known = np.frombuffer(zlib.decompress(base64.b64decode(event.statuses)), dtype=np.uint8)[:tasks]
    known = np.pad(known, (0, tasks - len(known)))
    return np.where(known < min(TERMINAL), np.uint8(TaskStatus.CANCELLED), known)


def _follow(state: State, run: Run, dependency: Dependency, statuses: Statuses, policy: Policy) -> bool:
    """Mark the tasks whose counterpart has ended: those that may start now, and those that never may. Returns whether
    that is all of them."""
    bit = next(each.bit for each in bits_of(run.terms.depends_on) if each.dependency == dependency)
    table = run.tasks
    over = statuses >= min(TERMINAL)
    over &= table["met"] & bit == 0
    over &= table["status"] == TaskStatus.PENDING.value
    found = np.flatnonzero(over)
    if not len(found) or not state.has_room(policy):
        return not len(found)
    rows = table.in_few_chunks(found)
    fails = (statuses[rows] != TaskStatus.SUCCEEDED.value) & (not dependency.on_end)
    met = rows[~fails]
    if len(met):
        table.set_many(met, met=table["met"][met] | bit)
    if fails.any():
        reason = run.reason_row(f"the same task of {dependency.run_id} did not succeed")
        table.set_many(rows[fails], status=TaskStatus.CANCELLED, reason=reason)
        run.waiting = "" if run.complete else run.waiting
    state.changed_runs.add(run.id)
    return len(rows) == len(found)


def _take_end(state: State, run: Run, dependency: Dependency, status: RunStatus, counts: NDArray[np.int64]) -> None:
    """The run that it depends on as a whole has ended."""
    assert status in TERMINAL_RUN
    if dependency.on_end or status is RunStatus.SUCCEEDED:
        _meet(state, run, dependency)
        return
    missing = int(counts.sum()) - int(counts[TaskStatus.SUCCEEDED])
    of_all = f"{missing:,} of {int(counts.sum()):,} tasks did not succeed"
    give_up(state, run, f"its dependency {dependency.run_id} ended {status.value}: {of_all}")


def _meet(state: State, run: Run, dependency: Dependency) -> None:
    run.unmet.remove(dependency.run_id)
    run.waiting = run.waiting if run.unmet else ""  # if the commit is full, no later step of this tick replaces it
    state.changed_runs.add(run.id)


def _note_release(state: State, run: Run, was_held: bool, now: float) -> None:
    """Whether its wait has just ended."""
    if was_held and not run.held and not run.halted:
        run.held_until, run.waiting = now, ""
        state.changed_runs.add(run.id)
