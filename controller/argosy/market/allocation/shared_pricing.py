"""Good fillings of each size where tasks share GPUs, and upper bounds of their worth.

In each of the `ways` to use the GPUs of a size, they are one axis, like cpu and memory, but a task's part of it differs
from way to way. One LP values all ways as if tasks could be split. Ways that may be worth more than their price share a
table if tasks take the same parts in them. If tables round needs, branch and bound follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy.market.allocation.basket import fill, order_by_worth
from argosy.market.allocation.knapsack import steps_for
from argosy.market.allocation.pricing import MOST_GPUS, Near, Pricer, cut_to
from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_UP = 1 + 1e-9  # above the rounding loss of float sums
_SURELY = 1 + 1e-5  # above the tolerances of branch and bound
_BETTER = 1 + 1e-6
_WHOLE = 1e-7
_MOST = 80  # ways that are looked at for one bound
_LOOKED = 10  # ways in one round
_UNSURE = 1.01  # times the worth that a table found
_FEW = 32  # shapes: branch and bound takes milliseconds
_ENOUGH = 4  # patterns of one round: they change the values of all tasks
_OPTIONS = (("output_flag", False), ("threads", 1), ("random_seed", 1), ("mip_max_nodes", 500), ("mip_rel_gap", 1e-3))


class SharedPricer(Pricer):
    """For a problem whose tasks share GPUs."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.sizes, problem.backlog.need, problem.backlog.count, problem.most_tasks)
        ways, need, most = problem.ways, problem.backlog.need, problem.most_tasks
        amounts = [need[None, :, 0], need[None, :, 1], ways.units, *([] if most is None else [need[None, :, 0] ** 0])]
        self._need = np.stack(np.broadcast_arrays(*amounts), axis=2)  # (w, s, axes)
        columns = [problem.sizes[ways.size, :2], ways.gpus, *([] if most is None else [most[ways.size]])]
        self._size = np.column_stack(columns)
        self._fits = np.asarray((self._need <= self._size[:, None]).all(axis=2))
        self._share = self._need / np.maximum(self._size, 1)[:, None]
        self._ways, self._price = ways, problem.cheapest(problem.offered.price)
        self._at, self._alike = self._fits.nonzero(), list(self._tables_of_ways())
        way, shape = self._at
        rows = way[:, None] * self._size.shape[1] + np.arange(self._size.shape[1])
        self._lp = _program(np.zeros(len(way)), self.most[shape], rows, self._share[way, shape], self._size.size)
        self._lp.setOptionValue("presolve", "off")  # it would discard the basis of the values before
        self._part = np.ones(len(ways.size))
        """(w,) what a filling of whole tasks was worth, as a share of the relaxation."""
        self._solved: dict[tuple[int, bytes], tuple[IntArray, float]] = {}

    def fillings(self, value: FloatArray, floor: FloatArray, work: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Those of tables and around the whole tasks of split ones, in the ways that promise most; and those of branch
        and bound where that is quick or none is worth more than `floor`. The worth counts what ways still promise."""
        (bound, held), least = self._split(value), np.maximum(floor, 1e-12)[self._ways.size]
        rows = np.argsort(-bound / least, kind="stable")[:_LOOKED]
        rows = rows[bound[rows] > least[rows]]
        near, pattern, most = self._near_best(value, least, np.isin(np.arange(len(bound)), rows), work)
        way, pattern = np.append(rows, near), np.vstack([self._filled_up(rows, held[rows], value), pattern])
        best = np.zeros(len(bound))
        np.maximum.at(best, way, pattern @ value)
        promise, found = np.minimum(bound * self._part, most), []
        if len(value) <= _FEW:
            unsure = np.where(promise > best * _UNSURE, promise, 0.0)
            unsure[np.argsort(-unsure / least, kind="stable")[_ENOUGH:]] = 0.0
            found = self._by_branch_and_bound(value, least, unsure, bound)
        if not found and not (best > least * _BETTER).any():
            found = self._by_branch_and_bound(value, least, np.minimum(bound, most), bound)
        way = np.append(way, [row for row, _ in found]).astype(np.int64)
        pattern = np.vstack([pattern, *(filling for _, filling in found)])
        best = np.where(np.isfinite(most), best, np.minimum(bound * self._part, most))
        np.maximum.at(best, way, pattern @ value)
        return self._ways.size[way], pattern, np.maximum.reduceat(best, self._ways.starts)

    def relaxed(self, value: FloatArray) -> FloatArray:
        """As `Pricer.relaxed`."""
        return np.maximum.reduceat(self._split(value)[0], self._ways.starts)

    def counted(self, rows: IntArray, value: FloatArray, count: IntArray) -> FloatArray:
        """The relaxation counts tasks already."""
        return np.full(len(rows), np.inf)

    def at_most(self, value: FloatArray, active: BoolArray, work: int) -> FloatArray:
        """By tables, then by branch and bound, where the relaxation is worth more than the price."""
        size, bound = self._ways.size, self._split(value)[0]
        price = self._price[size]
        near, pattern, most = self._near_best(value, price, bound > price, work)
        bound = np.minimum(bound, most)
        excess, known = np.where(active[size], bound / price, 0.0), (pattern @ value / price[near]).max(initial=1.0)
        for way in np.argsort(-excess, kind="stable")[:_MOST].tolist():
            if excess[way] <= known * _SURELY:
                break  # sharper bounds of less than this would not raise the plan's
            found, worth = self._whole(way, value)
            bound[way], known = min(bound[way], worth), max(known, found @ value / price[way])
        return np.maximum.reduceat(bound, self._ways.starts)

    def _near_best(self, value: FloatArray, least: FloatArray, active: BoolArray, work: int) -> Near:
        """As `Pricer.near_best`, of ways."""
        most, work = np.full(len(least), np.inf), work if len(value) > _FEW else work // 10
        way, pattern = [np.zeros(0, dtype=np.int64)], [np.zeros((0, len(value)), dtype=np.int64)]
        for rows, shapes, pricer, step in self._alike:
            if active[rows].any():
                near, held, best = pricer.near_best(value[shapes], least[rows], active[rows], work)
                way.append(rows[near])
                pattern.append(np.zeros((len(near), len(value)), dtype=np.int64))
                pattern[-1][:, shapes] = held
                most[rows] = best if step == 1 else np.inf
        ways, patterns = np.concatenate(way), np.concatenate(pattern)
        if self.most_tasks is not None:
            patterns = cut_to(patterns, value, self.most_tasks[self._ways.size[ways]])
        return ways, patterns, most

    def _tables_of_ways(self) -> Iterator[tuple[IntArray, IntArray, Pricer, int]]:
        """By group of ways in which tasks take the same parts: the ways, the shapes that fit, their pricer, and its
        step of the GPUs' units."""
        gpus = self._ways.gpus
        many = np.where(gpus > MOST_GPUS, np.ceil(np.log2(np.maximum(gpus, 1))), 0)[:, None]
        alike, of = np.unique(np.hstack([self._ways.units, many.astype(np.int64)]), axis=0, return_inverse=True)
        for number, units in enumerate(alike[:, :-1]):
            rows = np.flatnonzero(of.reshape(-1) == number)
            shapes = np.flatnonzero(self._fits[rows].any(axis=0))
            if len(shapes):
                step = _step(units[shapes], int(gpus[rows].max()))
                sizes = np.column_stack([self._size[rows, :2], gpus[rows] // step])
                need = np.column_stack([self.need[shapes, :2], -(-units[shapes] // step)])
                yield rows, shapes, Pricer(sizes, need, self.most[shapes]), step

    def _split(self, value: FloatArray) -> tuple[FloatArray, IntArray]:
        """(w,) at least the worth of any filling in each way, as if tasks could be split, and (w, s) the whole tasks of
        one."""
        way, shape = self._at
        every, share = np.arange(len(way), dtype=np.int32), self._share[way, shape]
        self._lp.changeColsCost(len(every), every, -value[shape])
        self._lp.run()
        price = np.maximum(-np.array(self._lp.getSolution().row_dual), 0.0).reshape(self._size.shape)
        above = np.maximum(value[shape] - (share * price[way]).sum(axis=1), 0)
        found = price.sum(axis=1) + np.bincount(way, weights=above * self.most[shape], minlength=len(price))
        held = np.zeros(self._fits.shape, dtype=np.int64)
        held[way, shape] = np.floor(np.array(self._lp.getSolution().col_value) + _WHOLE)
        return np.asarray(found * _UP), held

    def _filled_up(self, rows: IntArray, held: IntArray, value: FloatArray) -> IntArray:
        """(r, s) `held` in these ways and what fits beside it; nothing where it does not fit."""
        free = self._size[rows] - np.einsum("ws,wsa->wa", held, self._need[rows])
        real = (free >= 0).all(axis=1)
        units = self._ways.mean_units(rows)
        need = np.column_stack([self.need[:, :2], units, *([] if self.most_tasks is None else [units**0])])
        order = order_by_worth(self._size[rows], need, value, (1.0,) * need.shape[1])
        full = np.minimum(held + fill(free, need, order, self.most, self._ways.units[rows]), self.most)
        return np.where(real[:, None], full, 0)

    def _by_branch_and_bound(
        self, value: FloatArray, least: FloatArray, promise: FloatArray, bound: FloatArray
    ) -> list[tuple[int, IntArray]]:
        """Up to `_ENOUGH` ways and fillings worth more than their `least` (w,), of those whose `promise` (w,) is."""
        found = []
        order = np.argsort(-promise / least, kind="stable")[: int((promise > least * _BETTER).sum())]
        for way in order.tolist():
            filling, most = self._whole(way, value)
            self._part[way] = min(1.0, most / bound[way])
            if float(filling @ value) > least[way] * _BETTER:
                found.append((way, filling))
            if len(found) == _ENOUGH:
                break
        return found

    def _whole(self, way: int, value: FloatArray) -> tuple[IntArray, float]:
        """(s,) a filling of one way, the best unless that takes long, and at least the worth of any."""
        key = (way, value.tobytes())
        if key not in self._solved:
            self._solved[key] = self._solve(way, value)
        return self._solved[key]

    def _solve(self, way: int, value: FloatArray) -> tuple[IntArray, float]:
        shape = np.flatnonzero(self._fits[way] & (value > 0))
        found, unit = np.zeros(len(value), dtype=np.int64), float(value[shape].max(initial=0.0))
        if not len(shape):
            return found, 0.0
        rows = np.broadcast_to(np.arange(self._size.shape[1]), (len(shape), self._size.shape[1]))
        lp = _program(value[shape] / unit, self.most[shape], rows, self._share[way, shape], rows.shape[1])
        every = np.arange(len(shape), dtype=np.int32)
        lp.changeColsIntegrality(len(every), every, np.ones(len(every), dtype=np.uint8))
        lp.run()
        held = np.rint(np.array(lp.getSolution().col_value)).astype(np.int64)
        if len(held) and (held >= 0).all() and (held @ self._need[way, shape] <= self._size[way]).all():
            found[shape] = held
        return found, -float(lp.getInfo().mip_dual_bound) * unit * _SURELY


def pricer_of(problem: Problem) -> Pricer:
    """For its sizes."""
    if problem.shares is not None:
        return SharedPricer(problem)
    return Pricer(problem.sizes, problem.backlog.need, problem.backlog.count, problem.most_tasks)


def _step(units: IntArray, most: int) -> int:
    """The step in which tables round `units` (s,) of at most that many the least."""
    if most <= MOST_GPUS:
        return 1
    step, loss = steps_for(units, np.ones(len(units)) / len(units), most)
    return int(step[np.where(most // step <= MOST_GPUS, loss, np.inf).argmin()])


def _program(worth: FloatArray, most: IntArray, rows: IntArray, share: FloatArray, limits: int) -> Any:
    """Which tasks (n,), at most `most` of each, have the highest worth? They take `share` (n, axes) of `rows` (n,
    axes), of each of which there is 1."""
    import highspy

    engine: Any = highspy.Highs
    lp, none, zero = engine(), np.zeros(0, dtype=np.int32), np.zeros(limits)
    for option, choice in _OPTIONS:
        lp.setOptionValue(option, choice)
    lp.addRows(limits, zero - highspy.kHighsInf, zero + 1, 0, zero.astype(np.int32), none, none.astype(np.float64))
    task, axis = share.nonzero()
    starts = np.searchsorted(task, np.arange(len(worth))).astype(np.int32)
    entries = starts, rows[task, axis].astype(np.int32), share[task, axis]
    lp.addCols(len(worth), -worth, np.zeros(len(worth)), most.astype(np.float64), len(task), *entries)
    return lp
