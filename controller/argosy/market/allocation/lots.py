"""What is bought so far, as lots of equal instances, and what is still to be placed and on offer?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Lot:
    """`times` instances of `pool`, each with `count[n]` tasks of `shape[n]`."""

    pool: int
    shape: IntArray
    count: IntArray
    times: int


@dataclass(slots=True, eq=False)
class Plan:
    """Lots, `rest` (s,) tasks without a place, and `depth` (p,) instances that are still on offer."""

    problem: Problem
    rest: IntArray
    depth: IntArray
    lots: list[Lot] = field(default_factory=list)

    @classmethod
    def empty(cls, problem: Problem) -> Plan:
        return cls(problem, problem.backlog.count.copy(), problem.offered.depth.copy())

    def add(self, lot: Lot) -> None:
        self.lots.append(lot)
        self.depth[lot.pool] -= lot.times
        self.rest[lot.shape] -= lot.count * lot.times

    def without(self, numbers: Iterable[int]) -> Plan:
        """A copy without the lots of these numbers: their tasks are to be placed again."""
        gone = set(numbers)
        plan = Plan(self.problem, self.rest.copy(), self.depth.copy())
        for number, lot in enumerate(self.lots):
            if number in gone:
                plan.rest[lot.shape] += lot.count * lot.times
                plan.depth[lot.pool] += lot.times
            else:
                plan.lots.append(lot)
        return plan

    def move(self, number: int, pool: int) -> None:
        """Buy a lot from another pool."""
        lot = self.lots[number]
        self.depth[lot.pool] += lot.times
        self.depth[pool] -= lot.times
        self.lots[number] = Lot(pool, lot.shape, lot.count, lot.times)

    def usd_per_hour(self) -> float:
        return float(self.problem.offered.price @ (self.problem.offered.depth - self.depth))

    def cost(self) -> tuple[int, float]:
        """Tasks without a place, then USD per hour: the lower, the better."""
        return int(self.rest.sum()), self.usd_per_hour()


@dataclass(slots=True, eq=False)
class Best:
    """The best plan so far, and what no plan for the tasks that it places can cost less than."""

    plan: Plan
    method: str = "greedy"  # or "patterns", "dives"
    _bound: float = 0.0
    _bound_of_all: float = 0.0  # of a plan for the whole backlog

    @property
    def bound(self) -> float:
        return self._bound if self.plan.rest.any() else max(self._bound, self._bound_of_all)

    def offer(self, plan: Plan, method: str) -> None:
        """Take a plan that is better."""
        if plan.cost() < self.plan.cost():
            if not np.array_equal(plan.rest, self.plan.rest):
                self._bound = 0.0
            self.plan, self.method = plan, method

    def raise_bound(self, bound: float) -> None:
        self._bound = max(self._bound, bound)

    def raise_bound_of_all(self, bound: float) -> None:
        self._bound_of_all = max(self._bound_of_all, bound)

    def is_near(self, share: float) -> bool:
        """Whether the plan costs at most so much more than the bound, as a share of it."""
        return self.plan.usd_per_hour() <= self.bound * (1 + share)
