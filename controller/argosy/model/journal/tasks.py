"""Lines about changes of tasks and attempts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.columns import Differences
from argosy.model.journal.lines import Line, LineType, line
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import NO_EXIT_CODE, TaskStatus

MOST_RANGES = 2_000  # of one line: about 30 KB


def grouped(keys: Sequence[NDArray[Any]], indexes: NDArray[Any]) -> Iterator[tuple[tuple[Any, ...], list[list[int]]]]:
    """The distinct values of `keys`, and the index ranges of the rows with each. More than MOST_RANGES ranges are split
    into several pieces. keys: columns of equal length, including `indexes`."""
    if not len(indexes):
        return
    order = np.lexsort([indexes, *keys[::-1]])
    columns, sorted_indexes = [key[order] for key in keys], indexes[order].astype(np.int64)
    changes = np.zeros(len(order) - 1, dtype=np.bool_)
    for column in columns:
        changes |= column[1:] != column[:-1]
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    together = zip(*(column[starts].tolist() for column in columns), strict=True)
    for values, (start, end) in zip(together, pairwise([*starts, len(order)]), strict=True):
        found = ranges(sorted_indexes[start:end])
        for first in range(0, len(found), MOST_RANGES):
            yield values, found[first : first + MOST_RANGES]


def ranges(indexes: NDArray[np.int64]) -> list[list[int]]:
    """Ascending indexes as [first, last] of each unbroken stretch."""
    if len(indexes) == 1:  # most often
        return [[int(indexes[0])] * 2]
    breaks = np.flatnonzero(np.diff(indexes) != 1)
    firsts, lasts = indexes[np.r_[0, breaks + 1]], indexes[np.r_[breaks, len(indexes) - 1]]
    return [list(pair) for pair in zip(firsts.tolist(), lasts.tolist(), strict=True)]


def indexes_of(pairs: Sequence[Sequence[int]]) -> Iterator[int]:
    """The inverse of `ranges`."""
    for first, last in pairs:
        yield from range(first, last + 1)


Rows = NDArray[Any]
_KEY = ("run", "index", "attempt", "launch")
_MOVES = {
    AttemptStatus.IN_DOUBT: LineType.TASK_IN_DOUBT,
    AttemptStatus.LAUNCHED: LineType.TASK_LAUNCHED,
    AttemptStatus.RUNNING: LineType.TASK_RUNNING,
}
_HELD = (TaskStatus.STARTING, TaskStatus.RUNNING)  # an attempt holds the task, and the attempt's lines say so
_WELL = (TaskStatus.SUCCEEDED, TaskStatus.VERIFYING)


def task_lines(state: State) -> list[Line]:
    """Ends first, since a task that ended may have been placed again in the same commit."""
    touched = [run for run in state.runs.values() if run.tasks.dirty]
    if not touched and not state.attempts.dirty:
        return []
    changes = {run.number: run.tasks.differences() for run in state.runs.values()}
    seen = _Attempts(state, changes)
    found = [*seen.ended(), *seen.begun(), *seen.moved()]
    for run in touched:
        found += _settled(run, changes[run.number], seen.of_run(run.number))
    return found


class _Attempts:
    """Changes in the table of attempts."""

    def __init__(self, state: State, changes: Mapping[int, Differences]) -> None:
        """changes: in the tasks of each run, by Run.number."""
        self._table: Differences = state.attempts.differences()
        self._changes = changes
        self._runs = {run.number: run for run in state.runs.values()}
        self._names = {number: run.id for number, run in self._runs.items()}
        for found in state.suspended.values():
            self._names[found.record.number] = found.record.id
        for record in state.quarantined.values():
            self._names.setdefault(record.number, record.id)
        old, new = self._table.old, self._table.new
        same = (old["status"] != AttemptStatus.FREE.value) & (new["status"] != AttemptStatus.FREE.value)
        for name in _KEY:
            same &= old[name] == new[name]
        self._same = same
        self._gone = (old["status"] != AttemptStatus.FREE.value) & ~same
        self._new = (new["status"] != AttemptStatus.FREE.value) & ~same

    def of_run(self, number: int) -> Rows:
        """Indexes of the tasks whose new status is in the lines about attempts."""
        old, new = self._table.old, self._table.new
        runs = new["status"] == AttemptStatus.RUNNING.value
        told = self._new | (self._same & runs & (old["status"] != AttemptStatus.RUNNING.value))
        gone = old["index"][self._gone & (old["run"] == number)]
        return np.concatenate([gone, new["index"][told & (new["run"] == number)]])

    def ended(self) -> Iterator[Line]:
        old = {name: column[self._gone] for name, column in self._table.old.items()}
        for number in np.unique(old["run"]).tolist():
            mine = {name: column[old["run"] == number] for name, column in old.items()}
            run = self._runs.get(number)
            yield from self._dropped(number, mine) if run is None else _ends(run, self._changes[number], mine)

    def _dropped(self, number: int, old: Mapping[str, Rows]) -> Iterator[Line]:
        for (attempt, instance), indexes in grouped([old["attempt"], old["instance"]], old["index"]):
            yield line(
                LineType.TASK_DROPPED,
                **self._run(number),
                tasks=indexes,
                attempt=attempt,
                instance=instance.decode(),
            )

    def begun(self) -> Iterator[Line]:
        new = {name: column[self._new] for name, column in self._table.new.items()}
        keys = [new[name] for name in ("run", "attempt", "launch", "instance")]
        for (number, attempt, launch, instance), indexes in grouped(keys, new["index"]):
            yield line(
                LineType.TASK_PLACED,
                **self._run(number),
                tasks=indexes,
                attempt=attempt,
                launch=launch or None,
                instance=instance.decode(),
            )

    def moved(self) -> Iterator[Line]:
        """Attempts that stay and have advanced."""
        old, new = self._table.old, self._table.new
        for status, kind in _MOVES.items():
            moved = (new["status"] == status) & ((old["status"] != status) | self._new)
            yield from self._lines(kind, moved & (self._same | self._new))
        asked = self._same & (new["stop_cause"] != old["stop_cause"])
        for cause in np.unique(new["stop_cause"][asked]).tolist():
            to_stop = asked & (new["stop_cause"] == cause)
            name = StopCause(cause).name.lower()
            for number in np.unique(new["for_run"][to_stop]).tolist():
                whom = self._whom(number) if cause == StopCause.PREEMPTED else {}
                yield from self._lines(LineType.TASK_STOPPING, to_stop & (new["for_run"] == number), cause=name, **whom)
        left, had_left = new["left_at"] > 0, old["left_at"] > 0
        yield from self._lines(LineType.TASK_LEFT, self._same & left & ~had_left)
        yield from self._lines(LineType.TASK_RETURNED, self._same & had_left & ~left)

    def _whom(self, number: int) -> dict[str, Any]:
        """The run that takes the room, and its queue if known."""
        run = self._runs.get(number)
        return {"forRun": self._names.get(number), "forQueue": run.terms.queue if run is not None else None}

    def _lines(self, kind: LineType, rows: NDArray[np.bool_], **facts: Any) -> Iterator[Line]:
        new = {name: column[rows] for name, column in self._table.new.items()}
        keys = [new[name] for name in ("run", "attempt", "instance")]
        for (number, attempt, instance), indexes in grouped(keys, new["index"]):
            who = self._run(number)
            yield line(kind, **who, tasks=indexes, attempt=attempt, instance=instance.decode(), **facts)

    def _run(self, number: int) -> dict[str, Any]:
        """The run's id, or its number if the id is not known: it is set aside."""
        return {"runId": self._names[number]} if number in self._names else {"runNumber": number}


def _ends(run: Run, changes: Differences, old: Mapping[str, Rows]) -> Iterator[Line]:
    """Attempts whose rows are free or hold another attempt."""
    tasks, indexes = run.tasks, old["index"]
    charged = _charged(changes, indexes)
    status = tasks["status"][indexes]
    status = np.where(np.isin(status, _HELD), TaskStatus.PENDING, status)  # placed again already: the next line says so
    happened = tasks["attempts"][indexes] >= old["attempt"]
    columns = [happened, status, old["attempt"], old["instance"], tasks["exit_code"][indexes], tasks["reason"][indexes]]
    for values, rows in grouped([*columns, charged], indexes):
        took_place, becomes, attempt, instance, exit_code, reason, account = values
        shows_code = took_place and exit_code != NO_EXIT_CODE
        yield line(
            LineType.TASK_ENDED if took_place else LineType.TASK_REFUSED,
            runId=run.id,
            tasks=rows,
            attempt=attempt,
            instance=instance.decode(),
            status=TaskStatus(becomes).name,
            exitCode=exit_code if shows_code else None,
            reason=None if becomes in _WELL else run.reasons[reason],
            chargedTo=_ACCOUNTS[account] if took_place else None,
        )


def _settled(run: Run, changes: Differences, told: Rows) -> Iterator[Line]:
    """Tasks with a new status that no line about an attempt gives."""
    rows, old, new = changes
    changed = (old["status"] != new["status"]) & ~np.isin(rows, told)
    indexes = rows[changed]
    columns = [
        new["status"][changed],
        new["attempts"][changed],
        run.tasks["reason"][indexes],
        _charged(changes, indexes),
    ]
    for (status, attempt, reason, account), found in grouped(columns, indexes):
        yield line(
            LineType.TASK_VERIFIED if status == TaskStatus.SUCCEEDED else LineType.TASK_SETTLED,
            runId=run.id,
            tasks=found,
            attempt=attempt or None,
            status=TaskStatus(status).name,
            reason=None if status in _WELL else run.reasons[reason],
            chargedTo=_ACCOUNTS[account],
        )


_ACCOUNTS = (None, "user", "infrastructure")


def _charged(changes: Differences, indexes: Rows) -> NDArray[np.int64]:
    """The account charged for the attempt of each task that failed since the last commit, as an index into `_ACCOUNTS`.
    changes: in the tasks of the run."""
    rows, old, new = changes
    charged = np.zeros(len(indexes), dtype=np.int64)
    known = np.flatnonzero(np.isin(indexes, rows))
    at = np.searchsorted(rows, indexes[known])
    for place, name in enumerate(("user_failures", "losses"), start=1):
        charged[known[(new[name] > old[name])[at]]] = place
    return charged
