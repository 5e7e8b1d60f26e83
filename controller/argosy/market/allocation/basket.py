"""Greedy purchases: the chosen instances, the tasks left to place, and the instances that may still be bought.

A greedy knapsack fills an empty instance of every size at once: shapes in order of value per size, under several
weightings of the axes, and the most valuable filling counts. Ties go to the lower shape, so equal input gives equal
results.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from argosy.market.allocation.problem import Lot, Plan, Problem
from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_REPAIRS = 20

# The weights of the axes: cpu, memory, GPUs; each relative to the largest size among the instances.
WEIGHTS = ((1.0, 1.0, 1.0), (4.0, 1.0, 1.0), (1.0, 4.0, 1.0), (1.0, 1.0, 8.0), (16.0, 1.0, 1.0), (1.0, 16.0, 1.0))

# The same with the number of tasks as the last axis.
PLACE_WEIGHTS = tuple((*axes, 1.0) for axes in WEIGHTS) + ((1.0, 1.0, 1.0, 4.0), (1.0, 1.0, 1.0, 64.0))


def best_fillings(
    sizes: IntArray, need: IntArray, value: FloatArray, most: IntArray, units: IntArray | None = None
) -> tuple[IntArray, FloatArray]:
    """(k, s) tasks by shape and (k,) their worth, for instances that offer `sizes` (k, axes).

    value: (s,) of one task; shapes worth nothing are left out. most: (s,) the most tasks of a shape on one instance.
    axes: 3, and 1 for the number of tasks as in `with_places`. units: (k, s) what tasks take of the GPUs of each size;
    None = what `need` says.
    """
    weightings: tuple[tuple[float, ...], ...] = WEIGHTS if sizes.shape[1] == 3 else PLACE_WEIGHTS
    best = np.zeros((len(sizes), len(need)), dtype=np.int64)
    worth = np.zeros(len(sizes))
    for weights in weightings:
        pattern = fill(sizes, need, order_by_worth(sizes, need, value, weights), most, units)
        total = pattern @ value
        better = total > worth * (1 + 1e-12)
        best[better], worth[better] = pattern[better], total[better]
    return best, worth


def with_places(sizes: IntArray, need: IntArray, most_tasks: IntArray) -> tuple[IntArray, IntArray]:
    """`sizes` (k, 4) and `need` (s, 4) with the number of tasks as an axis."""
    return np.column_stack([sizes, most_tasks]), np.column_stack([need, np.ones(len(need), dtype=np.int64)])


def order_by_worth(sizes: IntArray, need: IntArray, value: FloatArray, weights: tuple[float, ...]) -> IntArray:
    """Shapes with a value, the highest value per weighted size first."""
    scale = np.array(weights) / np.maximum(sizes.max(axis=0, initial=1), 1)
    ratio = value / np.maximum(need @ scale, 1e-300)
    order = np.argsort(-ratio, kind="stable")
    return order[value[order] > 0].astype(np.int64)


def fillings(
    problem: Problem, sizes: IntArray, shapes: IntArray, value: FloatArray, most: IntArray
) -> tuple[IntArray, FloatArray]:
    """The best fillings of some sizes with tasks of some shapes, whose `value` and `most` are given."""
    need, most_tasks = problem.backlog.need[shapes], problem.most_tasks
    if problem.shares is None:
        return best_fillings(*_placed(problem.sizes[sizes], need, most_tasks, sizes), value, most)
    ways = problem.ways
    rows = np.flatnonzero(np.isin(ways.size, sizes) & ~ways.some)
    of = ways.size[rows]
    capacity, units = np.column_stack([problem.sizes[of, :2], ways.gpus[rows]]), ways.units[np.ix_(rows, shapes)]
    need = np.column_stack([need[:, :2], ways.mean_units(rows)[shapes]])
    pattern, worth = best_fillings(*_placed(capacity, need, most_tasks, of), value, most, units)
    best = ways.best_of(rows, worth)
    return pattern[best], worth[best]


def _placed(
    capacity: IntArray, need: IntArray, most_tasks: IntArray | None, sizes: IntArray
) -> tuple[IntArray, IntArray]:
    return (capacity, need) if most_tasks is None else with_places(capacity, need, most_tasks[sizes])


def fill(free: IntArray, need: IntArray, order: IntArray, most: IntArray, units: IntArray | None = None) -> IntArray:
    """(k, s): as many tasks of each shape, in order, as still fit into `free` (k, axes) and `most` (s,) allows. units:
    as in `best_fillings`."""
    left, needs = free.T.copy(), need.tolist()
    pattern = np.zeros((len(free), len(need)), dtype=np.int64)
    for shape in order.tolist():
        count = np.full(len(free), most[shape], dtype=np.int64)
        taken: dict[int, Any] = {axis: amount for axis, amount in enumerate(needs[shape]) if amount}
        if units is not None and 2 in taken:
            taken[2] = units[:, shape]
        for axis, amount in taken.items():
            np.minimum(count, left[axis] // amount, out=count)
        for axis, amount in taken.items():
            left[axis] -= count * amount
        pattern[:, shape] = count
    return pattern


class Basket:
    """Whole instances with their patterns. Invariants: no pool exceeds its depth, no task has two places."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rest: IntArray = np.where(problem.unplaceable, 0, problem.backlog.count)
        self.depth_left: IntArray = problem.offered.depth.copy()
        kinds = int(problem.offered.kind.max(initial=-1)) + 1
        self.cpu_by_kind = np.zeros(kinds)  # floats: instances times cpu units may exceed int64
        self.cpu_cap = np.inf
        """The most cpu units of one kind that may be bought for now: see `raise_cap`."""
        self._rows: dict[tuple[int, bytes], int] = {}

    def buy(self, pool: int, pattern: IntArray, times: int) -> int:
        """Buy up to `times` instances, limited by depth, share and unplaced tasks; returns how many were bought."""
        held = np.flatnonzero(pattern)
        if not len(held):
            return 0
        times = min(times, self._limit(pool), int((self.rest[held] // pattern[held]).min()))
        if times > 0:
            self._change(pool, pattern, times)
        return max(times, 0)

    def give_back(self, pool: int, pattern: IntArray, times: int) -> None:
        self._change(pool, pattern, -times)

    def may_buy(self) -> BoolArray:
        """(p,) bool: pools from which at least one more instance may be bought."""
        cpu = self.problem.offered.capacity[:, 0]
        return (self.depth_left > 0) & (self.cpu_by_kind[self.problem.offered.kind] + cpu <= self.cpu_cap)

    def raise_cap(self, expected_cpu: float) -> None:
        """Allow each kind its share of `expected_cpu`, which must not exceed the final purchase."""
        if self.problem.max_share is not None:
            self.cpu_cap = self.problem.max_share * expected_cpu

    @property
    def bought_cpu(self) -> float:
        return float(self.cpu_by_kind.sum())

    def rows(self) -> list[tuple[int, IntArray, int]]:
        """(pool, tasks by shape, instances), in the order of pools and first purchase."""
        dtype = self.rest.dtype
        rows = [(pool, np.frombuffer(key, dtype=dtype), times) for (pool, key), times in self._rows.items()]
        return sorted(rows, key=lambda row: row[0])

    def plan(self) -> Plan:
        """The rows as lots."""
        plan = Plan.empty(self.problem)
        for pool, pattern, times in self.rows():
            held = np.flatnonzero(pattern)
            plan.add(Lot(pool, held, pattern[held], times))
        return plan

    def usd_per_hour(self) -> float:
        bought = self.problem.offered.depth - self.depth_left
        return float(self.problem.offered.price @ bought)

    def _limit(self, pool: int) -> int:
        limit = int(self.depth_left[pool])
        cpu = int(self.problem.offered.capacity[pool, 0])
        if np.isfinite(self.cpu_cap) and cpu:
            limit = min(
                limit, int((self.cpu_cap * (1 + 1e-12) - self.cpu_by_kind[self.problem.offered.kind[pool]]) // cpu)
            )
        return limit

    def _change(self, pool: int, pattern: IntArray, times: int) -> None:
        key = (pool, pattern.astype(np.int64).tobytes())
        self._rows[key] = self._rows.get(key, 0) + times
        if not self._rows[key]:
            del self._rows[key]
        self.rest = self.rest - pattern * times
        self.depth_left[pool] -= times
        self.cpu_by_kind[self.problem.offered.kind[pool]] += times * int(self.problem.offered.capacity[pool, 0])


def complete(basket: Basket, value: FloatArray, price: FloatArray, slack: float = 1.0) -> None:
    """Buy for all tasks still to be placed, the most worth per price first, by `value` (s,) and `price` (p,).

    slack: the share of the best worth per price that is good enough to buy without another search; 1 = only the best.
    """
    problem = basket.problem
    while basket.rest.any():
        wanted = np.flatnonzero(basket.rest)
        open_ = basket.may_buy()
        sizes = np.unique(problem.size_of_pool[open_])
        part, worth = fillings(problem, sizes, wanted, value[wanted], basket.rest[wanted])
        row = np.full(len(problem.sizes), -1)
        row[sizes] = np.arange(len(sizes))
        pools = np.flatnonzero(open_)
        ratio = worth[row[problem.size_of_pool[pools]]] / np.maximum(price[pools], 1e-12)
        if not (ratio > 0).any():
            return
        chosen = np.flatnonzero(ratio >= max(slack * float(ratio.max()), 1e-300))
        for number in chosen[np.argsort(-ratio[chosen], kind="stable")].tolist():
            pattern = np.zeros(len(problem.backlog.need), dtype=np.int64)
            pattern[wanted] = part[row[problem.size_of_pool[pools[number]]]]
            basket.buy(int(pools[number]), pattern, int(basket.depth_left[pools[number]]))


def fit_smaller(basket: Basket) -> None:
    """Move patterns that leave room to the cheapest instances that still hold them, the most expensive rows first."""
    problem = basket.problem
    price = problem.offered.price
    rows = basket.rows()
    if not rows:
        return
    own = price[[pool for pool, _, _ in rows]]
    cheapest = np.full(len(problem.sizes), np.inf)
    open_ = basket.may_buy()
    np.minimum.at(cheapest, problem.size_of_pool[open_], price[open_])
    holds = problem.holds(np.array([pattern for _, pattern, _ in rows]))
    gain = own - np.where(holds, cheapest, np.inf).min(axis=1)
    for number in np.argsort(-own, kind="stable").tolist():
        if gain[number] > own[number] * 1e-9:
            _move(basket, rows[number], holds[number])


def _move(basket: Basket, row: tuple[int, IntArray, int], holds: BoolArray) -> None:
    pool, pattern, times = row
    offered = basket.problem.offered
    better = basket.may_buy() & (offered.price < offered.price[pool] * (1 - 1e-9))
    better &= holds[basket.problem.size_of_pool]
    for other in np.flatnonzero(better)[np.argsort(offered.price[better], kind="stable")].tolist():
        basket.give_back(pool, pattern, times)
        times -= basket.buy(other, pattern, times)
        basket.buy(pool, pattern, times)
        if not times:
            return


def finish(basket: Basket, value: FloatArray, price: FloatArray, slack: float = 1.0) -> None:
    """Complete the plan, move patterns into smaller instances where they fit, and enforce the maximum share."""
    complete(basket, value, price, slack)
    fit_smaller(basket)
    share = basket.problem.max_share
    for _ in range(_REPAIRS if share is not None else 0):
        basket.raise_cap(float(basket.bought_cpu))
        _take_back_excess(basket)
        before = basket.bought_cpu
        basket.raise_cap(float(before))
        complete(basket, value, price, slack)
        if basket.bought_cpu == before and not _excess(basket).any():
            return


def _excess(basket: Basket) -> FloatArray:
    """(t,) the cpu units of a kind above its share of the purchase."""
    most = basket.bought_cpu * float(basket.problem.max_share or 1) * (1 + 1e-9)
    over: FloatArray = np.maximum(basket.cpu_by_kind - most, 0)
    return over


def _take_back_excess(basket: Basket) -> None:
    """Give back instances of kinds that exceed their share, the least useful first; place their tasks again."""
    offered, need = basket.problem.offered, basket.problem.backlog.need
    over = _excess(basket)
    rows = [row for row in basket.rows() if over[offered.kind[row[0]]] > 0]
    for pool, pattern, times in sorted(
        rows, key=lambda row: (float((row[1] @ need)[0]) / offered.price[row[0]], row[0])
    ):
        excess = math.ceil(over[offered.kind[pool]])
        cpu = int(offered.capacity[pool, 0])
        if excess > 0 and cpu:
            gone = min(times, -(-excess // cpu))
            basket.give_back(pool, pattern, gone)
            over[offered.kind[pool]] -= gone * cpu
