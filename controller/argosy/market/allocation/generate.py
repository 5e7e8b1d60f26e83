"""Which patterns should the LP know? Column generation: solve the LP, price fillings by its duals, add the better ones.

Prices are taken between the LP's duals and those of the best bound so far (Wentges' smoothing): the duals of an LP with
few patterns jump, and patterns made for them are wasted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.allocation.filling import best_fillings
from argosy.market.allocation.master import CPU, Master, Solution
from argosy.market.allocation.pricing import Pricer
from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import AnyArray, FloatArray, IntArray

_BETTER = 1 + 1e-7  # a pattern must be worth so much more than its size
_SMOOTHING = 0.5
_QUICK_GAIN = 0.002  # quick pricing continues while it lowers the cost by more than this share
_STATE_EVERY = 16  # rounds with tables
_TOLERANCE = 0.0001  # share of the cost, in fractions of instances


@dataclass(slots=True, eq=False)
class Centre:
    """The duals with the best bound so far: values of tasks (s,), prices of pools (p,) including the shares' costs."""

    bound: float
    task_value: FloatArray
    pool_price: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ColumnGeneration:
    """Column generation with tables of one size: it adds patterns to `master`."""

    master: Master
    pricer: Pricer
    work: int
    """Cells times shapes of a table."""
    rounds: int
    time_is_up: Callable[[], bool]
    to_the_end: bool = False
    """Whether fillings that no grid shows are looked for too."""

    def run(self, problem: Problem) -> tuple[Solution, Centre]:
        """The last of `states`, however far they came."""
        *_, (solution, centre, _) = self.states(problem)
        return solution, centre

    def states(self, problem: Problem) -> Iterator[tuple[Solution, Centre, bool]]:
        """The LP after the quick rounds and after every few rounds with tables, and whether these are all.

        They end when the LP is near what its duals promise, nothing improves, or time or rounds are up.
        """
        solution = self._quick_rounds(problem)
        centre = Centre(0.0, solution.task_value, pool_prices(problem, solution))
        smoothing, in_parts = 0.0, False
        for number in range(self.rounds):
            if number % _STATE_EVERY == 0 and self.rounds > _STATE_EVERY:
                yield solution, centre, False
            if self.time_is_up():
                break
            value = smoothing * centre.task_value + (1 - smoothing) * solution.task_value
            price = smoothing * centre.pool_price + (1 - smoothing) * pool_prices(problem, solution)
            if in_parts:
                pattern, worth = self.pricer.whole_parts(value, problem.cheapest(price))
            else:
                pattern, worth = self.pricer.fillings(value, problem.cheapest(price), self.work)
            bound = dual_bound(problem, problem.backlog.count, value, price, worth)
            if bound > centre.bound:
                centre = Centre(bound, value, price)
            if solution.usd_per_hour - centre.bound > _TOLERANCE * solution.usd_per_hour:
                if _add_better(problem, self.master, solution, pattern):
                    solution, smoothing = self.master.solve(), _SMOOTHING
                    continue
                if smoothing:
                    smoothing = 0.0
                    continue
            if in_parts or self.pricer.exact or not self.to_the_end:
                break
            # Where the grid rounds needs up, it misses fillings that fit exactly: there may be better ones.
            yield solution, centre, True
            in_parts, smoothing, centre = True, 0.0, replace(centre, bound=0.0)
        yield solution, centre, True

    def _quick_rounds(self, problem: Problem) -> Solution:
        """Rounds that price with quick fillings, as long as that lowers the cost."""
        backlog, solution = problem.backlog, self.master.solve()
        for _ in range(self.rounds):
            if self.time_is_up():
                break
            pattern, _worth = best_fillings(
                problem.sizes, backlog.need, solution.task_value, backlog.count, problem.most_tasks
            )
            if not _add_better(problem, self.master, solution, pattern):
                break
            before, solution = solution, self.master.solve()
            if solution.usd_per_hour > before.usd_per_hour * (1 - _QUICK_GAIN):
                break
        return solution


def _add_better(problem: Problem, master: Master, solution: Solution, pattern: IntArray) -> int:
    """Add the patterns that are worth more than their size costs."""
    cost = np.maximum(solution.size_value, problem.cheapest(pool_prices(problem, solution)))
    better = np.flatnonzero(pattern @ solution.task_value > cost * _BETTER)
    return master.add(better, pattern[better])


def pool_prices(problem: Problem, solution: Solution) -> FloatArray:
    """(p,) prices under a maximum share: higher for kinds that have reached theirs, lower for the others."""
    offered = problem.offered
    if problem.max_share is None:
        return offered.price
    own = solution.share_value[offered.kind] - problem.max_share * solution.share_value.sum()
    prices: FloatArray = offered.price + own * offered.capacity[:, 0] / CPU
    return prices


def dual_bound(problem: Problem, count: AnyArray, value: FloatArray, price: FloatArray, worth: FloatArray) -> float:
    """A lower bound of any plan for `count` (s,) tasks, if no filling of a size is worth more than `worth` (k,)."""
    rent = np.maximum(0.0, worth[problem.size_of_pool] - price)
    return float(count @ value - problem.offered.depth @ rent)
