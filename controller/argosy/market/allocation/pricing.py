"""The most valuable filling of each size at given task values, and upper bounds of its worth.

Some sizes cannot be worth their price even if tasks could be split (`filling_bounds`); they need no knapsack. The other
sizes are looked up in one table per group: small sizes on a finer grid than large ones, and those with GPUs apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.market.allocation.basket import fill, order_by_worth, with_places
from argosy.market.allocation.filling_bounds import (
    by_place_price,
    counted_worth,
    covering,
    relaxed_worth,
    undominated,
    whole_parts,
)
from argosy.market.allocation.knapsack import (
    LARGEST_VALUE,
    Grid,
    Layer,
    fill_table,
    grid_for,
    near_best_at,
    patterns_at,
    values_at,
)
from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_NEGLIGIBLE = 1e-9
_LEAST_VALUE = 1e-12  # USD per hour: less counts as nothing, and in bounds as this much
_PLACE_TABLES = 3  # prices of a place that have tables
_SMALL = 3  # grid steps on every axis
MOST_GPUS = 32  # on an instance: one layer of the table each; above, quick fillings and the relaxation are used


Near = tuple[IntArray, IntArray, FloatArray]
"""(n,) sizes, (n, s) fillings of them, and (k,) at least the worth of any of each size; infinite if not known."""


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """rows, shapes: of the pricer. sizes: of the rows, in steps of the grid. cells: layers, needs and values. scale: of
    the values per USD. exact: of the grid."""

    rows: IntArray
    shapes: IntArray
    sizes: IntArray
    cells: tuple[list[Layer], IntArray, IntArray]
    scale: float
    exact: bool


class Pricer:
    """Prices the fillings of `sizes` (k, 3) with tasks of `need` (s, 3), at most `most` (s,) of a shape on each.

    most_tasks: (k,) the most tasks on each. A table does not count tasks. So a place gets a price, as in
    `filling_bounds`, and there is a table for each price: the higher it is, the fewer and more valuable are the tasks
    of a filling.
    """

    def __init__(self, sizes: IntArray, need: IntArray, most: IntArray, most_tasks: IntArray | None = None) -> None:
        self.sizes, self.need, self.most, self.most_tasks = sizes, need, most, most_tasks
        self._grids: dict[tuple[int, ...], Grid] = {}
        self.exact = True
        """Whether every table so far had a grid on which no need was rounded."""

    def fillings(self, value: FloatArray, floor: FloatArray, work: int) -> tuple[IntArray, IntArray, FloatArray]:
        """(n,) sizes, (n, s) good fillings of them and (k,) the worth of the best; quick ones for sizes that cannot
        exceed `floor` (k,). Here there is one of each size.

        work: the most cells times shapes of a table. Needs are rounded up to the grid, so every filling fits.
        """
        value = np.where(value < _LEAST_VALUE, 0.0, value)
        relaxed, tables = self._relaxed(value)
        active = relaxed > floor * (1 + _NEGLIGIBLE)
        best, worth = np.zeros((len(self.sizes), len(self.need)), dtype=np.int64), np.full(len(self.sizes), -1.0)
        for price, _ in tables:
            above = np.where(value - price < _LEAST_VALUE, 0.0, value - price)
            pattern = self._completed(self._filled(above, active, work), value)
            total = pattern @ value
            better = total > worth
            best[better], worth[better] = pattern[better], total[better]
        return np.arange(len(best)), best, worth

    def _filled(self, value: FloatArray, active: BoolArray, work: int) -> IntArray:
        """(k, s) the fillings of the tables, at most `most` of a shape."""
        pattern = np.zeros((len(self.sizes), len(self.need)), dtype=np.int64)
        for table in self._filled_tables(value, active, work, np.floor):
            pattern[np.ix_(table.rows, table.shapes)] = patterns_at(*table.cells, table.sizes)
        return np.minimum(pattern, self.most)

    def near_best(self, value: FloatArray, floor: FloatArray, active: BoolArray, work: int) -> Near:
        """Fillings of the `active` sizes (k,) that are worth more than their `floor` (k,), by tables alone."""
        size, pattern = [np.zeros(0, dtype=np.int64)], [np.zeros((0, len(self.need)), dtype=np.int64)]
        bound = np.full(len(self.sizes), np.inf)
        for table in self._filled_tables(value, active, work, np.ceil):
            row, held = near_best_at(*table.cells, table.sizes, floor[table.rows] * table.scale)
            full = np.zeros((len(row), len(self.need)), dtype=np.int64)
            full[:, table.shapes] = held
            size.append(table.rows[row])
            pattern.append(np.minimum(full, self.most))
            if table.exact:
                bound[table.rows] = values_at(table.cells[0], table.sizes) / table.scale * (1 + _NEGLIGIBLE)
        return np.concatenate(size), np.concatenate(pattern), bound

    def _filled_tables(self, value: FloatArray, active: BoolArray, work: int, whole: Any) -> Iterator[_Table]:
        """Needs are rounded up, values to `whole` numbers."""
        for rows, shapes, grid in self._tables(value, active, work):
            need, sizes = grid.up(self.need[shapes]), grid.down(self._useful(rows, shapes))
            scale = _scale(sizes, need, value[shapes])
            worth = whole(value[shapes] * scale).astype(np.int64)
            kept = undominated(need, worth)
            cells = fill_table(need[kept], worth[kept], sizes), need[kept], worth[kept]
            yield _Table(rows, shapes[kept], sizes, cells, scale, grid.exact)

    def whole_parts(self, value: FloatArray, floor: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """As `fillings`: those around the whole tasks of cut ones, for sizes that may exceed `floor` (k,).

        No need is rounded: this finds exact fits, such as one task for each GPU.
        """
        active = relaxed_worth(self.sizes, self.need, value, self.most_tasks) > floor * (1 + _NEGLIGIBLE)
        sizes, need = self.sizes, self.need
        if self.most_tasks is not None:
            sizes, need = with_places(sizes, need, self.most_tasks)
        pattern = np.zeros((len(sizes), len(need)), dtype=np.int64)
        pattern[active] = whole_parts(sizes[active], need, value, self.most)
        pattern = self._completed(pattern, value)
        return np.arange(len(pattern)), pattern, pattern @ value

    def relaxed(self, value: FloatArray) -> FloatArray:
        """(k,) an upper bound of the worth of any filling, as if tasks could be split: see `relaxed_worth`."""
        return relaxed_worth(self.sizes, self.need, value, self.most_tasks)

    def counted(self, rows: IntArray, value: FloatArray, count: IntArray) -> FloatArray:
        """(r,) the same for some sizes, with at most `count` (s,) tasks: see `counted_worth`."""
        sizes, need = self.sizes[rows], self.need
        if self.most_tasks is not None:
            sizes, need = with_places(sizes, need, self.most_tasks[rows])
        return counted_worth(sizes, need, value, count)

    def at_most(self, value: FloatArray, active: BoolArray, work: int) -> FloatArray:
        """(k,) an upper bound of the worth of any filling of each size, sharper for the sizes that are `active` (k,).

        Needs are rounded down to the grid and values up, so that the worth is never underestimated.
        """
        value = np.where((value > 0) & (value < _LEAST_VALUE), _LEAST_VALUE, value)
        bound, tables = self._relaxed(value)
        places = np.zeros(len(self.sizes)) if self.most_tasks is None else self.most_tasks * (1 + _NEGLIGIBLE)
        for price, rows in tables:
            above = np.maximum(value - price, 0)
            above = np.where((above > 0) & (above < _LEAST_VALUE), _LEAST_VALUE, above)
            bound = np.minimum(bound, self._at_most(above, active & rows, work) + price * places)
        return bound

    def _at_most(self, value: FloatArray, active: BoolArray, work: int) -> FloatArray:
        """(k,) the same by tables alone; infinite for sizes that are in none."""
        bound = np.full(len(self.sizes), np.inf)
        for rows, shapes, grid in self._tables(value, active, work):
            need, useful = grid.down(self.need[shapes]), self._useful(rows, shapes)
            # Needs that are small for the grid pay for cpu and memory by a price each; other tasks count with their
            # worth above that. Rounding then affects only those.
            small = (need < _SMALL).all(axis=1) & ~np.array(grid.exact)
            price = covering(self.need[shapes[small], :2], value[shapes[small]], useful[:, :2].max(axis=0))
            above = value[shapes] - self.need[shapes, :2] @ price
            table = np.flatnonzero(~small & (above > 0))
            linear = useful[:, :2] @ price
            if len(table):
                need, sizes, above = need[table], grid.down(useful), above[table]
                scale = _scale(sizes, need, above)
                worth = np.ceil(above * scale).astype(np.int64)
                kept = undominated(need, worth)
                linear = linear + values_at(fill_table(need[kept], worth[kept], sizes), sizes) / scale
            bound[rows] = np.minimum(bound[rows], linear * (1 + 1e-11))
        return bound

    def _relaxed(self, value: FloatArray) -> tuple[FloatArray, list[tuple[float, BoolArray]]]:
        """(k,) the relaxation, and the sizes that use a table, each at the price of a place with the lowest bound.

        Tables take long: there is one at no price, for sizes whose most does not bind, and `_PLACE_TABLES` others.
        """
        if self.most_tasks is None:
            return relaxed_worth(self.sizes, self.need, value), [(0.0, np.ones(len(self.sizes), dtype=np.bool_))]
        prices, bounds = by_place_price(self.sizes, self.need, value, self.most_tasks)
        popular = np.bincount(bounds.argmin(axis=0), minlength=len(prices))
        popular[0] = len(self.sizes) + 1
        some = np.sort(np.argsort(-popular, kind="stable")[: 1 + _PLACE_TABLES])
        best = some[bounds[some].argmin(axis=0)]
        tables = [(float(prices[number]), best == number) for number in some.tolist()]
        return bounds.min(axis=0), [(price, rows) for price, rows in tables if rows.any()]

    def _tables(self, value: FloatArray, active: BoolArray, work: int) -> Iterator[tuple[IntArray, IntArray, Grid]]:
        """(sizes, shapes, grid) of each table that has to be filled."""
        worthy = np.flatnonzero(value > 0)
        worthy = worthy[undominated(self.need[worthy], value[worthy])]
        for rows in self._groups(active, bool(self.need[worthy, 2].any())):
            shapes = worthy[(self.need[worthy] <= self.sizes[rows].max(axis=0, initial=0)).all(axis=1)]
            if len(rows) and len(shapes):
                corner = self._useful(rows, shapes).max(axis=0)
                passes = int((self.need[shapes, 2] == 0).sum() + (self.need[shapes, 2] > 0).sum() * corner[2])
                yield rows, shapes, self._grid(shapes, value, corner, max(1, work // passes))

    def _groups(self, active: BoolArray, gpu_tasks: bool) -> list[IntArray]:
        """Active sizes that share a table: similar in GPUs, and within a factor of four of each other."""
        if not active.any():
            return []
        largest = np.maximum(self.sizes[active, :2].max(axis=0), 1)
        share = np.maximum((self.sizes[:, :2] / largest).max(axis=1), 1e-9)
        key = np.ceil(np.log(share) / np.log(4) - 1e-9).astype(np.int64)
        gpus = np.ceil(np.log2(np.maximum(self.sizes[:, 2], 1))).astype(np.int64) + 1
        key = np.where((self.sizes[:, 2] > 0) & gpu_tasks, gpus, np.maximum(key, -2))
        return [
            np.flatnonzero(active & (key == group) & (self.sizes[:, 2] * gpu_tasks <= MOST_GPUS))
            for group in np.unique(key[active]).tolist()
        ]

    def _useful(self, rows: IntArray, shapes: IntArray) -> IntArray:
        """The sizes without amounts that no mix of the shapes could use, such as memory beyond the ratio of every
        shape."""
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
        """The pattern without the least valuable tasks above the most, and with the free room filled."""
        sizes, need = self.sizes, self.need
        if self.most_tasks is not None:
            pattern = cut_to(pattern, value, self.most_tasks)
            sizes, need = with_places(sizes, need, self.most_tasks)
        free = sizes - pattern @ need
        order = order_by_worth(sizes, need, value, (1.0,) * sizes.shape[1])
        full: IntArray = np.minimum(pattern + fill(free, need, order, self.most), self.most)
        return full


def cut_to(pattern: IntArray, value: FloatArray, most_tasks: IntArray) -> IntArray:
    """The most valuable tasks of each pattern (k, s), at most `most_tasks` (k,)."""
    order = np.argsort(-value, kind="stable")
    before = np.minimum(pattern[:, order].cumsum(axis=1), most_tasks[:, None])
    kept = np.empty_like(pattern)
    kept[:, order] = np.diff(before, axis=1, prepend=0)
    return kept


def _scale(sizes: IntArray, need: IntArray, value: FloatArray) -> float:
    """Whole numbers per USD, so that no cell of the table can exceed LARGEST_VALUE.

    A filling uses at most the whole of each of three axes: it is worth at most three times the best value per share.
    """
    share = (need / np.maximum(sizes.max(axis=0), 1)).sum(axis=1)
    most = 3 * float((value / share).max())
    return LARGEST_VALUE / 2 / max(most, float(value.max()))
