"""Plans for thousands of distinct sizes: greedily by groups, by dives, and again in parts.

Groups of similar tasks, each with the largest needs of its members, are first bought for greedily: a complete plan, for
any number of sizes. Dives improve on it with the tasks' own needs. Then the lots that cost most for their contents are
given back and bought again, and the new plan is kept if it is cheaper. A time limit ends the steps but never changes
them, so more time never gives a worse result.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from argosy.market.allocation.basket import Basket, finish
from argosy.market.allocation.dive import Diver
from argosy.market.allocation.effort import Effort
from argosy.market.allocation.fluid import Fluid, FluidPlanner
from argosy.market.allocation.groups import grouped
from argosy.market.allocation.problem import BestPlan, Lot, Plan, Problem, TaskShapes
from argosy.placement.arrays import FloatArray, IntArray

_GUIDE = 300  # groups of tasks in the LP that guides plans
_NEAR = 2e-3  # share of the cost to which it is solved
_BOUND = 800  # groups in the LP that bounds them
_PART_OF_PLACED = 0.995
_FINER_TAKES = 4  # times as long
_PARTS = (0.1, 0.05, 0.03, 0.05)  # shares of the cost that are bought again
_GROUPS = (40, 240)
_STOPS = (1, 4)  # dives after which the first plan is completed by groups, in case time is up before the next one
_CHANCE = (0.02, 0.1, 0.3)  # by how much chance may exceed worth in the choice of lots to buy again


class Dives:
    """Plans of one problem by dives. Only the columns of the LP are kept from one plan to the next."""

    def __init__(self, problem: Problem, effort: Effort) -> None:
        self.problem, self._effort = problem, effort
        self._planner = FluidPlanner(problem, _GUIDE, _NEAR)
        self._diver = Diver(self._planner, effort.time)
        self._took = 0.0

    @cached_property
    def _guide(self) -> Fluid:
        """The LP's solution for the whole backlog."""
        return self._planner.plan(
            self.problem.backlog.count, self.problem.offered.depth, np.ones(len(self.problem.sizes))
        )

    def begin(self, best: BestPlan) -> None:
        """Plan the whole backlog, and bound its cost. Unsolved when HiGHS finds no optimum."""
        begun, guide = self._effort.time.now(), self._guide
        best.raise_bound_of_all(self._planner.bound(self.problem.backlog.count))
        self._took = self._effort.time.now() - begun
        plan = Plan.empty(self.problem)

        def completed_by_groups(plan: Plan, number: int) -> None:
            if number in _STOPS:
                best.offer(by_groups(plan.without(()), guide.task_value, 1.0), "dives")

        if self._diver.complete(plan, completed_by_groups):
            best.offer(plan, "dives")

    def complete(self, best: BestPlan, plan: Plan, method: str) -> None:
        """Buy for all tasks without a place in `plan`. Unsolved as above."""
        if self._diver.complete(plan):
            best.offer(plan, method)

    def improve(self, best: BestPlan) -> None:
        """Buy parts of the best plan again, as often as the effort says. Unsolved as above."""
        rng, effort, count = np.random.default_rng(0), self._effort, self.problem.backlog.count
        for number in range(effort.again):
            if effort.time.passed() or (not best.plan.rest.any() and best.is_near(effort.good_enough)):
                break
            if number == 0:
                if effort.time.left() < _FINER_TAKES * self._took:
                    break
                best.raise_bound_of_all(FluidPlanner(self.problem, _BOUND).bound(count, whole=True))
            part, chance = _PARTS[number % len(_PARTS)], float(rng.choice(_CHANCE))
            self.complete(best, best.plan.without(_poor(best.plan, self._guide, part, chance, rng)), best.method)


def fluid_bound_of(problem: Problem, count: IntArray) -> float:
    """A lower bound of the cost of placing `count` (s,) tasks. Unsolved when HiGHS finds no optimum."""
    if not count.any():
        return 0.0
    problem = Problem(problem.offered, TaskShapes(problem.backlog.need, count), problem.max_share)
    return FluidPlanner(problem, _GUIDE).bound(count, part=_PART_OF_PLACED)


def _poor(plan: Plan, guide: Fluid, part: float, chance: float, rng: np.random.Generator) -> IntArray:
    """Numbers of lots that make up `part` of the cost, in ascending order of their contents per cost.

    Contents are compared with the size's worth if that exceeds its price: wasting a good offer is expensive.
    """
    lots, price = plan.lots, plan.problem.offered.price
    pool, times = np.array([lot.pool for lot in lots]), np.array([lot.times for lot in lots])
    held = np.array([float(guide.task_value[lot.shape] @ lot.count) for lot in lots])
    filled = held / np.maximum(price[pool], guide.worth[plan.problem.size_of_pool[pool]])
    order = np.argsort(filled + rng.uniform(0, chance, len(lots)), kind="stable")
    spent = np.cumsum((price[pool] * times)[order])
    return order[: int(np.searchsorted(spent, part * spent[-1])) + 1]


def by_groups(plan: Plan, value: FloatArray, slack: float) -> Plan:
    """`plan`, completed greedily for groups of tasks, each as large as the largest of its group on every axis.

    value: (s,) of the tasks. Tasks that the groups leave out are tried again in smaller groups.
    """
    for most in _GROUPS:
        if plan.rest.any():
            _buy_groups(plan, value, most, slack)
    return plan


def _buy_groups(plan: Plan, value: FloatArray, most: int, slack: float) -> None:
    problem = plan.problem
    group = _groups(problem, plan.rest, value, most)
    members = [np.flatnonzero((group == number) & (plan.rest > 0)) for number in range(int(group.max()) + 1)]
    members = [each[np.argsort(-value[each], kind="stable")] for each in members if len(each)]
    need = np.array([problem.backlog.need[each].max(axis=0) for each in members])
    count = np.array([int(plan.rest[each].sum()) for each in members])
    asked = Problem(replace(problem.offered, depth=plan.depth.copy()), TaskShapes(need, count), problem.max_share)
    basket = Basket(asked)
    basket.raise_cap(float(count @ need[:, 0].astype(float)))
    finish(basket, np.array([float(value[each].max()) for each in members]), problem.offered.price, slack)
    for pool, pattern, times in basket.rows():
        _hand_out(plan, members, pool, pattern, times)


def _hand_out(plan: Plan, members: list[IntArray], pool: int, pattern: IntArray, times: int) -> None:
    """Put true tasks in the places of their groups, the same ones on as many instances as there are such tasks."""
    held = np.flatnonzero(pattern).tolist()
    while times:
        count = np.zeros(len(plan.rest), dtype=np.int64)
        for number in held:
            wanted = int(pattern[number])
            for shape in members[number].tolist():
                some = min(wanted, int(plan.rest[shape]))
                count[shape], wanted = some, wanted - some
                if not wanted:
                    break
            members[number] = members[number][plan.rest[members[number]] > 0]
        shape = np.flatnonzero(count)
        same = min(times, int((plan.rest[shape] // count[shape]).min()))
        plan.add(Lot(pool, shape, count[shape], same))
        times -= same


def _groups(problem: Problem, rest: IntArray, value: FloatArray, most: int) -> IntArray:
    """(s,) group numbers. A group whose largest needs together fit nowhere is divided until they do."""
    need, some = problem.backlog.need, problem.offered.capacity[problem.offered.depth > 0]
    group = np.full(len(need), -1, dtype=np.int64)
    waiting = [(np.flatnonzero(rest > 0), most)]
    number = 0
    while waiting:
        tasks, parts = waiting.pop()
        inner = grouped(need[tasks], rest[tasks] * value[tasks], parts)
        for part in range(int(inner.max()) + 1):
            mine = tasks[inner == part]
            if len(mine) == 1 or (some >= need[mine].max(axis=0)).all(axis=1).any():
                group[mine], number = number, number + 1
            else:
                waiting.append((mine, 2))
    return group
