"""Which filling of each size is worth most under given values of the tasks, and at most how much is any filling worth?

Sizes that tasks could not make worth their price even if they could be cut (`relaxed`) need no knapsack. The rest is
looked up in one table per group: small sizes on a finer grid than large ones, and those with GPUs by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from controller.market.allocation.filling import fill, order_by_worth
from controller.market.allocation.grid import Grid, grid_for
from controller.market.allocation.knapsack import LARGEST_VALUE, fill_table, patterns_at, values_at
from controller.market.allocation.relaxed import relaxed_worth
from controller.placement.arrays import BoolArray, FloatArray, IntArray

_QUARTER = 4  # a size is small when it is at most a quarter of the largest on both axes


class Pricer:
    """Prices the fillings of `sizes` (k, 3) with tasks of `need` (s, 3), at most `most` (s,) of a shape on one instance."""

    def __init__(self, sizes: IntArray, need: IntArray, most: IntArray) -> None:
        self.sizes, self.need, self.most = sizes, need, most
        self._grids: dict[tuple[int, ...], Grid] = {}
        self.exact = True
        """Whether every table so far had a grid on which no need was rounded."""

    def fillings(self, value: FloatArray, floor: FloatArray, work: int) -> tuple[IntArray, FloatArray]:
        """(k, s) the best fillings found and (k,) their worth; for sizes that cannot be worth more than `floor` (k,) none.

        work: how many cells times shapes a table may have. Needs are rounded up to the grid: every filling fits.
        """
        pattern = np.zeros((len(self.sizes), len(self.need)), dtype=np.int64)
        for rows, shapes, grid, scale in self._tables(value, floor, work):
            need, sizes = grid.up(self.need[shapes]), grid.down(self._useful(rows, shapes))
            worth = np.floor(value[shapes] * scale).astype(np.int64)
            kept = _undominated(need, worth)
            layers = fill_table(need[kept], worth[kept], sizes)
            pattern[np.ix_(rows, shapes[kept])] = patterns_at(layers, need[kept], worth[kept], sizes)
        pattern = self._completed(np.minimum(pattern, self.most), value)
        return pattern, pattern @ value

    def at_most(self, value: FloatArray, floor: FloatArray, work: int) -> FloatArray:
        """(k,) what no filling of a size is worth more than. Never underestimated where it could exceed `floor` (k,):

        needs are rounded down to the grid and values up.
        """
        bound = relaxed_worth(self.sizes, self.need, value)
        for rows, shapes, grid, scale in self._tables(value, floor, work):
            need, sizes = grid.down(self.need[shapes]), grid.down(self._useful(rows, shapes))
            if (need == 0).all(axis=1).any():
                continue  # too coarse to say anything: the relaxation stands
            worth = np.ceil(value[shapes] * scale).astype(np.int64)
            kept = _undominated(need, worth)
            layers = fill_table(need[kept], worth[kept], sizes)
            bound[rows] = np.minimum(bound[rows], values_at(layers, sizes) / scale * (1 + 1e-12))
        return bound

    def _tables(
        self, value: FloatArray, floor: FloatArray, work: int
    ) -> Iterator[tuple[IntArray, IntArray, Grid, float]]:
        """(sizes, shapes, grid, whole numbers per USD) of each table that has to be filled."""
        worthy = np.flatnonzero(value > 0)
        active = relaxed_worth(self.sizes, self.need, value) > floor * (1 + 1e-9)
        for rows in self._groups(active, bool(self.need[worthy, 2].any())):
            gpus = int(self.sizes[rows, 2].max())
            shapes = worthy[self.need[worthy, 2] <= gpus]
            shapes = shapes[(self.need[shapes] <= self.sizes[rows].max(axis=0)).all(axis=1)]
            if not len(shapes):
                continue
            useful = self._useful(rows, shapes)
            corner = useful.max(axis=0)
            layers = 1 + (gpus if self.need[shapes, 2].any() else 0)
            grid = self._grid(shapes, value, corner, max(1, work // (layers * len(shapes))))
            most = float(relaxed_worth(corner[None, :] + 2 * grid.up(corner * 0 + 1), self.need[shapes], value[shapes])[0])
            yield rows, shapes, grid, _scale(most, useful, self.need[shapes], value[shapes])

    def _groups(self, active: BoolArray, gpu_tasks: bool) -> list[IntArray]:
        with_gpus = active & (self.sizes[:, 2] > 0) & gpu_tasks
        plain = active & ~with_gpus
        largest = self.sizes[plain, :2].max(axis=0, initial=0)
        small = plain & (self.sizes[:, :2] * _QUARTER <= largest).all(axis=1)
        return [np.flatnonzero(rows) for rows in (small, plain & ~small, with_gpus) if rows.any()]

    def _useful(self, rows: IntArray, shapes: IntArray) -> IntArray:
        """The sizes less what no mix of the shapes could use: memory beyond the hungriest shape on all cpu, and so on."""
        sizes, need = self.sizes[rows].copy(), self.need[shapes]
        if not need[:, 2].any():
            sizes[:, 2] = 0
        for axis, other in ((1, 0), (0, 1)):
            if (need[:, other] > 0).all():
                ratio = float((need[:, axis] / need[:, other]).max())
                usable = np.ceil(self.sizes[rows, other] * ratio * (1 + 1e-12)).astype(np.int64)
                sizes[:, axis] = np.minimum(sizes[:, axis], usable)
        return sizes

    def _grid(self, shapes: IntArray, value: FloatArray, corner: IntArray, cells: int) -> Grid:
        key = (*corner.tolist(), cells, *shapes.tolist())
        if key not in self._grids:
            self._grids[key] = grid_for(self.need[shapes], value[shapes], (int(corner[0]), int(corner[1])), cells)
        self.exact &= self._grids[key].exact
        return self._grids[key]

    def _completed(self, pattern: IntArray, value: FloatArray) -> IntArray:
        """Rounding leaves room: fill it up."""
        free = self.sizes - pattern @ self.need
        order = order_by_worth(self.sizes, self.need, value, (1.0, 1.0, 1.0))
        return np.minimum(pattern + fill(free, self.need, order, self.most), self.most)
