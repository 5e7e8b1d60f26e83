"""What can no plan cost less than? The dual bound of the pattern LP, with fillings never valued too low.

For any values `v` of the tasks >= 0: cost >= sum(count * v) - sum over pools of depth * max(0, best filling - price).
It holds for every multiple of `v` too, and the best is found exactly: the bound is concave and piecewise linear in it.
"""

from __future__ import annotations

import numpy as np

from argosy.market.allocation.basket import Basket
from argosy.market.allocation.effort import Deadline
from argosy.market.allocation.generate import Centre, dual_bound
from argosy.market.allocation.pricing import Pricer
from argosy.market.allocation.problem import Problem
from argosy.market.allocation.relaxed import relaxed_worth
from argosy.placement.arrays import FloatArray, IntArray

_ENOUGH = 0.0015  # share of the cost: a bound this near needs no sharper look
_FINER = 4  # each look is so much finer than the one before
_ROUNDS = 120
_REACH = 3.0  # how many times what an axis would cost if it alone were paid for its price is looked for
_SAFETY = 1e-9  # share given away for the rounding of float sums: rounded in the bound's favour


def best_bound(
    problem: Problem, centre: Centre, basket: Basket, pricer: Pricer | None, work: int, looks: int, deadline: Deadline
) -> float:
    """A valid lower bound of the cost of placing what `basket` places, from the duals `centre`; 0 at least.

    Fillings are bounded by the relaxation, then by tables of `work`, 4 x and 16 x that, until the bound is near the
    basket's cost, `looks` are over or the next one would take too long. Without a `pricer` there is no time for that.
    """
    value, price, count = centre.task_value, centre.pool_price, problem.wanted.count - basket.rest
    worth = relaxed_worth(problem.sizes, problem.wanted.need, value)
    bound, begun, took = scaled_bound(problem, count, value, price, worth), deadline.now(), 0.0
    if pricer is None:
        bound = max(bound, fluid_bound(problem, count, basket.usd_per_hour()))
    else:
        cheapest = problem.cheapest(price)
        known = np.maximum(pricer.fillings(value, cheapest, work)[1], cheapest)
        for look in range(looks):
            open_ = worth > known * (1 + 1e-7)
            near = basket.usd_per_hour() <= bound * (1 + _ENOUGH)
            if near or not open_.any() or took * _FINER > deadline.left():
                break
            worth = np.minimum(worth, pricer.at_most(value, open_, work * _FINER**look))
            bound = max(bound, scaled_bound(problem, count, value, price, worth))
            begun, took = deadline.now(), deadline.now() - begun
    return max(0.0, bound * (1 - _SAFETY))


def scaled_bound(problem: Problem, count: IntArray, value: FloatArray, price: FloatArray, worth: FloatArray) -> float:
    """The best bound for a multiple of `value`; `worth` (k,) is at least that of the best filling of each size."""
    offered = problem.offered
    at, least = worth[problem.size_of_pool], float(count @ value)
    pays = (at > 0) & (offered.depth > 0)
    turn = np.maximum(price[pays], 0) / at[pays]
    order = np.argsort(turn, kind="stable")
    slope = least - np.cumsum((offered.depth[pays] * at[pays])[order])
    last = int(np.searchsorted(-slope, 0.0))
    factor = float(turn[order][last]) if last < len(order) else 1.0
    return max(dual_bound(problem, count, value * f, price, worth * f) for f in (factor, 1.0))


def fluid_bound(problem: Problem, count: IntArray, usd_per_hour: float) -> float:
    """USD an hour that no plan for `count` (s,) tasks can cost less than; 0 at least.

    usd_per_hour: what some plan costs, which says where to look.
    """
    some = problem.offered.depth > 0
    wanted = count.astype(np.float64) @ problem.wanted.need
    used = np.flatnonzero(wanted > 0)
    if not len(used) or not some.any() or usd_per_hour <= 0:
        return 0.0
    # Rates in shares of the plan's cost: 1 = the whole cost is paid for that axis.
    size = problem.offered.capacity[some][:, used] * (usd_per_hour / wanted[used])
    price, depth = problem.offered.price[some], problem.offered.depth[some].astype(np.float64)
    total = np.full(len(used), usd_per_hour)
    return max(0.0, _best(total, size, price, depth) * (1 - _SAFETY))


def _best(total: FloatArray, size: FloatArray, price: FloatArray, depth: FloatArray) -> float:
    n = len(total)
    rates, shape = np.full(n, _REACH / 2), np.eye(n) * (_REACH / 2) ** 2 * n
    best = 0.0
    for _ in range(_ROUNDS):
        if (rates < 0).any():
            slope = np.eye(n)[int(rates.argmin())]  # only prices from zero on count
        else:
            rent = size @ rates - price
            pays = rent > 0
            best = max(best, float(total @ rates - depth[pays] @ rent[pays]))
            slope = total - depth[pays] @ size[pays]
        reach = float(slope @ shape @ slope)
        if reach <= 0:
            break
        rates, shape = _half(rates, shape, shape @ slope / np.sqrt(reach))
    return best


def _half(rates: FloatArray, shape: FloatArray, step: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest ellipsoid around the half of one that lies in the direction of `step`."""
    n = len(rates)
    if n == 1:
        return rates + step / 2, shape / 4
    smaller = n * n / (n * n - 1.0) * (shape - 2.0 / (n + 1) * np.outer(step, step))
    return rates + step / (n + 1), smaller
