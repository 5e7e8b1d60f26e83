"""Which patterns are worth having? Column generation: solve the LP, price fillings under its duals, add the better.

Prices are looked up between the LP's duals and those of the best bound so far (Wentges' smoothing): duals of a young
LP jump about, and patterns made for them are wasted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from argosy.market.allocation.filling import best_fillings
from argosy.market.allocation.master import CPU, Master, Solution
from argosy.market.allocation.pricing import Pricer
from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import FloatArray, IntArray

_BETTER = 1 + 1e-7  # a pattern must be worth so much more than its size
_SMOOTHING = 0.5
_QUICK_GAIN = 0.002  # the quick pricing goes on while it lowers the cost by more than this share
_TOLERANCE = 0.0001  # share of the cost, in fractions of instances


@dataclass(slots=True, eq=False)
class Centre:
    """The duals with the best bound so far: values of tasks (s,), prices of pools (p,) with what the shares cost."""

    bound: float
    task_value: FloatArray
    pool_price: FloatArray


def generate(
    problem: Problem, master: Master, pricer: Pricer, work: int, rounds: int, time_is_up: Callable[[], bool]
) -> tuple[Solution, Centre]:
    """Until the LP is near what its duals promise, nothing improves, or time or rounds are up."""
    solution = _quick_rounds(problem, master, rounds, time_is_up)
    centre = Centre(0.0, solution.task_value, pool_prices(problem, solution))
    smoothing = 0.0
    for _ in range(rounds):
        if time_is_up():
            break
        value = smoothing * centre.task_value + (1 - smoothing) * solution.task_value
        price = smoothing * centre.pool_price + (1 - smoothing) * pool_prices(problem, solution)
        pattern, worth = pricer.fillings(value, problem.cheapest(price), work)
        bound = dual_bound(problem, problem.wanted.count, value, price, worth)
        if bound > centre.bound:
            centre = Centre(bound, value, price)
        if solution.usd_per_hour - centre.bound <= _TOLERANCE * solution.usd_per_hour:
            break
        if _add_better(problem, master, solution, pattern):
            solution, smoothing = master.solve(), _SMOOTHING
        elif smoothing:
            smoothing = 0.0
        else:
            break
    return solution, centre


def _quick_rounds(problem: Problem, master: Master, rounds: int, time_is_up: Callable[[], bool]) -> Solution:
    solution = master.solve()
    for _ in range(rounds):
        if time_is_up():
            break
        pattern, _worth = best_fillings(problem.sizes, problem.wanted.need, solution.task_value, problem.wanted.count)
        if not _add_better(problem, master, solution, pattern):
            break
        before, solution = solution, master.solve()
        if solution.usd_per_hour > before.usd_per_hour * (1 - _QUICK_GAIN):
            break
    return solution


def _add_better(problem: Problem, master: Master, solution: Solution, pattern: IntArray) -> int:
    """Add the patterns that are worth more than their size costs."""
    cost = np.maximum(solution.size_value, problem.cheapest(pool_prices(problem, solution)))
    better = np.flatnonzero(pattern @ solution.task_value > cost * _BETTER)
    return master.add(better, pattern[better])


def pool_prices(problem: Problem, solution: Solution) -> FloatArray:
    """(p,) prices with what a maximum share makes of them: dearer for kinds that have theirs, cheaper for others."""
    offered = problem.offered
    if problem.max_share is None:
        return offered.price
    own = solution.share_value[offered.kind] - problem.max_share * solution.share_value.sum()
    prices: FloatArray = offered.price + own * offered.capacity[:, 0] / CPU
    return prices


def dual_bound(problem: Problem, count: IntArray, value: FloatArray, price: FloatArray, worth: FloatArray) -> float:
    """What no plan for `count` (s,) tasks can cost less than, if no filling of a size is worth more than `worth`."""
    rent = np.maximum(0.0, worth[problem.size_of_pool] - price)
    return float(count @ value - problem.offered.depth @ rent)
