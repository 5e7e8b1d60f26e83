"""Which instances, with which tasks on them, are bought for a backlog, and how much cheaper could it be?

A greedy answer is there first. Then a linear program over patterns improves on it while there is time, and a bound
from its duals says what no plan can cost less than (docs/decisions/0006-allocation.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argosy.market.allocation.basket import Basket
from argosy.market.allocation.bound import quick_bound
from argosy.market.allocation.effort import THOROUGH, Effort
from argosy.market.allocation.generate import Centre
from argosy.market.allocation.master import Unsolved, is_available
from argosy.market.allocation.patterns import by_patterns
from argosy.market.allocation.problem import Problem, TaskShapes
from argosy.market.allocation.rounding import finish
from argosy.model.pools import Patterns
from argosy.placement.arrays import FloatArray, IntArray

_GREEDY_SLACK = 0.9  # offers nearly as good as the best are bought without looking again


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """`times[r]` instances of pool `pool[r]`, each with `pattern[r]` (s,) tasks by shape."""

    pool: IntArray
    pattern: IntArray
    times: IntArray
    left_out: IntArray  # (s,) tasks without a place, including those that fit into no pool
    usd_per_hour: float
    lower_bound_usd_per_hour: float  # of any plan for the tasks that have a place
    method: str  # "greedy" or "patterns"
    kept: Patterns

    @property
    def gap(self) -> float:
        """By how much the plan costs more than the bound, as a share of the bound; 0 for an empty plan."""
        low = self.lower_bound_usd_per_hour
        if self.usd_per_hour <= low:
            return 0.0
        return self.usd_per_hour / low - 1 if low > 0 else float("inf")

    @property
    def instances(self) -> int:
        return int(self.times.sum())


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
    problem = Problem(
        problem.offered, TaskShapes(problem.backlog.need, problem.backlog.count - unplaceable), problem.max_share
    )
    value = _single_values(problem)
    greedy = Basket(problem)
    greedy.raise_cap(float(problem.backlog.count.astype(float) @ problem.backlog.need[:, 0]))
    finish(greedy, value, problem.offered.price, _GREEDY_SLACK)
    if solver and is_available() and problem.backlog.count.any() and not effort.time.passed():
        try:
            best, bound, kept = by_patterns(problem, greedy, value, kept, effort)
            return _answer(best, unplaceable, bound, "greedy" if best is greedy else "patterns", kept)
        except Unsolved:
            pass  # the greedy answer is complete without it
    bound = quick_bound(problem, Centre(0.0, value, problem.offered.price), greedy)
    return _answer(greedy, unplaceable, bound, "greedy", kept)


def _single_values(problem: Problem) -> FloatArray:
    """(s,) the lowest price of a task on an instance with only its shape; 0 for shapes that fit nowhere."""
    cheapest = problem.cheapest(problem.offered.price)[:, None]
    price = np.where(problem.room > 0, cheapest / np.maximum(problem.room, 1), np.inf)
    lowest = price.min(axis=0, initial=np.inf)
    found: FloatArray = np.where(np.isfinite(lowest), lowest, 0.0)
    return found


def _answer(basket: Basket, unplaceable: IntArray, bound: float, method: str, kept: Patterns) -> Allocation:
    rows = basket.rows()
    shapes = len(unplaceable)
    return Allocation(
        pool=np.array([pool for pool, _, _ in rows], dtype=np.int64),
        pattern=np.array([pattern for _, pattern, _ in rows], dtype=np.int64).reshape(-1, shapes),
        times=np.array([times for _, _, times in rows], dtype=np.int64),
        left_out=basket.rest + unplaceable,
        usd_per_hour=basket.usd_per_hour(),
        lower_bound_usd_per_hour=min(bound, basket.usd_per_hour()),
        method=method,
        kept=kept,
    )
