"""How many tasks of each run have their turn before the limits are reached?

The rule, one task at a time: next is the first task of the sharer with the lowest level, ties in the sharers' order. If
it fits, its sharer rises. If it does not fit, the limits that it does not fit are closed, and every run that takes of
them waits. So nobody overtakes within a limit, and nobody waits for a limit that he does not need. Sharers of weight 0
have their turns when nobody else has one.

The same in closed form: the largest level up to which all tasks fit is found by halving, the ties at that level are
counted up in order, the limits are closed, and so on with the runs that are left. There are at most as many rounds as
limits, for each of the two kinds of sharers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argosy.sharing.columns import BoolArray, Columns, IntArray, Limits, Sharers
from argosy.sharing.levels import Climb, Heights

OPEN = -1  # in `held_by`: nothing holds the run back


@dataclass(frozen=True, slots=True)
class Filled:
    """Who gets what."""

    counts: IntArray  # (runs,) tasks
    held_by: IntArray  # (runs,) the first closed limit that the rest of a run's tasks needs; OPEN = none
    closed: BoolArray  # (limits,)
    free: IntArray  # (limits,) what is left


def fill(columns: Columns, sharers: Sharers, limits: Limits) -> Filled:
    """Equal, task by task, to dealing out one task at a time. Changes nothing."""
    climb = Climb.of(columns, sharers, limits)
    dealing = _Dealing(climb, limits.free.copy(), np.zeros(len(limits), dtype=bool))
    has_share = sharers.weight[columns.sharer] > 0
    for turn in (has_share, ~has_share):
        if turn.any():
            dealing.deal(np.where(turn, columns.wants, 0))
    return dealing.filled()


class _Dealing:
    """What is given and left while the tasks are dealt out."""

    def __init__(self, climb: Climb, free: IntArray, closed: BoolArray) -> None:
        self.climb, self.free, self.closed = climb, free, closed
        self.takes = climb.columns.takes
        self.counts = np.zeros(len(self.takes), dtype=np.int64)

    def deal(self, wants: IntArray) -> None:
        """To the runs that want any, until each has what it wants or waits for a limit."""
        level, wants = 0, np.minimum(wants, self._most())
        while True:
            shut = (self.takes[:, self.closed] > 0).any(axis=1)
            wants = np.where(shut, np.minimum(wants, self.counts), wants)
            if not (wants > self.counts).any():
                return
            heights = Heights.of(self.climb.starts(wants), self.climb.steps, wants)
            level = self._highest(heights, level)
            self._give(np.maximum(heights.below(level), self.counts))
            if not (wants > self.counts).any():
                return
            self._give_ties(np.maximum(heights.below(level + 1), self.counts))

    def filled(self) -> Filled:
        """What came of it."""
        needs = (self.takes > 0) & self.closed & (self.counts < self.climb.columns.wants)[:, None]
        held_by = np.where(needs.any(axis=1), needs.argmax(axis=1) if len(self.free) else OPEN, OPEN)
        return Filled(self.counts, held_by, self.closed, self.free)

    def _most(self) -> IntArray:
        """(runs,) one task more than there is room for: the one that closes a limit."""
        room = np.where(self.takes > 0, self.free // np.maximum(self.takes, 1), np.iinfo(np.int64).max - 1)
        most: IntArray = room.min(axis=1, initial=np.iinfo(np.int64).max - 1) + 1
        return self.counts + most

    def _highest(self, heights: Heights, low: int) -> int:
        """The highest level below which everything fits. low: a level at which it does."""
        high = max(low, heights.last())
        if self._fits(heights.below(high)):
            return high
        width = 1
        while low + width < high and self._fits(heights.below(low + width)):
            low, width = low + width, width * 64
        high = min(high, low + width)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(heights.below(middle)) else (low, middle)
        return low

    def _fits(self, counts: IntArray) -> bool:
        more = np.maximum(counts - self.counts, 0) @ self.takes
        return bool((more <= self.free).all())

    def _give(self, counts: IntArray) -> None:
        self.free = self.free - (counts - self.counts) @ self.takes
        self.counts = counts

    def _give_ties(self, counts: IntArray) -> None:
        """Of the tasks whose turn is at one level, in the sharers' order, those before the first that does not fit.
        What that one needs and does not find is closed."""
        more = counts - self.counts
        sums = np.cumsum(more[:, None] * self.takes, axis=0)
        over = np.flatnonzero((sums > self.free).any(axis=1))
        if not len(over):
            self._give(counts)
            return
        stopped = int(over[0])
        given = np.where(np.arange(len(more)) < stopped, counts, self.counts)
        self._give(given)
        takes = self.takes[stopped]
        room = int((self.free[takes > 0] // takes[takes > 0]).min())
        self._give(given + np.where(np.arange(len(more)) == stopped, room, 0))
        self.closed = self.closed | (takes > self.free)
