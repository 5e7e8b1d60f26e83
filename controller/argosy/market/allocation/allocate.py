"""The cheapest instances for a backlog, and a lower bound on the cost of any plan.

Problem: place all tasks of some shapes on instances from pools, each with a size, a price and a depth. This is vector
packing with up to a million tasks, and a tick has a fraction of a second for it.

Idea: three methods, each of which begins with the best plan so far.

1. Greedy: repeatedly buy the instance that holds the most worth per USD. It gives a plan at once.
2. Patterns, up to 150 shapes: a linear program chooses how often each pattern (what one instance holds) is used, as a
   fraction. Its duals are the worth of each task: they show which patterns are missing, and bound the cost of any plan.
   Rounding down loses little where patterns are used many times.
3. Dives: a linear program in which tasks may be split gives the purchases; true tasks fill them. They serve backlogs
   of thousands of shapes, and the rest after rounding, which is nearly everything if instances are few and large.

Example: 40 tasks of 1 vCPU and 1 GiB, 20 of 0.5 vCPU and 6 GiB, on instances of 2 vCPUs and 4 GiB for 0.04 USD and of 8
vCPUs and 32 GiB for 0.16 USD. Bought shape by shape they cost 0.80 + 0.64 USD per hour. Five large instances with 6 and
4 tasks each, another with 8 of the first shape, and a small one cost 1.00 USD, which is also the bound.

>>> from argosy.market.allocation.problem import PoolTable, TaskShapes
>>> offered = PoolTable.of([(2048, 4096, 0), (8192, 32768, 0)], [0.04, 0.16], [100, 100], [0, 1])
>>> tasks = TaskShapes.of([(1024, 1024, 0), (512, 6144, 0)], [40, 20])
>>> found = allocate(Problem(offered, tasks))
>>> sorted((lot.pool, lot.times, lot.count.tolist()) for lot in found.lots)
[(0, 1, [2]), (1, 1, [8]), (1, 5, [6, 4])]
>>> round(found.usd_per_hour, 2), round(found.lower_bound_usd_per_hour, 2)
(1.0, 1.0)
>>> round(allocate(Problem(offered, tasks), solver=False).usd_per_hour, 2)  # greedy
1.28

Record: docs/maintainers/decisions/0006-allocation.md.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.allocation.basket import Basket, finish
from argosy.market.allocation.bound import quick_bound
from argosy.market.allocation.effort import THOROUGH, Effort
from argosy.market.allocation.generate import Centre, NoOptimum, is_available
from argosy.market.allocation.many_sizes import Dives, by_groups, fluid_bound_of
from argosy.market.allocation.patterns import by_patterns
from argosy.market.allocation.problem import BestPlan, Lot, Plan, Problem
from argosy.model.pools import Patterns
from argosy.placement.arrays import FloatArray, IntArray

_MANY = 150  # shapes: above, the LP over patterns has too many rows
_MANY_POOLS = 5_000  # above, the fluid LP takes seconds
_FEW_TASKS = 10_000  # above, rounding loses little, and a dive takes seconds
_FAR = 0.03  # gap, as a share of the bound, above which other bounds are tried too
_ROUGH_SLACK = 0.75  # the same for a first plan that much better ones follow
_GREEDY_SLACK = 0.9  # offers nearly as good as the best are bought without another search


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """The instances to buy, with the tasks on them."""

    lots: tuple[Lot, ...]
    left_out: IntArray  # (s,) tasks without a place, including those that fit into no pool
    usd_per_hour: float
    lower_bound_usd_per_hour: float  # of any plan for the tasks that have a place
    method: str  # "greedy", "patterns" or "dives"
    kept: Patterns

    @property
    def gap(self) -> float:
        """The plan's cost above the bound, as a share of the bound; 0 for an empty plan."""
        low = self.lower_bound_usd_per_hour
        if self.usd_per_hour <= low:
            return 0.0
        return self.usd_per_hour / low - 1 if low > 0 else float("inf")

    @property
    def pool(self) -> IntArray:
        """(lots,)"""
        return np.array([lot.pool for lot in self.lots], dtype=np.int64)

    @property
    def times(self) -> IntArray:
        """(lots,) instances."""
        return np.array([lot.times for lot in self.lots], dtype=np.int64)

    @property
    def instances(self) -> int:
        return sum(lot.times for lot in self.lots)


def allocate(
    problem: Problem,
    effort: Effort = THOROUGH,
    *,
    kept: Patterns = (),
    solver: bool = True,
) -> Allocation:
    """The cheapest plan found for `problem` with `effort`.

    kept: `Allocation.kept` of an earlier one. solver: False = only the greedy result. Equal arguments get equal results
    unless time runs out.
    """
    unplaceable = np.where(problem.unplaceable, problem.backlog.count, 0)
    if unplaceable.any():
        placeable = replace(problem.backlog, count=problem.backlog.count - unplaceable)
        problem = Problem(problem.offered, placeable, problem.max_share)
    value = _single_values(problem)
    best = BestPlan(_greedy(problem, value))
    if solver and is_available() and problem.backlog.count.any() and not effort.time.passed():
        with contextlib.suppress(NoOptimum):  # the best plan so far is complete
            kept = _improve(problem, best, value, kept, effort)
            _raise_bound(problem, best, effort)
    if not best.bound or (effort.again and not best.is_near(_FAR)):
        centre = Centre(0.0, value, problem.offered.price)
        best.raise_bound(quick_bound(problem, centre, problem.backlog.count - best.plan.rest, best.plan.usd_per_hour()))
    return _answer(best, unplaceable, kept)


def _greedy(problem: Problem, value: FloatArray) -> Plan:
    if _is_many(problem):
        return by_groups(Plan.empty(problem), value, _ROUGH_SLACK)
    basket = Basket(problem)
    basket.raise_cap(float(problem.backlog.count.astype(float) @ problem.backlog.need[:, 0]))
    finish(basket, value, problem.offered.price, _GREEDY_SLACK)
    return basket.plan()


def _improve(problem: Problem, best: BestPlan, value: FloatArray, kept: Patterns, effort: Effort) -> Patterns:
    """Improve on `best` by dives and patterns; returns the patterns to keep. Unsolved when HiGHS finds no optimum."""
    many, bound = _is_many(problem), (problem.max_share, problem.most_tasks, problem.shares)
    dives = Dives(problem, effort) if all(each is None for each in bound) else None
    few = len(problem.offered.price) <= _MANY_POOLS and problem.backlog.count.sum() <= _FEW_TASKS
    if dives and (many or (effort.again and few)):
        dives.begin(best)
    if not many and not best.is_near(effort.good_enough):
        kept = by_patterns(best, value, kept, effort, dives)
    if dives:
        dives.improve(best)
    return kept


def _is_many(problem: Problem) -> bool:
    """Whether the LP over patterns has too many rows. Shares of GPUs have no other."""
    return len(problem.backlog.count) > _MANY and problem.shares is None


def _raise_bound(problem: Problem, best: BestPlan, effort: Effort) -> None:
    """The bound that needs no tables, if that of the patterns is not near and there is time. Unsolved as above."""
    if _is_many(problem):
        wanted = not best.bound
    else:
        wanted = effort.again > 0 and not best.is_near(effort.good_enough) and not effort.time.passed()
    if wanted and len(problem.offered.price) <= _MANY_POOLS and problem.shares is None:
        best.raise_bound(fluid_bound_of(problem, problem.backlog.count - best.plan.rest))


def _single_values(problem: Problem) -> FloatArray:
    """(s,) the lowest price of a task on an instance with only its shape; 0 for shapes that fit nowhere."""
    cheapest = problem.cheapest(problem.offered.price)[:, None]
    price = np.where(problem.room > 0, cheapest / np.maximum(problem.room, 1), np.inf)
    lowest = price.min(axis=0, initial=np.inf)
    found: FloatArray = np.where(np.isfinite(lowest), lowest, 0.0)
    return found


def _answer(best: BestPlan, unplaceable: IntArray, kept: Patterns) -> Allocation:
    plan = best.plan
    return Allocation(
        lots=tuple(sorted(plan.lots, key=lambda lot: lot.pool)),
        left_out=plan.rest + unplaceable,
        usd_per_hour=plan.usd_per_hour(),
        lower_bound_usd_per_hour=min(best.bound, plan.usd_per_hour()),
        method=best.method,
        kept=kept,
    )
