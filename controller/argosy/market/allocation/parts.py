"""Which parts of every group of tasks go to which size, and what is bought for them, if all may be cut?

An LP in HiGHS, a transportation problem. Columns: tasks of a group on a size, as many as are known; instances of a pool
at its price, up to its depth; tasks left out at a price above all others. Rows: every group's tasks; the cpu, memory
and GPUs of every size. Its duals are prices per axis on each size, and what a task of a group is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.market.allocation.master import OPTIONS, add_columns, add_rows, optimum
from argosy.market.allocation.problem import Offered
from argosy.placement.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PartsSolution:
    """An optimum over the columns that are known. Values and prices are in USD per hour."""

    bought: FloatArray  # (p,) instances
    group_value: FloatArray  # (g,) of one task
    axis_price: FloatArray  # (k, 3) of a cpu unit, a MiB and a GPU on each size
    usd_per_hour: float  # with the penalty for what is left out


class PartsLp:
    """The LP for `count` (g,) tasks with `need` (g, 3) and pools whose sizes hold `capacity` (k, 3)."""

    def __init__(
        self,
        offered: Offered,
        size_of_pool: IntArray,
        capacity: FloatArray,
        need: FloatArray,
        count: FloatArray,
        penalty: float,
    ) -> None:
        import highspy

        self._infinity = float(highspy.kHighsInf)
        engine: Any = highspy.Highs
        self._lp = engine()
        for option, choice in OPTIONS:
            self._lp.setOptionValue(option, choice)
        self._need, self._groups, self._pools = need, len(count), len(offered.price)
        self._capacity = capacity
        self.known: BoolArray = np.zeros((len(capacity), len(count)), dtype=bool)
        add_rows(self._lp, count, np.full(len(count), self._infinity))
        add_rows(self._lp, np.full(capacity.size, -self._infinity), np.zeros(capacity.size))
        each = np.arange(len(count))
        add_columns(
            self._lp, np.full(len(count), penalty), np.full(len(count), self._infinity), each, each, np.ones(len(count))
        )
        pool, axis = np.nonzero(capacity[size_of_pool])
        rows = self._groups + 3 * size_of_pool[pool] + axis
        add_columns(self._lp, offered.price, offered.depth.astype(np.float64), pool, rows, -np.ones(len(pool)))

    def add(self, wanted: BoolArray) -> int:
        """Let groups go to sizes where `wanted` (k, g); how many of these columns are new."""
        size, group = np.nonzero(wanted & ~self.known)
        if not len(size):
            return 0
        self.known[size, group] = True
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(self._need[group] > 0, self._need[group] / self._capacity[size], 0.0)
        entries = np.column_stack([np.ones(len(size)), part])
        rows = np.column_stack([group, self._groups + 3 * size[:, None] + np.arange(3)])
        column, at = np.nonzero(entries)
        none = np.zeros(len(size))
        add_columns(self._lp, none, none + self._infinity, column, rows[column, at], entries[column, at])
        return len(size)

    def solve(self) -> PartsSolution:
        """Unsolved when HiGHS finds no optimum."""
        column, dual = optimum(self._lp)
        full = np.maximum(-dual[self._groups :].reshape(-1, 3), 0)
        return PartsSolution(
            bought=np.maximum(column[self._groups : self._groups + self._pools], 0),
            group_value=np.maximum(dual[: self._groups], 0),
            axis_price=np.where(self._capacity > 0, full / np.maximum(self._capacity, 1e-9), 0.0),
            usd_per_hour=float(self._lp.getObjectiveValue()),
        )
