"""What may the queues have at most, and what is promised to them, whatever is free? As columns.

A group is a queue: the sharers of a queue that is shared by owners are of one group. What it may have is counted in
units of its own (dollars an hour, cpu, GPUs, instances), which need not be limits of the deployment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from argosy.sharing.columns import MOST, BoolArray, Columns, IntArray, Sharers
from argosy.sharing.levels import Climb, scaled

NO_CAP = 1 << 62


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Caps: what a group may still get of each unit."""

    group: IntArray  # (sharers,)
    takes: IntArray  # (runs, units) what a task takes; 0 where its group has no cap
    left: IntArray  # (groups, units)

    @classmethod
    def of(cls, columns: Columns, group: ArrayLike, takes: ArrayLike, left: ArrayLike) -> QueueBounds:
        """left: NO_CAP = it may have any number. What is over-used is not left."""
        groups, room = np.asarray(group, dtype=np.int64), np.asarray(left, dtype=np.int64)
        wanted = np.clip(np.asarray(takes, dtype=np.int64), 0, MOST + 1)
        wanted = np.where(room[groups[columns.sharer]] >= NO_CAP, 0, wanted)
        return cls(groups, wanted, np.clip(room, 0, MOST))

    def of_runs(self, columns: Columns) -> IntArray:
        """(runs,) the group of each."""
        found: IntArray = self.group[columns.sharer]
        return found


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What each group is served with before anybody has a turn by weight, in the one unit that it is promised in."""

    amount: IntArray  # (groups,); 0 = nothing
    used: IntArray  # (sharers,) of that unit
    takes: IntArray  # (runs,) what a task takes of it
    kept_from: IntArray  # (groups,) the limit out of which what is lacking is kept from all others; LENT = it is lent

    @classmethod
    def of(cls, amount: ArrayLike, used: ArrayLike, takes: ArrayLike, kept_from: ArrayLike) -> Guarantees:
        """Amounts are cut as those of limits are."""
        of, has, each = (np.clip(np.asarray(given, dtype=np.int64), 0, MOST) for given in (amount, used, takes))
        return cls(of, has, each, np.asarray(kept_from, dtype=np.int64))

    def climb(self, columns: Columns, sharers: Sharers, group: IntArray) -> Climb:
        """Levels for those who are promised something: the part of it that they have."""
        parts, amount = sharers.parts[:, None], self.amount[group][:, None]
        one = np.ones_like(amount)
        promised = Columns(columns.sharer, columns.wants, self.takes[:, None])
        steps = scaled(promised.takes, amount[columns.sharer], one[columns.sharer], parts[columns.sharer])
        return Climb(promised, scaled(self.used[:, None], amount, one, parts), steps)

    def lacking(self, group: IntArray, of_runs: IntArray, counts: IntArray) -> IntArray:
        """(groups,) what each does not have yet, once `counts` tasks of each run are given."""
        found = self.amount.copy()
        np.subtract.at(found, group, self.used)
        np.subtract.at(found, of_runs, counts * self.takes)
        lacking: IntArray = np.maximum(found, 0)
        return lacking


LENT = -1


@dataclass(frozen=True, slots=True)
class Closing:
    """A unit of a group that was closed, and when: at which level, at which run's turn."""

    level: int
    run: int
    group: int
    units: BoolArray


def none_closed(bounds: QueueBounds) -> BoolArray:
    """(groups, units)"""
    return np.zeros(bounds.left.shape, dtype=bool)
