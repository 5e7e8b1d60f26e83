"""What would a backlog cost if its tasks could be cut into pieces, though not apart from what they need together?

An LP over `directions`, by column generation: a column is what fills one instance, at most two directions side by side
(and one group of tasks with GPUs). Its duals value every task, its purchases say what to look for, and its value is a
lower bound that thousands of distinct sizes do not make slower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from argosy.market.allocation.bound import scaled_bound
from argosy.market.allocation.directions import Directions
from argosy.market.allocation.master import Master, Solution
from argosy.market.allocation.problem import Problem, TaskShapes
from argosy.market.allocation.relaxed import relaxed_worth
from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_ROUNDS = 60
_NEAR = 5e-4  # share of the cost: duals so near to the optimum are good enough
_BETTER = 1 + 1e-7
_KEPT = 0.9  # columns worth less of their price are forgotten
_SMOOTHING = 0.5
_STARTS = 1.6  # columns of one direction are known from the start on sizes up to so many times the cheapest
_PENALTY = 40.0  # of a unit left out, in prices of the dearest instance
_SHARES = (1.0, 0.6)  # of the tasks with GPUs that an instance would hold: the rest of it is for other tasks
_LITTLE = 1e-9
_ROUGH = 1.02  # times what a size is worth or costs: above, its bound is sharpened
_CHUNK = 64  # sizes at once


@dataclass(frozen=True, slots=True, eq=False)
class Fluid:
    """What the LP says. Values and prices are in USD per hour."""

    bought: FloatArray  # (p,) instances
    task_value: FloatArray  # (s,)
    worth: FloatArray  # (k,) of the best filling of a size
    axis_price: FloatArray  # (k, 3) of a cpu unit, a MiB and a GPU on each size
    bound: float  # a valid lower bound for the tasks asked for


class FluidPlanner:
    """Solves the LP for parts of one backlog. The columns of one answer are where the next one starts."""

    def __init__(self, problem: Problem, directions: Directions, near: float = _NEAR) -> None:
        self.problem, self.directions, self._near = problem, directions, near
        self._size, self._content = np.zeros(0, dtype=np.int64), np.zeros((0, len(directions.unit)))

    def plan(
        self, count: IntArray, depth: IntArray, usable: FloatArray, bounded: bool = False, part: float = 1.0
    ) -> Fluid:
        """For `count` (s,) tasks, `depth` (p,) instances, of which only the share `usable` (k,) can be filled.

        The bound holds only where every size is wholly usable. part: of the tasks, that the LP is asked for: where all
        is sold out, its duals are what a place is worth to one task more. Unsolved when HiGHS finds no optimum.
        """
        offered = replace(self.problem.offered, depth=depth)
        problem = Problem(offered, TaskShapes(self.problem.backlog.need, count))
        capacity = problem.sizes * usable[:, None]
        demand = self.directions.demand(count) * part
        solution, value = self._generate(problem, usable, demand)
        worth, pattern = self.fillings(value, capacity)
        tasks = self.directions.value(value, len(count))
        if bounded:  # a shape that is not asked for must not make rooms seem worth more
            tasks = np.where(count > 0, tasks, 0.0)
        axis = axis_prices(self.directions, value, worth, pattern, capacity)
        bound = 0.0
        if bounded:
            if self.directions.with_gpus.any():
                axis_too = _raised(axis, worth, problem)
                tasks = _with_gpus_at_most(problem, tasks, axis_too)
                at_most = np.minimum(_at_most(self.problem, tasks, axis), _at_most(self.problem, tasks, axis_too))
            else:
                at_most = _at_most(self.problem, tasks, axis)
            cheapest = problem.cheapest(offered.price)
            rough = np.isinf(at_most) | (at_most > np.maximum(worth, cheapest) * _ROUGH)
            relaxed = relaxed_worth(problem.sizes[rough], problem.backlog.need, tasks)
            at_most[rough] = np.minimum(at_most[rough], relaxed)
            bound = max(0.0, scaled_bound(problem, count, tasks, offered.price, at_most))
        return Fluid(solution.bought, tasks, worth, axis, bound)

    def _generate(self, problem: Problem, usable: FloatArray, demand: FloatArray) -> tuple[Solution, FloatArray]:
        price, rows, capacity = problem.offered.price, len(demand), problem.sizes * usable[:, None]
        cheapest = problem.cheapest(price)
        units = TaskShapes(np.ones((rows, 3), dtype=np.int64), np.ones(rows, dtype=np.int64))
        master = Master(Problem(problem.offered, units), np.full(rows, _PENALTY * float(price.max(initial=0.0))))
        master.demand(demand)
        master.add(*self._starts(capacity, cheapest, _STARTS if not len(self._size) else 1.0))
        master.add(self._size, self._content * usable[self._size, None])
        solution = master.solve()
        best, centre, smoothing = -np.inf, solution.task_value, 0.0
        for _ in range(_ROUNDS):
            value = smoothing * centre + (1 - smoothing) * solution.task_value
            worth, pattern = self.fillings(value, capacity)
            bound = scaled_bound(problem, demand, value, price, worth)
            if bound > best:
                best, centre = bound, value
            if solution.usd_per_hour - best <= self._near * solution.usd_per_hour:
                break
            if _add(master, cheapest, worth, pattern):
                solution, smoothing = master.solve(), _SMOOTHING
            elif smoothing:
                smoothing = 0.0
            else:
                break
        useful = master.pattern @ solution.task_value >= cheapest[master.size_of] * _KEPT
        self._size, self._content = (
            master.size_of[useful],
            master.pattern[useful] / usable[master.size_of[useful], None],
        )
        return solution, centre

    def _starts(self, capacity: FloatArray, cheapest: FloatArray, most: float) -> tuple[IntArray, FloatArray]:
        """Columns of one direction each, on sizes where that costs little more than the least."""
        size, row = np.nonzero(self.directions.fits & np.isfinite(cheapest)[:, None])
        times = _times(capacity[size], self.directions.unit[row])
        price = np.where(times > 0, cheapest[size] / np.maximum(times, _LITTLE), np.inf)
        least = np.full(len(self.directions.unit), np.inf)
        np.minimum.at(least, row, price)
        kept = np.flatnonzero((price <= most * least[row]) & np.isfinite(price))
        pattern = np.zeros((len(kept), len(least)))
        pattern[np.arange(len(kept)), row[kept]] = times[kept]
        return size[kept].astype(np.int64), pattern

    def fillings(self, value: FloatArray, capacity: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(k,) the worth and (k, r) the content of the best filling of each size; with GPUs, of a good one."""
        plain, unit = ~self.directions.with_gpus, self.directions.unit
        worth, pattern = self._pairs(value, capacity, self.directions.fits & plain)
        # Every size with GPUs, with every group of tasks for them, with all that go on it or some: the rest is plain.
        size, row = np.nonzero(self.directions.fits & ~plain & (capacity[:, 2:] > 0))
        if len(size):
            most = _times(capacity[size], unit[row])
            size, row = np.tile(size, len(_SHARES)), np.tile(row, len(_SHARES))
            held = np.concatenate([most * share for share in _SHARES])
            rest = np.maximum(capacity[size] - held[:, None] * unit[row], 0)
            more, content = self._pairs(value, rest, self.directions.fits[size] & plain)
            more = more + held * value[row]
            order = np.argsort(more, kind="stable")
            best = np.full(len(capacity), -1)
            best[size[order]] = order  # the last one is worth most
            better = np.flatnonzero((best >= 0) & (more[best] > worth * (1 + 1e-12)))
            chosen = best[better]
            worth[better], pattern[better] = more[chosen], content[chosen]
            pattern[better, row[chosen]] = held[chosen]
        return worth, pattern

    def _pairs(self, value: FloatArray, capacity: FloatArray, fits: BoolArray) -> tuple[FloatArray, FloatArray]:
        """The best filling with at most two directions of tasks without GPUs: an LP of two rows has no more."""
        unit, sizes = self.directions.unit, np.arange(len(capacity))
        plain = ~self.directions.with_gpus
        ratio = np.unique(unit[plain, 1] / unit[plain, 0])
        pattern = np.zeros((len(capacity), len(unit)))
        best, who = np.zeros((len(capacity), len(ratio))), np.zeros((len(capacity), len(ratio)), dtype=np.int64)
        for row in np.flatnonzero(plain).tolist():
            at = int(np.searchsorted(ratio, unit[row, 1] / unit[row, 0]))
            better = fits[:, row] & (value[row] > best[:, at])
            best[better, at], who[better, at] = value[row], row
        if not len(ratio):
            return np.zeros(len(capacity)), pattern
        cpu, memory = capacity[:, :1] / 1024, capacity[:, 1:2] / 1024
        alone = best * np.minimum(cpu, memory / ratio)
        single = alone.argmax(axis=1)
        worth: FloatArray = alone[sizes, single]
        low, high = np.triu_indices(len(ratio), 1)
        second = (memory - cpu * ratio[low]) / (ratio[high] - ratio[low])
        first = cpu - second
        both = np.where((first >= 0) & (second >= 0), best[:, low] * first + best[:, high] * second, 0.0)
        pair = both.argmax(axis=1) if len(low) else np.zeros(len(capacity), dtype=np.int64)
        mixed = both[sizes, pair] > worth if len(low) else np.zeros(len(capacity), dtype=bool)
        n = np.flatnonzero(~mixed & (worth > 0))
        pattern[n, who[n, single[n]]] = np.minimum(cpu[n, 0], memory[n, 0] / ratio[single[n]])
        n = np.flatnonzero(mixed)
        np.add.at(pattern, (n, who[n, low[pair[n]]]), first[n, pair[n]])
        np.add.at(pattern, (n, who[n, high[pair[n]]]), second[n, pair[n]])
        worth[n] = both[n, pair[n]]
        return worth, pattern


def _times(capacity: FloatArray, unit: FloatArray) -> FloatArray:
    """(n,) how much of `unit` (n, 3) fits into `capacity` (n, 3)."""
    found: FloatArray = np.where(unit > 0, capacity / np.maximum(unit, _LITTLE), np.inf).min(axis=1)
    return found


def _add(master: Master, cheapest: FloatArray, worth: FloatArray, pattern: FloatArray) -> int:
    better = np.flatnonzero(worth > cheapest * _BETTER)
    return master.add(better, pattern[better])


def axis_prices(
    directions: Directions, value: FloatArray, worth: FloatArray, pattern: FloatArray, capacity: FloatArray
) -> FloatArray:
    """(k, 3) what a cpu unit, a MiB and a GPU are worth on each size: the duals of its best filling."""
    price = np.zeros((len(worth), 3))
    held = (pattern > 0) & ~directions.with_gpus
    size = np.flatnonzero(held.any(axis=1))
    first = held[size].argmax(axis=1)
    held[size, first] = False
    second, alone = held[size].argmax(axis=1), ~held[size].any(axis=1)
    (c1, m1), (c2, m2) = directions.unit[first, :2].T, directions.unit[second, :2].T
    det = c1 * m2 - m1 * c2
    alone |= np.abs(det) <= _LITTLE
    det = np.where(alone, 1.0, det)
    price[size, 0] = np.maximum((value[first] * m2 - value[second] * m1) / det, 0)
    price[size, 1] = np.maximum((value[second] * c1 - value[first] * c2) / det, 0)
    size, first = size[alone], first[alone]
    axis = (directions.unit[first, :2] / np.maximum(capacity[size, :2], _LITTLE)).argmax(axis=1)
    price[size, :2] = 0.0
    price[size, axis] = value[first] / directions.unit[first, axis]
    rest = np.maximum(worth - (price[:, :2] * capacity[:, :2]).sum(axis=1), 0)
    price[:, 2] = np.where(capacity[:, 2] > 0, rest / np.maximum(capacity[:, 2], 1), 0)
    return price


def _raised(axis_price: FloatArray, worth: FloatArray, problem: Problem) -> FloatArray:
    """(k, 3) the prices, those of GPUs raised until a size is worth what it costs: no plan pays less for it."""
    spare = np.maximum(problem.cheapest(problem.offered.price) - worth, 0)
    gpus = problem.sizes[:, 2]
    found = axis_price.copy()
    found[:, 2] += np.where(np.isfinite(spare) & (gpus > 0), spare, 0) / np.maximum(gpus, 1)
    return found


def _with_gpus_at_most(problem: Problem, value: FloatArray, axis_price: FloatArray) -> FloatArray:
    """(s,) values, those of tasks with GPUs as high as the prices of every size that holds them allow."""
    need, some = problem.backlog.need, np.isfinite(problem.cheapest(problem.offered.price))
    gpu = np.flatnonzero((need[:, 2] > 0) & (problem.backlog.count > 0))
    least = np.full(len(gpu), np.inf)
    for size in np.flatnonzero((problem.sizes[:, 2] > 0) & some).tolist():
        fits = (need[gpu] <= problem.sizes[size]).all(axis=1)
        least[fits] = np.minimum(least[fits], need[gpu[fits]] @ axis_price[size])
    found = value.copy()
    found[gpu] = np.where(np.isfinite(least), least, 0.0)
    return found


def _at_most(problem: Problem, value: FloatArray, axis_price: FloatArray) -> FloatArray:
    """(k,) the worth that no filling of true tasks exceeds: prices that are raised until no task is worth more.

    Infinite where a task with a value needs only what has no price.
    """
    tasks = np.flatnonzero(value > 0)
    need, worth = problem.backlog.need[tasks].astype(np.float64).T, value[tasks]
    found = np.zeros(len(problem.sizes))
    for start in range(0, len(found), _CHUNK):
        sizes = slice(start, start + _CHUNK)
        with np.errstate(divide="ignore"):
            ratio = np.where(problem.room[sizes][:, tasks] > 0, worth / (axis_price[sizes] @ need), 0.0)
        factor = ratio.max(axis=1, initial=0.0)
        room = (axis_price[sizes] * problem.sizes[sizes]).sum(axis=1)
        found[sizes] = np.where(
            np.isfinite(factor), np.where(np.isfinite(factor), factor, 0) * room * (1 + 1e-9), np.inf
        )
    return found
