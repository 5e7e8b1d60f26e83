"""Caps and guarantees of queues as columns, and how much demand the caps admit.

A group is a queue. The owners of a queue that is shared by owners are sharers of one group. Caps have their own units
(dollars an hour, cpu, GPUs, instances), which need not be limits of the deployment.

`cut` fills each group as if it were alone, in the order of its sharers' levels, until a task exceeds a cap. That closes
the cap for the group; runs of the group that use none of it continue. A task larger than a whole cap closes nothing,
because it would do so forever. All groups are filled at once in at most as many rounds as there are units.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from argosy.sharing.columns import MOST, BoolArray, Columns, IntArray, Sharers, clipped
from argosy.sharing.levels import LevelSteps, TasksBelowLevel, keys, scaled

NO_CAP = 1 << 62


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Caps: the amount of each unit that a group may still use."""

    group: IntArray  # (sharers,)
    takes: IntArray  # (runs, units) what a task takes; 0 if its group has no cap
    left: IntArray  # (groups, units)
    never: BoolArray  # (runs,) whose tasks are larger than a whole cap
    reaches: bool = False  # whether the last unit is a minimum to reach, not a cap; the last task may exceed it

    @classmethod
    def of(cls, columns: Columns, group: ArrayLike, takes: ArrayLike, left: ArrayLike) -> QueueBounds:
        """left: NO_CAP = unlimited. Overuse counts as 0 left."""
        groups, room = np.asarray(group, dtype=np.int64), np.asarray(left, dtype=np.int64)
        wanted = clipped(takes, most=MOST + 1)
        wanted = np.where(room[groups[columns.sharer]] >= NO_CAP, 0, wanted)
        return cls(groups, wanted, clipped(room), np.zeros(len(wanted), dtype=np.bool_))

    def less_never(self, columns: Columns, whole: ArrayLike) -> QueueBounds:
        """Without the runs whose tasks are larger than a whole cap. whole: (groups, units)"""
        never = self.takes > np.asarray(whole, dtype=np.int64)[self.of_runs(columns)]
        return replace(self, never=np.asarray(never.any(axis=1), dtype=np.bool_))

    def of_runs(self, columns: Columns) -> IntArray:
        """(runs,) the group of each."""
        found: IntArray = self.group[columns.sharer]
        return found


@dataclass(frozen=True, slots=True)
class Guarantees:
    """The amount that each group receives before turns by weight, in the one unit of its guarantee."""

    amount: IntArray  # (groups,); 0 = nothing
    used: IntArray  # (sharers,) of that unit
    takes: IntArray  # (runs,) what a task takes of it
    kept_from: IntArray  # (groups,) the limit that withholds the missing part from other groups; LENT = it is lent

    @classmethod
    def of(cls, amount: ArrayLike, used: ArrayLike, takes: ArrayLike, kept_from: ArrayLike) -> Guarantees:
        """Clips amounts as limits do."""
        of, has, each = map(clipped, (amount, used, takes))
        return cls(of, has, each, np.asarray(kept_from, dtype=np.int64))

    def climb(self, columns: Columns, sharers: Sharers, group: IntArray) -> LevelSteps:
        """Levels of sharers with a guarantee: the share of it that they have."""
        parts, amount = sharers.parts[:, None], self.amount[group][:, None]
        one = np.ones_like(amount)
        promised = Columns(columns.sharer, columns.wants, self.takes[:, None])
        steps = scaled(promised.takes, amount[columns.sharer], one[columns.sharer], parts[columns.sharer])
        return LevelSteps(promised, scaled(self.used[:, None], amount, one, parts)[columns.sharer], steps)

    def lacking(self, group: IntArray, of_runs: IntArray, counts: IntArray) -> IntArray:
        """(groups,) the amount that each group still lacks after `counts` tasks of each run."""
        found = self.amount.copy()
        np.subtract.at(found, group, self.used)
        np.subtract.at(found, of_runs, counts * self.takes)
        lacking: IntArray = np.maximum(found, 0)
        return lacking


LENT = -1


@dataclass(frozen=True, slots=True)
class CapClosure:
    """A unit of a group that was closed, with the level and the run at which it closed."""

    level: int
    run: int
    group: int
    units: BoolArray


def none_closed(bounds: QueueBounds) -> BoolArray:
    """(groups, units)"""
    return np.zeros(bounds.left.shape, dtype=bool)


@dataclass(slots=True)
class CappedWants:
    """The demand that the caps admit."""

    counts: IntArray  # (runs,)
    closures: list[CapClosure] = field(default_factory=list)


def cut(climb: LevelSteps, bounds: QueueBounds, wants: IntArray, given: IntArray, closed: BoolArray) -> CappedWants:
    """given: (runs,) tasks given already. closed: (groups, units) closed already."""
    return _CapFilling(climb, bounds, closed).cut(np.where(bounds.never, 0, wants), given)


class _CapFilling:
    """All groups at once. Runs are sorted by group and keep their order within it."""

    def __init__(self, climb: LevelSteps, bounds: QueueBounds, closed: BoolArray) -> None:
        group = bounds.of_runs(climb.columns)
        self.climb, self.order = climb, np.argsort(group, kind="stable")
        self.group, self.takes = group[self.order], bounds.takes[self.order]
        self.closed, self.passing = closed.copy(), bounds.reaches
        self.groups, self.left = len(bounds.left), bounds.left
        sharer = climb.columns.sharer
        base = int(sharer.max(initial=0)) + 1
        sharers = np.unique(group * base + sharer) // base
        self.is_alone = (np.bincount(sharers, minlength=self.groups) < 2)[self.group]
        self.closures: list[CapClosure] = []

    def cut(self, wants: IntArray, given: IntArray) -> CappedWants:
        self.wants, self.given = np.maximum(wants, given)[self.order], given[self.order]
        self.left = self.left - self._sums(self.given)
        if self.passing:
            self.closed[:, -1] |= self.left[:, -1] <= 0
            self.left[:, -1] = np.maximum(self.left[:, -1] - 1, 0)
        while True:
            shut = (self.takes > 0) & self.closed[self.group]
            self.wants = np.where(shut.any(axis=1), self.given, self.wants)
            if not (self.wants > self.given).any():
                break
            self._give(self._next())
        counts = np.empty_like(self.given)
        counts[self.order] = self.given
        return CappedWants(counts, self.closures)

    def _next(self) -> IntArray:
        """How many tasks each run has after the next step; a sharer that is alone in its group takes all of its
        tasks."""
        if (self._sums(self.wants - self.given) <= self.left).all() or self.is_alone.all():
            return self.wants
        steps = self.climb.steps[self.order]
        heights = TasksBelowLevel.of(self._starts(self.wants), steps, self.wants)
        level = self._highest(heights)
        below = np.maximum(heights.below(level), self.given)
        self._take(np.where(self.is_alone, self.given, below))
        return np.where(self.is_alone, self.wants, np.maximum(heights.below(level + 1), self.given))

    def _highest(self, heights: TasksBelowLevel) -> IntArray:
        """(runs,) the highest level of its group below which all demand fits."""
        low, high = np.zeros(self.groups, dtype=np.int64), np.full(self.groups, heights.last(), dtype=np.int64)
        all_fit = self._fits(heights, high)
        low = np.where(all_fit, high, low)
        while (high - low > 1).any():
            middle = (low + high) // 2
            fits = self._fits(heights, middle)
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return low[self.group]

    def _fits(self, heights: TasksBelowLevel, level: IntArray) -> BoolArray:
        more = np.maximum(heights.below(level[self.group]) - self.given, 0)
        fits: BoolArray = np.all(self._sums(more) <= self.left, axis=1)
        return fits

    def _give(self, upto: IntArray) -> None:
        """Gives tasks in order up to the first of each group that does not fit, and closes the units that this one
        needs."""
        more = upto - self.given
        sums = np.cumsum(more[:, None] * self.takes, axis=0)
        first = np.searchsorted(self.group, self.group)
        before = sums[first] - more[first][:, None] * self.takes[first]
        over = np.flatnonzero((sums - before > self.left[self.group]).any(axis=1))
        stopped = over[np.unique(self.group[over], return_index=True)[1]]
        limit = np.full(self.groups, len(more), dtype=np.int64)
        limit[self.group[stopped]] = stopped
        self._take(np.where(np.arange(len(more)) < limit[self.group], upto, self.given))
        if len(stopped):
            self._stop(stopped)

    def _stop(self, stopped: IntArray) -> None:
        """Gives these runs, one of each group, as many more tasks as fit."""
        takes, left = self.takes[stopped], self.left[self.group[stopped]]
        room = np.where(takes > 0, np.maximum(left, 0) // np.maximum(takes, 1), np.iinfo(np.int64).max - 1)
        if self.passing:
            room[:, -1] += takes[:, -1] > 0
        more = np.zeros_like(self.given)
        more[stopped] = room.min(axis=1)
        self._take(self.given + more)
        left = self.left[self.group[stopped]]
        shut = takes > left
        if self.passing:
            reached = left[:, -1] < 0
            shut[reached], shut[:, -1] = False, reached
        self.closed[self.group[stopped]] |= shut
        level = keys(self._starts(self.given)[stopped], self.climb.steps[self.order[stopped]], self.given[stopped])
        for number, units in enumerate(shut):
            run = int(self.order[stopped[number]])
            self.closures.append(CapClosure(int(level[number]), run, int(self.group[stopped[number]]), units))

    def _take(self, counts: IntArray) -> None:
        self.left = self.left - self._sums(counts - self.given)
        self.given = counts

    def _starts(self, counts: IntArray) -> IntArray:
        back = np.empty_like(counts)
        back[self.order] = counts
        return self.climb.starts(back)[self.order]

    def _sums(self, counts: IntArray) -> IntArray:
        """(groups, units) the needs of that number of tasks."""
        takes = counts[:, None] * self.takes
        sums = np.zeros((self.groups, takes.shape[1]), dtype=np.int64)
        np.add.at(sums, self.group, takes)
        return sums
