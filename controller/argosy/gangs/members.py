"""Which tasks belong to a gang, which gangs may start, and which have to stop?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from argosy.model.actions import Action, Launch
from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.gangs import Gang
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

A = TypeVar("A", bound=Action)


def gang_of(run: Run, index: int) -> int:
    """The gang of a task."""
    return index // run.gang_size


def members(run: Run, number: int) -> range:
    """The tasks of a gang, by rank."""
    return range(number * run.gang_size, (number + 1) * run.gang_size)


def whole(run: Run, stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Stretches of tasks, from the first to the last, widened to whole gangs."""
    size = run.gang_size
    return ((first // size * size, last // size * size + size - 1) for first, last in stretches)


def startable(run: Run, now: float) -> NDArray[np.int64]:
    """The gangs of which all members are pending and past their back-off, in order."""
    ready = (run.tasks["status"] == TaskStatus.PENDING.value) & (run.tasks["not_before"] <= now)
    found = np.flatnonzero(ready.reshape(-1, run.gang_size).all(axis=1))
    return found[~np.isin(found, list(run.gangs))] if run.gangs else found


def units(state: State, actions: Iterable[A]) -> Iterator[list[A]]:
    """Consecutive launches of a gang together, because it starts as a whole or not at all; every other action alone."""

    def unit(numbered: tuple[int, A]) -> tuple[str, int]:
        place, action = numbered
        run = state.runs.get(action.key.run_id) if isinstance(action, Launch) else None
        if run is None or run.terms.gang is None or not isinstance(action, Launch):
            return "", place
        return run.id, gang_of(run, action.key.index)

    for _, its in groupby(enumerate(actions), unit):
        yield [action for _, action in its]


def verifiable(run: Run, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of tasks that ended well, those whose result is looked up: rank 0 of each gang that has ended as a whole."""
    if run.terms.gang is None:
        return rows
    gangs = rows // run.gang_size
    found: NDArray[np.int64] = rows[(rows % run.gang_size == 0) & ~np.isin(gangs, list(run.gangs))]
    return found


def next_attempt(run: Run, number: int) -> int:
    """The number of the next attempt, which all members share. A launch that was refused used up no attempt of its
    member, so the members' own numbers may differ."""
    rows = members(run, number)
    return int(run.tasks["attempts"][rows.start : rows.stop].max()) + 1


def live_rows(state: State, run: Run, number: int) -> list[int]:
    """Rows of the attempt table, by rank, of the members that have not ended."""
    table = state.attempts.row_of_task
    return [row for index in members(run, number) if (row := table.get((run.number, index))) is not None]


def why_broken(state: State, run: Run, number: int, now: float) -> str:
    """Why the members that still live have to stop; "" if all are at work, or start in time."""
    gang, rows, table = run.gangs[number], live_rows(state, run, number), state.attempts
    well = members(run, number)
    ended_well = int((run.tasks["status"][well.start : well.stop] == TaskStatus.VERIFYING.value).sum())
    if sum(_stays(state, row) for row in rows) + ended_well < run.gang_size:
        return "argosy: another member of its gang has ended"
    started = sum(int(table["status"][row]) == AttemptStatus.RUNNING.value for row in rows)
    if started + ended_well < run.gang_size and _is_late(run, gang, now):
        return f"argosy: not all members of its gang ran after {_limit_s(run):.0f} s"
    return ""


def _stays(state: State, row: int) -> bool:
    """Whether the attempt has not failed, is not asked to stop, and its instance is not about to go."""
    instance = state.instance_of(row)
    goes = instance is None or bool(instance.interrupted_at)
    asked = state.attempts["stop_cause"][row] not in (StopCause.NONE.value, StopCause.GANG.value)
    return not (goes or asked or state.attempts["left_at"][row] or row in state.open_ends.failures)


def _is_late(run: Run, gang: Gang, now: float) -> bool:
    return now - gang.placed_at >= _limit_s(run)


def _limit_s(run: Run) -> float:
    return 0.0 if run.terms.gang is None else run.terms.gang.start_within_s
