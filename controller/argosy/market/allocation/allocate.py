"""Which instances, with which tasks on them, are bought for a backlog, and how much cheaper could it be?

A greedy answer is there first. Then a linear program over patterns improves on it while there is time, and a bound
from its duals says what no plan can cost less than (docs/maintainers/decisions/0006-allocation.md).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np

from argosy.market.allocation.basket import Basket
from argosy.market.allocation.bound import quick_bound
from argosy.market.allocation.effort import THOROUGH, Effort
from argosy.market.allocation.generate import Centre
from argosy.market.allocation.lots import Lot, Plan
from argosy.market.allocation.many import by_dives, by_groups, fluid_bound_of
from argosy.market.allocation.master import Unsolved, is_available
from argosy.market.allocation.patterns import by_patterns
from argosy.market.allocation.problem import Problem, TaskShapes
from argosy.market.allocation.rounding import finish
from argosy.model.pools import Patterns
from argosy.placement.arrays import FloatArray, IntArray

_MANY = 150  # shapes: above, the LP over patterns has too many rows
_MANY_POOLS = 5_000  # more take the fluid LP seconds
_FAR = 1.03  # times a bound: then every other one is looked for
_ROUGH_SLACK = 0.75  # the same where much better plans follow
_GREEDY_SLACK = 0.9  # offers nearly as good as the best are bought without looking again


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """What is bought, with the tasks that go on it."""

    lots: tuple[Lot, ...]
    left_out: IntArray  # (s,) tasks without a place, including those that fit into no pool
    usd_per_hour: float
    lower_bound_usd_per_hour: float  # of any plan for the tasks that have a place
    method: str  # "greedy", "patterns" or "dives"
    kept: Patterns

    @property
    def gap(self) -> float:
        """By how much the plan costs more than the bound, as a share of the bound; 0 for an empty plan."""
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

    kept: `Allocation.kept` of an earlier one. solver: False = only the greedy answer. Equal arguments get equal answers
    unless time runs out.
    """
    unplaceable = np.where(problem.unplaceable, problem.backlog.count, 0)
    if unplaceable.any():
        placeable = TaskShapes(problem.backlog.need, problem.backlog.count - unplaceable)
        problem = Problem(problem.offered, placeable, problem.max_share)
    value = _single_values(problem)
    solver = solver and is_available() and bool(problem.backlog.count.any()) and not effort.time.passed()
    if len(problem.backlog.count) > _MANY:
        plan, bound, method = _many(problem, value, effort, solver)
        return _answer(plan, unplaceable, bound, method, ())
    greedy = Basket(problem)
    greedy.raise_cap(float(problem.backlog.count.astype(float) @ problem.backlog.need[:, 0]))
    finish(greedy, value, problem.offered.price, _GREEDY_SLACK)
    if solver:
        try:
            best, bound, kept = by_patterns(problem, greedy, value, kept, effort)
            plan = best.plan()
            bound = max(bound, _without_tables(problem, value, plan, bound, effort))
            return _answer(plan, unplaceable, bound, "greedy" if best is greedy else "patterns", kept)
        except Unsolved:
            pass  # the greedy answer is complete without it
    return _answer(greedy.plan(), unplaceable, _quick_bound(problem, value, greedy.plan()), "greedy", kept)


def _many(problem: Problem, value: FloatArray, effort: Effort, solver: bool) -> tuple[Plan, float, str]:
    """For more shapes than the LP over patterns can have rows."""
    greedy = by_groups(Plan.empty(problem), value, _ROUGH_SLACK)
    best, bound = greedy, 0.0
    if solver and problem.max_share is None and problem.most_tasks is None:  # dives know neither
        with contextlib.suppress(Unsolved):  # the greedy answer is complete without it
            best, bound = by_dives(problem, greedy, effort)
    if not bound:
        bound = _quick_bound(problem, value, best)
    return best, bound, "greedy" if best is greedy else "dives"


def _without_tables(problem: Problem, value: FloatArray, plan: Plan, bound: float, effort: Effort) -> float:
    """Another bound, where that of the patterns is not near: those that need no tables are there at once."""
    if not effort.again or plan.usd_per_hour() <= bound * (1 + effort.good_enough):
        return 0.0
    quick = _quick_bound(problem, value, plan) if plan.usd_per_hour() > bound * _FAR else 0.0
    if len(problem.offered.price) > _MANY_POOLS:
        return quick
    with contextlib.suppress(Unsolved):
        quick = max(quick, fluid_bound_of(problem, problem.backlog.count - plan.rest))
    return quick


def _quick_bound(problem: Problem, value: FloatArray, plan: Plan) -> float:
    centre = Centre(0.0, value, problem.offered.price)
    return quick_bound(problem, centre, problem.backlog.count - plan.rest, plan.usd_per_hour())


def _single_values(problem: Problem) -> FloatArray:
    """(s,) the lowest price of a task on an instance with only its shape; 0 for shapes that fit nowhere."""
    cheapest = problem.cheapest(problem.offered.price)[:, None]
    price = np.where(problem.room > 0, cheapest / np.maximum(problem.room, 1), np.inf)
    lowest = price.min(axis=0, initial=np.inf)
    found: FloatArray = np.where(np.isfinite(lowest), lowest, 0.0)
    return found


def _answer(plan: Plan, unplaceable: IntArray, bound: float, method: str, kept: Patterns) -> Allocation:
    return Allocation(
        lots=tuple(sorted(plan.lots, key=lambda lot: lot.pool)),
        left_out=plan.rest + unplaceable,
        usd_per_hour=plan.usd_per_hour(),
        lower_bound_usd_per_hour=min(bound, plan.usd_per_hour()),
        method=method,
        kept=kept,
    )
