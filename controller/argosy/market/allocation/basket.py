"""What has been chosen so far, which tasks are still to be placed, and what may still be bought?"""

from __future__ import annotations

import numpy as np

from argosy.market.allocation.filling import best_fillings
from argosy.market.allocation.lots import Lot, Plan
from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import BoolArray, FloatArray, IntArray


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
        """Buy up to `times` instances, as depth, share and unplaced tasks allow; how many were bought."""
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
        """A kind may have its share of `expected_cpu`, which must not exceed what is bought in the end."""
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
        """The same as lots."""
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
    """Buy for all tasks that are still to be placed, the most worth per price first, by `value` (s,) and `price` (p,).

    slack: the share of the best worth per price that is good enough to buy without looking again; 1 = only the best.
    """
    problem = basket.problem
    while basket.rest.any():
        wanted = np.flatnonzero(basket.rest)
        open_ = basket.may_buy()
        sizes = np.unique(problem.size_of_pool[open_])
        part, worth = best_fillings(
            problem.sizes[sizes],
            problem.backlog.need[wanted],
            value[wanted],
            basket.rest[wanted],
            None if problem.most_tasks is None else problem.most_tasks[sizes],
        )
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
    """Move patterns that leave room to the cheapest instances that still hold them, the dearest rows first."""
    problem = basket.problem
    price = problem.offered.price
    rows = basket.rows()
    if not rows:
        return
    needed = np.array([pattern for _, pattern, _ in rows]) @ problem.backlog.need
    own = price[[pool for pool, _, _ in rows]]
    cheapest = np.full(len(problem.sizes), np.inf)
    open_ = basket.may_buy()
    np.minimum.at(cheapest, problem.size_of_pool[open_], price[open_])
    holds = (problem.sizes[None, :, :] >= needed[:, None, :]).all(axis=2)
    if problem.most_tasks is not None:
        tasks = np.array([pattern.sum() for _, pattern, _ in rows])
        holds &= problem.most_tasks[None, :] >= tasks[:, None]
    gain = own - np.where(holds, cheapest, np.inf).min(axis=1)
    for number in np.argsort(-own, kind="stable").tolist():
        if gain[number] > own[number] * 1e-9:
            _move(basket, rows[number], needed[number])


def _move(basket: Basket, row: tuple[int, IntArray, int], needed: IntArray) -> None:
    pool, pattern, times = row
    offered = basket.problem.offered
    better = basket.may_buy() & (offered.price < offered.price[pool] * (1 - 1e-9))
    better &= (offered.capacity >= needed).all(axis=1)
    if (most_tasks := basket.problem.pool_most_tasks) is not None:
        better &= most_tasks >= pattern.sum()
    for other in np.flatnonzero(better)[np.argsort(offered.price[better], kind="stable")].tolist():
        basket.give_back(pool, pattern, times)
        times -= basket.buy(other, pattern, times)
        basket.buy(pool, pattern, times)
        if not times:
            return
