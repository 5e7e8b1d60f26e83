"""The most valuable filling of each size where tasks share GPUs, and upper bounds of its worth.

In each of the `ways` to use the GPUs of a size, they are one axis, as cpu and memory are, but tasks take another part
of it in each: nearly every way would need a table. So one LP values all of them as if tasks could be split, and the few
that may be worth more than their price are solved by branch and bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.market.allocation.basket import fill, fillings, order_by_worth
from argosy.market.allocation.pricing import Pricer
from argosy.market.allocation.problem import Problem
from argosy.market.allocation.ways import Kind
from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_UP = 1 + 1e-9  # above the rounding loss of float sums
_SURELY = 1 + 1e-5  # above the tolerances of branch and bound
_BETTER = 1 + 1e-6
_WHOLE = 1e-7
_MOST = 80  # ways that are looked at for one bound
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
        self._problem, self._ways, self._price = problem, ways, problem.cheapest(problem.offered.price)

    def fillings(self, value: FloatArray, floor: FloatArray, work: int) -> tuple[IntArray, FloatArray]:
        """Quick ones; if none is worth more than `floor`, those around the whole tasks of split ones; if none of these
        is, those of branch and bound."""
        sizes, shapes = np.arange(len(self.sizes)), np.arange(len(self.need))
        pattern, worth = fillings(self._problem, sizes, shapes, value, self.most)
        if (worth > floor * _BETTER).any():
            return pattern, worth
        size, better = self._ways.size, 0
        least = np.maximum(np.maximum(floor, worth), 1e-12)
        bound, held = self._in_each_way(value, least)
        around = self._filled_up(held, value)
        best = self._ways.best_of(np.arange(len(bound)), around @ value)
        more = around[best] @ value > worth
        pattern[more], worth[more] = around[best[more]], around[best[more]] @ value
        if (worth > floor * _BETTER).any():
            return pattern, worth
        promise = bound / least[size]
        for way in np.argsort(-promise, kind="stable")[: int((promise > _BETTER).sum())].tolist():
            found, _ = self._whole(way, value)
            if float(found @ value) > worth[size[way]]:
                pattern[size[way]], worth[size[way]] = found, float(found @ value)
                better += worth[size[way]] > floor[size[way]] * _BETTER
            if better == _ENOUGH:
                break
        return pattern, worth

    def relaxed(self, value: FloatArray) -> FloatArray:
        """As `Pricer.relaxed`."""
        return np.maximum.reduceat(self._in_each_way(value, self._price)[0], self._ways.starts)

    def counted(self, rows: IntArray, value: FloatArray, count: IntArray) -> FloatArray:
        """The relaxation counts tasks already."""
        return np.full(len(rows), np.inf)

    def at_most(self, value: FloatArray, active: BoolArray, work: int) -> FloatArray:
        """By branch and bound where the relaxation is worth more than the price."""
        size, bound = self._ways.size, self._in_each_way(value, self._price)[0]
        excess = np.where(active[size], bound / self._price[size], 0.0)
        for way in np.argsort(-excess, kind="stable")[: min(_MOST, int((excess > 1).sum()))].tolist():
            bound[way] = min(bound[way], self._whole(way, value)[1])
        return np.maximum.reduceat(bound, self._ways.starts)

    def _in_each_way(self, value: FloatArray, floor: FloatArray) -> tuple[FloatArray, IntArray]:
        """(w,) at least the worth of any filling in each way, as if tasks could be split, and (w, s) the whole tasks of
        one. The ways under a cover are looked at only where it is worth more than the `floor` (k,) of its size;
        elsewhere they count as 0."""
        kind, size = self._ways.kind, self._ways.size
        found, held = self._split(value, kind <= Kind.COVER)
        above = (kind == Kind.COVER) & (found > floor[size])
        open_ = np.isin(size, size[above]) & (kind > Kind.COVER)
        found[above] = 0.0
        below, more = self._split(value, open_)
        return np.where(open_, below, found), np.where(open_[:, None], more, held)

    def _split(self, value: FloatArray, ways: BoolArray) -> tuple[FloatArray, IntArray]:
        """The same of `ways` (w,), and 0 of the others."""
        fits = self._fits & (value > 0) & ways[:, None]
        way, shape = np.nonzero(fits)
        rows = way[:, None] * self._size.shape[1] + np.arange(self._size.shape[1])
        share = self._share[way, shape]
        lp = _program(value[shape], self.most[shape], rows, share, self._size.size)
        lp.run()
        price = np.maximum(-np.array(lp.getSolution().row_dual), 0.0).reshape(self._size.shape)
        above = np.maximum(value[shape] - (share * price[way]).sum(axis=1), 0)
        found = price.sum(axis=1) + np.bincount(way, weights=above * self.most[shape], minlength=len(price))
        held = np.zeros(fits.shape, dtype=np.int64)
        held[way, shape] = np.floor(np.array(lp.getSolution().col_value) + _WHOLE)
        return np.asarray(found * _UP), held

    def _filled_up(self, held: IntArray, value: FloatArray) -> IntArray:
        """(w, s) `held` and what fits beside it; nothing where it does not fit, and in covers."""
        free = self._size - np.einsum("ws,wsa->wa", held, self._need)
        real = (free >= 0).all(axis=1) & (self._ways.kind != Kind.COVER)
        units = self._ways.mean_units(np.arange(len(free)))
        need = np.column_stack([self.need[:, :2], units, *([] if self.most_tasks is None else [units**0])])
        order = order_by_worth(self._size, need, value, (1.0,) * need.shape[1])
        full = np.minimum(held + fill(free, need, order, self.most, self._ways.units), self.most)
        return np.where(real[:, None], full, 0)

    def _whole(self, way: int, value: FloatArray) -> tuple[IntArray, float]:
        """(s,) a filling of one way, the best unless that takes long, and at least the worth of any."""
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
