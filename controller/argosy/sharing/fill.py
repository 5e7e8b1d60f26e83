"""How many tasks of each run fit within the limits in fair order?

The problem: queues with weights share several limits at once (cpu, GPUs, dollars, instances). The queue that uses least
for its weight comes first, a small task must not overtake a large one within a limit, and a run must not wait for a
limit that it does not need.

The rule, one task at a time: the next task is the first one of the sharer with the lowest level. A level is the largest
share of any limit that the sharer uses, over its weight; ties follow the sharers' order. If the task fits, its sharer
rises. If not, the limits that it exceeds are closed, and every run that needs them waits. Sharers of weight 0 are
served when no other sharer has demand.

A cap of a queue is a limit that only its own runs need; a task that exceeds one closes it for its queue alone.
Guarantees are served before all turns by weight: next is the queue that has the smallest share of its guarantee, until
it has all of it. What it receives raises its level for its turns by weight. Queues that do not lend come first: the
part of their guarantee that they lack is then withheld from the others.

The idea: allot all tasks below a level at once. A search finds the largest level up to which all tasks fit, ties at
that level are counted in order, the limits are closed, and the next round continues with the remaining runs. There are
at most as many rounds as limits, for each kind of turn. Caps of different queues are independent, so `bounds.cut` finds
all of them at once before each round.

Example: of 12 cpus queue 0 uses 4 and queue 1 none; 8 are free. Each has a run of ten tasks of 2 cpus. Queue 1
comes first (0, then 2 cpus), then the two take turns at 4 cpus each, in order: queue 1 gets three tasks, queue 0 one.

>>> runs = Columns.of(sharer=[0, 1], wants=[10, 10], takes=[[2], [2]])
>>> found = fill(runs, Sharers.of(weight=[1, 1], used=[[4], [0]]), Limits.of(capacity=[12], free=[8]))
>>> found.counts.tolist(), found.closed.tolist()
([1, 3], [True])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from argosy.sharing.bounds import LENT, CapClosure, Guarantees, QueueBounds, cut, none_closed
from argosy.sharing.columns import BoolArray, Columns, IntArray, Limits, Sharers
from argosy.sharing.levels import LevelSteps, TasksBelowLevel, keys

OPEN = -1  # in `held_by`: no limit holds the run back
_ANY = 1 << 61  # tasks
_WIDTHS = 64 ** np.arange(10)  # a search for a level looks near its beginning first
_LEVELS_MAX, _NUMBERS_MAX = 63, 1 << 14  # levels tried at once, and numbers compared for them


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The tasks that each run gets."""

    counts: IntArray  # (runs,) tasks
    held_by: IntArray  # (runs,) the first closed limit that the run's remaining tasks need; OPEN = none
    closed: BoolArray  # (limits,)
    free: IntArray  # (limits,) what is left
    capped: BoolArray | None  # (groups, units) the caps that are reached


def fill(
    columns: Columns,
    sharers: Sharers,
    limits: Limits,
    bounds: QueueBounds | None = None,
    guarantees: Guarantees | None = None,
) -> TaskCounts:
    """The same result as sharing out one task at a time. Changes no argument. guarantees: only with bounds."""
    climb = LevelSteps.of(columns, sharers, limits)
    allotment = _Allotment(climb, limits.free.copy(), np.zeros(len(limits), dtype=bool), bounds)
    if guarantees is not None and bounds is not None and guarantees.amount.any():
        _allot_guarantees(allotment, guarantees, bounds, sharers)
        climb = climb.after(allotment.counts)
    has_share = sharers.weight[columns.sharer] > 0
    for turn in (has_share, ~has_share):
        if turn.any():
            allotment.climb = climb
            allotment.allot(np.where(turn, columns.wants, 0))
    return allotment.filled()


def phases(guarantees: Guarantees, of_runs: IntArray) -> Iterator[BoolArray]:
    """(runs,) bool for each round of guarantees; those that do not lend come first."""
    promised = (guarantees.amount[of_runs] > 0) & (guarantees.takes > 0)
    keeps = guarantees.kept_from[of_runs] != LENT
    yield promised & keeps
    yield promised & ~keeps


def _allot_guarantees(allotment: _Allotment, guarantees: Guarantees, bounds: QueueBounds, sharers: Sharers) -> None:
    columns = allotment.climb.columns
    of_runs = bounds.of_runs(columns)
    allotment.climb = guarantees.climb(columns, sharers, bounds.group)
    allotment.promise = guarantees.takes, guarantees.lacking(bounds.group, of_runs, allotment.counts)
    for number, turn in enumerate(phases(guarantees, of_runs)):
        if turn.any():
            allotment.allot(np.where(turn, columns.wants, 0))
        if not number:
            lacking = guarantees.lacking(bounds.group, of_runs, allotment.counts)
            for group in np.flatnonzero((guarantees.kept_from != LENT) & (lacking > 0)).tolist():
                allotment.free[guarantees.kept_from[group]] -= lacking[group]
            allotment.free = np.maximum(allotment.free, 0)
    allotment.promise = None


class _Allotment:
    """The allotments and the remaining amounts while tasks are shared out."""

    def __init__(self, climb: LevelSteps, free: IntArray, closed: BoolArray, bounds: QueueBounds | None = None) -> None:
        self.climb, self.free, self.closed, self.bounds = climb, free, closed, bounds
        self.takes = climb.columns.takes
        self.counts = np.zeros(len(self.takes), dtype=np.int64)
        self.capped = None if bounds is None else none_closed(bounds)
        self.promise: tuple[IntArray, IntArray] | None = None
        """While guarantees are served: the part of its queue's guarantee that a task takes, and the amount that each
        group lacked at first."""

    def allot(self, wants: IntArray) -> None:
        """Gives tasks to the runs that need any, until each has all of them or waits for a limit."""
        level, wants = 0, np.minimum(wants, self._most())
        while True:
            shut = (self.takes[:, self.closed] > 0).any(axis=1)
            wants = np.where(shut, np.minimum(wants, self.counts), wants)
            allowed, closures = self._within_caps(wants)
            if not (allowed > self.counts).any():
                self._note(closures)
                return
            heights = TasksBelowLevel.of(self.climb.starts(np.maximum(allowed, self.counts)), self.climb.steps, allowed)
            level = self._highest(heights, level)
            self._give(np.maximum(heights.below(level), self.counts))
            stopped = None
            if (allowed > self.counts).any():
                stopped = self._give_ties(np.maximum(heights.below(level + 1), self.counts))
            if stopped is not None:
                closures = [each for each in closures if (each.level, each.run) < (level, stopped)]
                self._note(closures)
            elif not (allowed > self.counts).any():
                self._note(closures)
                return

    def _within_caps(self, wants: IntArray) -> tuple[IntArray, list[CapClosure]]:
        """(runs,) as many tasks as the caps of its queue allow, and the caps that this closes, with their levels."""
        if self.bounds is None or self.capped is None:
            return wants, []
        bounds, closed = self.bounds, self.capped
        if self.promise is not None:
            bounds = replace(
                bounds,
                takes=np.column_stack([bounds.takes, self.promise[0]]),
                left=np.column_stack([bounds.left, self.promise[1]]),
                reaches=True,
            )
            closed = np.column_stack([closed, np.zeros(len(closed), dtype=bool)])
        found = cut(self.climb, bounds, wants, self.counts, closed)
        return found.counts, found.closures

    def _note(self, closures: list[CapClosure]) -> None:
        """Records the caps that closed before any limit."""
        if self.capped is not None:
            for each in closures:
                self.capped[each.group] |= each.units[: self.capped.shape[1]]

    def filled(self) -> TaskCounts:
        """The result."""
        needs = (self.takes > 0) & self.closed & (self.counts < self.climb.columns.wants)[:, None]
        held_by = np.where(needs.any(axis=1), needs.argmax(axis=1) if len(self.free) else OPEN, OPEN)
        return TaskCounts(self.counts, held_by, self.closed, self.free, self.capped)

    def _most(self) -> IntArray:
        """(runs,) one task more than fits: the one that closes a limit."""
        most = _room(self.free, self.takes)
        if self.bounds is not None:
            of_runs = self.bounds.of_runs(self.climb.columns)
            left = self.bounds.left.copy()
            np.subtract.at(left, of_runs, self.counts[:, None] * self.bounds.takes)
            most = np.minimum(most, _room(left[of_runs], self.bounds.takes))
            if self.promise is not None:
                most = np.minimum(most, _room(self.promise[1][of_runs, None], self.promise[0][:, None]))
        return self.counts + most + 1

    def _highest(self, heights: TasksBelowLevel, low: int) -> int:
        """The highest level below which everything fits. low: a level at which everything fits."""
        high = max(low, heights.last())
        if self._fits(heights.below(high)):
            return high
        levels = low + _WIDTHS[high - low > _WIDTHS]
        while high - low > 1:
            fitting = int(np.count_nonzero(self._fits(heights.below(levels[:, None, None]))))
            low, high = [low, *levels.tolist(), high][fitting : fitting + 2]
            step = -(-(high - low) // (1 + min(_LEVELS_MAX, max(1, _NUMBERS_MAX // heights.starts.size))))
            levels = np.arange(low + step, high, step)
        return low

    def _fits(self, counts: IntArray) -> BoolArray:
        """Whether these counts, (runs,) or (levels, runs), fit: one answer, or one for each level."""
        more = np.maximum(counts - self.counts, 0) @ self.takes
        fits: BoolArray = (more <= self.free).all(axis=-1)
        return fits

    def _give(self, counts: IntArray) -> None:
        self.free = self.free - (counts - self.counts) @ self.takes
        self.counts = counts

    def _give_ties(self, counts: IntArray) -> int | None:
        """Gives the tasks at one level in the sharers' order up to the first that does not fit, and closes the limits
        that this one lacks. Returns its run."""
        more = counts - self.counts
        sums = np.cumsum(more[:, None] * self.takes, axis=0)
        over = np.flatnonzero((sums > self.free).any(axis=1))
        if not len(over):
            self._give(counts)
            return None
        stopped = int(over[0])
        given = np.where(np.arange(len(more)) < stopped, counts, self.counts)
        self._give(given)
        takes = self.takes[stopped]
        room = max(0, int((self.free[takes > 0] // takes[takes > 0]).min()))
        self._give(given + np.where(np.arange(len(more)) == stopped, room, 0))
        self.closed = self.closed | (takes > self.free)
        return stopped


def _room(free: IntArray, takes: IntArray) -> IntArray:
    """(runs,) the number of tasks that fit."""
    room = np.where(takes > 0, np.maximum(free, 0) // np.maximum(takes, 1), _ANY)
    most: IntArray = room.min(axis=1, initial=_ANY)
    return most


def turns(columns: Columns, sharers: Sharers, limits: Limits, counts: IntArray, quantum: int = 1) -> IntArray:
    """(tasks,) the run of each task, in the order of their turns, without guarantees.

    counts: (runs,) how many tasks of each run start. quantum: a run takes up to that many tasks in one turn. No run is
    then ahead or behind by more than one quantum.
    """
    climb = LevelSteps.of(columns, sharers, limits)
    run = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = number - number % max(1, quantum)
    turn = keys(climb.starts(counts)[run], climb.steps[run], step)
    comes_last = sharers.weight[columns.sharer[run]] == 0
    order: IntArray = run[np.lexsort((run, turn, comes_last))]
    return order


def tasks_ahead(columns: Columns, sharers: Sharers, limits: Limits, row: int) -> IntArray:
    """(runs,) how many waiting tasks of other runs come before the first task of this run.

    The same order as `turns` with all tasks of every run, without a row for each task.

    >>> two = Columns.of([0, 1, 1], [5, 5, 5], [[1], [1], [1]])  # one run of the first queue, two of the second
    >>> used = Sharers.of([1, 1], [[2], [0]])
    >>> tasks_ahead(two, used, Limits.of([10], [0]), 2).tolist()  # 2 + 3 = 5 = the tasks of the run before it
    [4, 5, 0]
    """
    climb = LevelSteps.of(columns, sharers, limits)
    starts, weightless = climb.starts(columns.wants), sharers.weight[columns.sharer] == 0
    level = int(keys(starts[[row]], climb.steps[[row]], np.zeros(1, dtype=np.int64))[0])
    earlier = np.arange(len(columns.wants)) < row  # comes first where levels are equal
    counts = TasksBelowLevel.of(starts, climb.steps, columns.wants).below(level + earlier)
    counts = np.where(weightless, counts if weightless[row] else 0, columns.wants if weightless[row] else counts)
    counts[row] = 0
    return counts
