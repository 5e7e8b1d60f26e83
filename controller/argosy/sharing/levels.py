"""The level of each sharer, and how far each task raises it.

The level of a sharer is its largest share of any limit, over its weight (dominant resource fairness, Ghodsi and others
2011; the resources are the limits). Levels are whole multiples of 2^-40, so that ties are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.sharing.columns import ONE_FACTOR, BoolArray, Columns, IntArray, Limits, Sharers

_STEPS, _BITS = 4, 10  # bits of the whole division, and of each of its steps
_HIGHEST = 1_000  # times a whole limit: levels are clipped here
FULL = 1 << 60  # above every level that can be reached


def scaled(
    amount: IntArray, capacity: IntArray, weight: IntArray, parts: IntArray, factor: IntArray | None = None
) -> IntArray:
    """ceil(amount x parts x 2^40 / (capacity x weight x factor)), exactly, in divisions of 10 bits each. factor: in
    parts of ONE_FACTOR; None = 1.

    Rounded up, so that only an amount of 0 gives 0. `columns` keeps both products below 2^51, so that neither they nor
    the shifted remainders exceed 63 bits.
    """
    below, above = np.maximum(capacity, 1) * np.maximum(weight, 1), amount * parts
    if factor is not None:
        below, above = below * factor, above * ONE_FACTOR
    found, rest = np.divmod(np.minimum(above, below * _HIGHEST), below)
    for _ in range(_STEPS):
        digits, rest = np.divmod(rest << _BITS, below)
        found = (found << _BITS) + digits
    rounded: IntArray = found + (rest > 0)
    return rounded


@dataclass(frozen=True, slots=True)
class LevelSteps:
    """How the sharers' levels rise as their runs get tasks."""

    columns: Columns
    levels: IntArray  # (runs, limits) of the run's sharer before any task is given by turns
    steps: IntArray  # (runs, limits) how far one task raises its sharer

    @classmethod
    def of(cls, columns: Columns, sharers: Sharers, limits: Limits) -> LevelSteps:
        """Levels from present use; weight 0 counts as 1 among sharers of weight 0."""
        weight, parts = sharers.weight[:, None], sharers.parts[:, None]
        factor, run = sharers.factor[:, None], columns.sharer
        levels = scaled(sharers.used, limits.capacity, weight, parts, factor)
        steps = scaled(columns.takes, limits.capacity, weight[run], parts[run], factor[run])
        return cls(columns, levels[run], steps)

    def after(self, given: IntArray) -> LevelSteps:
        """The same once each run has been `given` tasks out of turn: a run starts above those of its sharer's later
        runs too."""
        run = np.arange(len(given))
        last = np.searchsorted(self.columns.sharer, self.columns.sharer, side="right")
        return replace(self, levels=self.levels + self._rise(given, run + 1, last))

    def starts(self, counts: IntArray) -> IntArray:
        """(runs, limits) the level of its sharer before a run's first task, if every run gets `counts` tasks."""
        first = np.searchsorted(self.columns.sharer, self.columns.sharer)
        return self.levels + self._rise(counts, first, np.arange(len(counts)))

    def _rise(self, counts: IntArray, first: IntArray, end: IntArray) -> IntArray:
        """(runs, limits) how far the `counts` tasks of the runs from `first` to before `end` raise their sharer; at
        most FULL."""
        exact = _sums_before(counts[:, None] * self.steps)  # may overflow; differences within a sharer are correct
        rough = _sums_before(counts[:, None] * self.steps.astype(np.float64))
        return np.where(rough[end] - rough[first] >= FULL, FULL, exact[end] - exact[first])


def _sums_before(rises: NDArray[Any]) -> NDArray[Any]:
    """(runs + 1, limits) the rises of all runs before each one; the last row is the sum of all."""
    sums = np.zeros((len(rises) + 1, rises.shape[1]), dtype=rises.dtype)
    np.cumsum(rises, axis=0, out=sums[1:])
    return sums


def keys(starts: IntArray, steps: IntArray, task: IntArray) -> IntArray:
    """(n,) the level of each run's task of this number, counted from 0."""
    found: IntArray = (starts + task[:, None] * steps).max(axis=1, initial=0)
    return found


@dataclass(frozen=True, slots=True)
class TasksBelowLevel:
    """The number of tasks of each run below a level, prepared for many queries."""

    starts: IntArray  # (limits, runs)
    steps: IntArray  # (limits, runs), 1 if a task takes nothing
    nothing: BoolArray  # (limits, runs) whether a task takes nothing
    wants: IntArray  # (runs,)

    @classmethod
    def of(cls, starts: IntArray, steps: IntArray, wants: IntArray) -> TasksBelowLevel:
        lying = np.ascontiguousarray(steps.T)
        return cls(np.ascontiguousarray(starts.T), np.maximum(lying, 1), lying == 0, wants)

    def below(self, level: int | IntArray) -> IntArray:
        """(runs,) how many tasks come before `level`: one for all runs, or one for each. With (levels, 1, 1) of them,
        (levels, runs)."""
        counts = -((self.starts - level) // self.steps)
        counts = np.where(self.nothing & (counts > 0), FULL, counts)
        found: IntArray = np.minimum(
            np.maximum(counts.min(axis=-2, initial=FULL), 0), self.wants
        )  # np.clip takes longer
        return found

    def last(self) -> int:
        """A level above that of every task."""
        some = self.wants > 0
        ends = self.starts + np.where(self.nothing, 0, (self.wants - 1) * self.steps)
        return int(ends[:, some].max(initial=0)) + 1
