"""Lower bounds of the cost of any plan, from duals and overestimated fillings.

For any values `v` >= 0 of the tasks: cost >= sum(count * v) - sum over pools of depth * max(0, best filling - price).
This also holds for every multiple of `v`, and the best multiple is found exactly: the bound is concave and piecewise
linear in it.
"""

from __future__ import annotations

import numpy as np

from argosy.market.allocation.basket import with_places
from argosy.market.allocation.effort import Effort
from argosy.market.allocation.filling_bounds import relaxed_worth
from argosy.market.allocation.generate import Centre, ColumnGeneration, scaled_bound
from argosy.market.allocation.problem import Plan, Problem
from argosy.placement.arrays import FloatArray, IntArray

_ENOUGH = 0.0015  # share of the cost: a bound this near needs no sharper table
_FINER = 4  # each table is this many times finer than the one before
_ROUNDS = 120
_REACH = 3.0  # axis prices are searched up to this many times the price at which that axis alone costs the plan
_SAFETY = 1e-9  # the share by which a bound is lowered for the rounding of float sums


def quick_bound(problem: Problem, centre: Centre, count: IntArray, usd_per_hour: float) -> float:
    """A valid lower bound of the cost of placing `count` (s,) tasks, at least 0, from relaxations alone.

    centre: any values of the tasks and the prices of the pools. usd_per_hour: of some plan for them.
    """
    value = np.where(count > 0, centre.task_value, 0.0)
    worth = relaxed_worth(problem.sizes, problem.backlog.need, value, problem.most_tasks)
    bound = scaled_bound(problem, count, value, centre.pool_price, worth)
    return max(0.0, max(bound, fluid_bound(problem, count, usd_per_hour)) * (1 - _SAFETY))


def best_bound(problem: Problem, centre: Centre, plan: Plan, generation: ColumnGeneration, effort: Effort) -> float:
    """A valid lower bound of the cost of placing the tasks of `plan`, at least 0, from the duals `centre`.

    Fillings are bounded by relaxations, then by tables of the generation's work, 4 x and 16 x that, until the bound
    is near the plan's cost, `effort.looks` are over, or the next one would take too long.
    """
    count, price = problem.backlog.count - plan.rest, centre.pool_price
    # A shape without a place must not raise the worth of rooms: its price may be high although it is not sold.
    value = np.where(count > 0, centre.task_value, 0.0)
    pricer, time = generation.pricer, effort.time
    worth = pricer.relaxed(value)
    bound, begun, took = scaled_bound(problem, count, value, price, worth), time.now(), 0.0
    if not effort.looks:
        return max(0.0, bound * (1 - _SAFETY))
    cheapest = problem.cheapest(price)
    open_ = worth > cheapest
    worth[open_] = np.minimum(worth[open_], pricer.counted(np.flatnonzero(open_), value, count))
    bound = max(bound, scaled_bound(problem, count, value, price, worth))
    known = cheapest
    if problem.shares is None:
        known = np.maximum(pricer.fillings(value, cheapest, generation.work)[2], cheapest)
    for look in range(effort.looks):
        open_ = worth > known * (1 + 1e-7)
        near = plan.usd_per_hour() <= bound * (1 + _ENOUGH)
        if near or not open_.any() or took * _FINER > time.left():
            break
        worth = np.minimum(worth, pricer.at_most(value, open_, generation.work * _FINER**look))
        bound = max(bound, scaled_bound(problem, count, value, price, worth))
        begun, took = time.now(), time.now() - begun
    return max(0.0, bound * (1 - _SAFETY))


def fluid_bound(problem: Problem, count: IntArray, usd_per_hour: float) -> float:
    """A lower bound in USD an hour of any plan for `count` (s,) tasks, as if tasks could be split; at least 0.

    Every task is worth the cost of its cpu, memory and GPUs at one price each, and of its place if instances have a
    maximum of tasks. No filling is then worth more than the size it fills, so `sum(count x value) - sum(depth x max(0,
    value of the size - price))` is a bound for any such prices. It is concave in them: the ellipsoid method halves the
    region of the best prices about a hundred times. On 1,500 pools the result is a sixth below the bound of the
    patterns; the values of single shapes alone give a fifth to two fifths less. It takes milliseconds and no solver.
    usd_per_hour: the cost of some plan, which shows where to search.
    """
    some = problem.offered.depth > 0
    capacity, need = problem.offered.capacity, problem.backlog.need
    if problem.pool_most_tasks is not None:
        capacity, need = with_places(capacity, need, problem.pool_most_tasks)
    wanted = count.astype(np.float64) @ need
    used = np.flatnonzero(wanted > 0)
    if not len(used) or not some.any() or usd_per_hour <= 0:
        return 0.0
    # Rates in shares of the plan's cost: 1 = the whole cost is paid for that axis.
    size = capacity[some][:, used] * (usd_per_hour / wanted[used])
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
    """The smallest ellipsoid around the half of one in the direction of `step`."""
    n = len(rates)
    if n == 1:
        return rates + step / 2, shape / 4
    smaller = n * n / (n * n - 1.0) * (shape - 2.0 / (n + 1) * np.outer(step, step))
    return rates + step / (n + 1), smaller
