"""The cost of a backlog if its tasks could be split, with the cpu, memory and GPUs of each kept together.

A linear program over groups of similar tasks, by column generation. Columns: tasks of a group on a size; instances of a
pool at its price, up to its depth; tasks left out. Rows: every group's tasks; the cpu, memory and GPUs of every size.
Its duals are prices of each axis on each size. A task is worth its price on the cheapest size, so no filling of a size
is worth more than the whole size costs at these prices. This values every task, gives the purchases, and bounds the
cost of any plan from below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from argosy.market.allocation.generate import add_columns, add_rows, new_lp, optimum, scaled_bound
from argosy.market.allocation.groups import grouped
from argosy.market.allocation.problem import Problem, TaskShapes
from argosy.market.allocation.whole_tasks import raised
from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_ROUNDS = 40
_NEAR = 2e-4  # share of the cost: prices this near to the optimum are good enough
_FIRST = 4  # sizes tried first for a group, by each of two ways to share an instance's price
_PENALTY = 40.0  # of a task left out, in prices of the most expensive instance
_TIGHT = 1e-7
_KEPT = 1.02  # columns that cost more than this multiple of their group's worth are dropped
_ADDED = 4  # columns of a group at once
_FAR = 1.1  # times the worth of a size: more expensive ones need no more than prices
_CHUNK = 64  # sizes at once
_COVERS = 6  # sizes whose prices are tried on another one
_UP = 1 + 1e-9  # above the rounding loss of the few float operations here


@dataclass(frozen=True, slots=True, eq=False)
class PartsSolution:
    """An optimum over the known columns. Values and prices are in USD per hour."""

    bought: FloatArray  # (p,) instances
    group_value: FloatArray  # (g,) of one task
    axis_price: FloatArray  # (k, 3) of a cpu unit, a MiB and a GPU on each size
    usd_per_hour: float  # with the penalty for what is left out


class PartsLp:
    """The LP for `count` (g,) tasks with `need` (g, 3) and pools whose sizes hold `capacity` (k, 3)."""

    def __init__(
        self, problem: Problem, capacity: FloatArray, need: FloatArray, count: FloatArray, penalty: float
    ) -> None:
        offered, size_of_pool, self._lp = problem.offered, problem.size_of_pool, new_lp()
        self._need, self._groups, self._pools = need, len(count), len(offered.price)
        self._capacity = capacity
        self.known: BoolArray = np.zeros((len(capacity), len(count)), dtype=bool)
        add_rows(self._lp, count, np.full(len(count), np.inf))
        add_rows(self._lp, np.full(capacity.size, -np.inf), np.zeros(capacity.size))
        each = np.arange(len(count))
        add_columns(
            self._lp, np.full(len(count), penalty), np.full(len(count), np.inf), (each, each, np.ones(len(count)))
        )
        pool, axis = np.nonzero(capacity[size_of_pool])
        rows = self._groups + 3 * size_of_pool[pool] + axis
        add_columns(self._lp, offered.price, offered.depth.astype(np.float64), (pool, rows, -np.ones(len(pool))))

    def add(self, wanted: BoolArray) -> int:
        """Let groups go to sizes where `wanted` (k, g); returns how many of these columns are new."""
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
        add_columns(self._lp, none, none + np.inf, (column, rows[column, at], entries[column, at]))
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


@dataclass(frozen=True, slots=True, eq=False)
class Fluid:
    """The LP's answer. Values and prices are in USD per hour."""

    bought: FloatArray  # (p,) instances
    task_value: FloatArray  # (s,)
    worth: FloatArray  # (k,) that no filling of a size exceeds; infinite if that is not known
    axis_price: FloatArray  # (k, 3) of a cpu unit, a MiB and a GPU on each size


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Groups `number` (g,): `count` (g,) tasks that need `need` (g, 3) on average, and `fits` (k, g)."""

    number: IntArray
    need: FloatArray
    count: FloatArray
    fits: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class _Duals:
    bought: FloatArray  # (p,) instances
    price: FloatArray  # (k, 3) of a cpu unit, a MiB and a GPU on each size
    used: BoolArray  # (k,) sizes that are bought: prices of others may be 0
    value: FloatArray  # (g,) of one task
    worth: FloatArray  # (k,) and the prices (k, 3) that show it: see `covers`
    cover: FloatArray


class FluidPlanner:
    """Solves the LP for parts of one backlog. Each solution starts from the columns of the one before."""

    def __init__(self, problem: Problem, groups: int, near: float = _NEAR) -> None:
        self.problem, self._near = problem, near
        need = problem.backlog.need
        scale = need @ (1 / np.maximum(problem.sizes.max(axis=0, initial=1), 1))
        self._group = grouped(need, problem.backlog.count * scale, groups)
        self._known: BoolArray = np.zeros((len(problem.sizes), int(self._group.max(initial=-1)) + 1), dtype=bool)

    def plan(self, count: IntArray, depth: IntArray, usable: FloatArray) -> Fluid:
        """For `count` (s,) tasks, `depth` (p,) instances, of which only the share `usable` (k,) can be filled.

        Unsolved when HiGHS finds no optimum.
        """
        problem, groups = self._part(count, depth), self._groups(count)
        duals, useful = self._generate(problem, problem.sizes * usable[:, None], groups, self._near)
        self._known[:, groups.number] = useful
        return Fluid(duals.bought, self._task_value(problem, duals), duals.worth, duals.cover)

    def bound(self, count: IntArray, part: float = 1.0, whole: bool = False) -> float:
        """A lower bound of the cost of placing `count` (s,) tasks.

        part: the tasks that the LP is solved for. If everything is sold out, its duals are the worth of a place to one
        more task. whole: spend seconds on a sharper bound, since large tasks are whole. Unsolved as above.
        """
        problem, groups = self._part(count, self.problem.offered.depth), self._groups(count)
        groups = replace(groups, count=groups.count * part)
        duals, _ = self._generate(problem, problem.sizes.astype(np.float64), groups, _NEAR)
        # A shape without demand must not raise the worth of rooms.
        tasks = np.where(count > 0, self._task_value(problem, duals), 0.0)
        at_most, axis = self._covers(problem, duals, tasks)
        bound = _bound(problem, tasks, at_most)
        if whole and np.isfinite(at_most).all():
            bound = max(bound, self._bound_of_whole(problem, tasks, duals, at_most, axis))
        return bound

    def _bound_of_whole(
        self, problem: Problem, tasks: FloatArray, duals: _Duals, at_most: FloatArray, axis: FloatArray
    ) -> float:
        """The same after large tasks have been `raised` on the sizes that are worth about their cost."""
        cheapest = problem.cheapest(problem.offered.price)
        near = np.flatnonzero(np.isfinite(cheapest) & (at_most * _FAR > cheapest) & (at_most > 0))
        costs = np.maximum(at_most[near], cheapest[near])
        axis[near] *= (costs / at_most[near])[:, None]
        tasks = raised(problem, tasks, near, axis)
        at_most, _ = self._covers(problem, duals, tasks)
        at_most[near] = np.minimum(at_most[near], costs)
        return _bound(problem, tasks, at_most)

    def _covers(self, problem: Problem, duals: _Duals, tasks: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(k,) an upper bound of the worth of true fillings, 0 if nothing is sold, and prices that prove it."""
        asked = np.flatnonzero(tasks > 0)
        fits = self.problem.room[:, asked] > 0
        need = self.problem.backlog.need[asked]
        at_most, axis = covers(duals.price, duals.used, need, fits, tasks[asked], self.problem.sizes)
        return np.where(np.isfinite(problem.cheapest(problem.offered.price)), at_most, 0.0), axis

    def _part(self, count: IntArray, depth: IntArray) -> Problem:
        return Problem(replace(self.problem.offered, depth=depth), TaskShapes(self.problem.backlog.need, count))

    def _task_value(self, problem: Problem, duals: _Duals) -> FloatArray:
        """(s,) the price of a task on the cheapest size that the LP buys and that holds it, or else on the cheapest
        of all."""
        need, room = self.problem.backlog.need, self.problem.room
        found = _least(duals.price[duals.used], need, room[duals.used] > 0)
        none = np.flatnonzero(np.isinf(found))
        cheapest = problem.cheapest(problem.offered.price)
        sold = np.isfinite(cheapest) & (duals.worth > 0)
        fair = duals.cover[sold] * (np.maximum(cheapest[sold] / duals.worth[sold], 1))[:, None]
        found[none] = _least(fair, need[none], room[sold][:, none] > 0)
        return np.where(np.isfinite(found), found, 0.0)

    def _groups(self, count: IntArray) -> _Groups:
        """Groups that have tasks, each with the mean need of its tasks."""
        number, some = int(self._group.max(initial=-1)) + 1, count > 0
        group, weight = self._group[some], count[some].astype(np.float64)
        tasks = np.bincount(group, weights=weight, minlength=number)
        need = self.problem.backlog.need[some]
        total = [np.bincount(group, weights=weight * need[:, axis], minlength=number) for axis in range(3)]
        asked = np.flatnonzero(tasks)
        mean = np.stack(total, axis=1)[asked] / tasks[asked, None]
        fits = np.asarray((mean[None] <= self.problem.sizes[:, None] * _UP).all(axis=2), dtype=bool)
        return _Groups(asked, mean, tasks[asked].astype(np.float64), fits)

    def _generate(
        self, problem: Problem, capacity: FloatArray, groups: _Groups, near: float
    ) -> tuple[_Duals, BoolArray]:
        """Also (k, g) the columns that are worth keeping."""
        offered, need = problem.offered, groups.need
        cheapest = problem.cheapest(offered.price)
        penalty = _PENALTY * float(offered.price.max(initial=0.0))
        lp = PartsLp(problem, capacity, need, groups.count, penalty)
        lp.add(groups.fits & (_first(cheapest, capacity, groups) | self._known[:, groups.number]))
        for _ in range(_ROUNDS):
            solution = lp.solve()
            duals = _duals(problem, capacity, groups, solution)
            if _is_near(problem, groups.count, solution.usd_per_hour * (1 - near), duals):
                break
            over = solution.group_value - _fair(capacity, cheapest, duals) @ need.T * (1 + _TIGHT)
            over = np.where(groups.fits & ~lp.known & _useful(cheapest, duals)[:, None], over, 0.0)
            if not lp.add(_largest(over, _ADDED) & (over > 0)):
                break
        return duals, lp.known & (duals.price @ need.T <= duals.value * _KEPT)


def _duals(problem: Problem, capacity: FloatArray, groups: _Groups, solution: PartsSolution) -> _Duals:
    used = np.bincount(problem.size_of_pool, weights=solution.bought, minlength=len(capacity)) > _TIGHT
    price = solution.axis_price
    least = _least(price[used], groups.need, groups.fits[used])
    value = np.minimum(least, solution.group_value.max(initial=0.0))
    worth, cover = covers(price, used, groups.need, groups.fits, value, capacity)
    return _Duals(solution.bought, price, used, value, worth, cover)


def _is_near(problem: Problem, count: FloatArray, usd_per_hour: float, duals: _Duals) -> bool:
    """Whether the duals prove that the cost is at least this."""
    sold = np.isfinite(problem.cheapest(problem.offered.price))
    if np.isinf(duals.worth[sold]).any():
        return False
    worth = np.where(sold, duals.worth, 0.0)
    return scaled_bound(problem, count, duals.value, problem.offered.price, worth) >= usd_per_hour


def _useful(cheapest: FloatArray, duals: _Duals) -> BoolArray:
    """(k,) sizes that the LP buys, or would buy with the true prices of their contents."""
    found: BoolArray = duals.used | (duals.worth > cheapest * (1 + _TIGHT))
    return found


def _fair(capacity: FloatArray, cheapest: FloatArray, duals: _Duals) -> FloatArray:
    """(k, 3) the price of each axis; for sizes that are not bought, scaled to the size's price."""
    scale = np.divide(
        cheapest, duals.worth, out=np.zeros(len(capacity)), where=np.isfinite(cheapest) & (duals.worth > 0)
    )
    return np.where(duals.used[:, None], duals.price, duals.cover * scale[:, None])


def _bound(problem: Problem, tasks: FloatArray, at_most: FloatArray) -> float:
    if np.isinf(at_most).any():
        return 0.0
    return max(0.0, scaled_bound(problem, problem.backlog.count, tasks, problem.offered.price, at_most))


def _first(cheapest: FloatArray, capacity: FloatArray, groups: _Groups) -> BoolArray:
    """(k, g) the sizes on which a group costs least, alone on an instance or with others that need the rest of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.nan_to_num(groups.need[None] / capacity[:, None], nan=0.0, posinf=np.inf)  # (k, g, 3)
        fits = groups.fits & np.isfinite(cheapest)[:, None]
        found = np.zeros(fits.shape, dtype=bool)
        for share in (part.max(axis=2), part.sum(axis=2)):
            found |= _largest(-np.where(fits, cheapest[:, None] * share, np.inf), _FIRST)
    return found


def _largest(amount: FloatArray, most: int) -> BoolArray:
    """(k, g) the `most` largest of each column."""
    found = np.zeros(amount.shape, dtype=bool)
    most = min(most, len(amount))
    chosen = np.argpartition(-amount, most - 1, axis=0)[:most] if most else np.zeros((0, amount.shape[1]), dtype=int)
    found[chosen, np.arange(amount.shape[1])] = True
    return found


def covers(
    price: FloatArray,
    used: BoolArray,
    need: FloatArray | IntArray,
    fits: BoolArray,
    value: FloatArray,
    capacity: FloatArray | IntArray,
) -> tuple[FloatArray, FloatArray]:
    """(k,) an upper bound of the worth of any filling of a size, and (k, 3) prices of its axes that prove it.

    price: (k, 3), raised until no task (s, 3) of `value` (s,) that `fits` (k, s) is worth more than it pays. For every
    size its own prices are tried, and some of those of sizes that are `used` (k,). Infinite if none of them works.
    """
    base = price * (1.0, 1.0, 0.0)
    known = np.flatnonzero(used)
    chosen = known[np.argsort(capacity @ base[known].T, axis=1, kind="stable")[:, :_COVERS]]
    chosen = np.column_stack([np.arange(len(capacity)), chosen])
    worth, found = np.full(len(capacity), np.inf), np.zeros((len(capacity), 3))
    for start in range(0, len(capacity), _CHUNK):
        sizes = slice(start, start + _CHUNK)
        for which in chosen[sizes].T:
            tried, holds = _covering(base[which], need, fits[sizes], value)
            total = np.where(holds, (tried * capacity[sizes]).sum(axis=1) * _UP, np.inf)
            better = np.flatnonzero(total < worth[sizes])
            worth[start + better], found[start + better] = total[better], tried[better]
    return worth, found


def _covering(
    base: FloatArray, need: FloatArray | IntArray, fits: BoolArray, value: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """(k, 3) `base` (k, 3), raised for tasks without GPUs, and the price of a GPU that pays for the others.

    Also (k,) whether that is enough.
    """
    plain = need[:, 2] == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(value > 0, value / (base @ need.T), 0.0)
    factor = np.where(fits & plain, ratio, 0.0).max(axis=1, initial=0.0)
    with_gpus = fits & ~plain
    some = with_gpus.any(axis=1)
    factor[some] = np.maximum(factor[some], 1.0)
    holds = np.isfinite(factor)
    tried = np.where(holds, factor, 0.0)[:, None] * base
    for size in np.flatnonzero(some & holds).tolist():
        on = with_gpus[size]
        tried[size, 2] = max(0.0, float(((value[on] - need[on] @ tried[size]) / need[on, 2]).max()))
    return tried, holds


def _least(price: FloatArray, need: FloatArray | IntArray, fits: BoolArray) -> FloatArray:
    """(s,) the price of a task on the cheapest of these sizes that hold it; infinite if none does."""
    found: FloatArray = np.where(fits, price @ need.T, np.inf).min(axis=0, initial=np.inf)
    return found
