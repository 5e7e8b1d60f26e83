"""How does a plan in fractions become one in whole instances? Round down, then place the few remaining tasks.

The LP has at most one fraction per row, so few tasks remain, whatever their number.
"""

from __future__ import annotations

import math

import numpy as np

from argosy.market.allocation.basket import Basket, complete, fit_smaller
from argosy.market.allocation.generate import pool_prices
from argosy.market.allocation.master import Master, Solution
from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import FloatArray, IntArray

_WHOLE = 1e-6  # a fraction this close to the next whole number is that number
_LEAST = 0.05  # of the price, whatever the shares make of it
_REPAIRS = 20


def rounded_down(problem: Problem, master: Master, solution: Solution) -> Basket:
    """The whole instances of `solution`."""
    basket = Basket(problem)
    price = pool_prices(problem, solution)
    basket.raise_cap(float(solution.bought @ problem.offered.capacity[:, 0]))
    uses = np.floor(solution.used + _WHOLE).astype(np.int64)
    order = np.lexsort((np.arange(len(price)), price, problem.size_of_pool))
    starts = np.searchsorted(problem.size_of_pool[order], np.arange(len(problem.sizes) + 1))
    bought = np.floor(solution.bought + _WHOLE).astype(np.int64)
    for number in np.flatnonzero(uses).tolist():
        size = int(master.size_of[number])
        pools = order[starts[size] : starts[size + 1]]
        _buy_use(basket, pools, bought, master.pattern[number], int(uses[number]))
    return basket


def least_prices(problem: Problem, solution: Solution) -> FloatArray:
    """(p,) prices under the shares, of which none makes a pool free."""
    prices: FloatArray = np.maximum(pool_prices(problem, solution), problem.offered.price * _LEAST)
    return prices


def _buy_use(basket: Basket, pools: IntArray, bought: IntArray, pattern: IntArray, times: int) -> None:
    """Buy one pattern's instances: from the pools from which the LP bought, then from any pool of the size."""
    for limit in (bought, basket.depth_left):
        for pool in pools.tolist():
            if not times:
                return
            done = basket.buy(pool, pattern, min(times, int(limit[pool])))
            if limit is bought:
                bought[pool] -= done
            times -= done


def finish(basket: Basket, value: FloatArray, price: FloatArray, slack: float = 1.0) -> None:
    """Complete the plan, move patterns into smaller instances where they fit, and enforce the maximum share."""
    complete(basket, value, price, slack)
    fit_smaller(basket)
    share = basket.problem.max_share
    for _ in range(_REPAIRS if share is not None else 0):
        basket.raise_cap(float(basket.bought_cpu))
        _take_back_excess(basket)
        before = basket.bought_cpu
        basket.raise_cap(float(before))
        complete(basket, value, price, slack)
        if basket.bought_cpu == before and not _excess(basket).any():
            return


def _excess(basket: Basket) -> FloatArray:
    """(t,) the cpu units of a kind above its share of what is bought."""
    most = basket.bought_cpu * float(basket.problem.max_share or 1) * (1 + 1e-9)
    over: FloatArray = np.maximum(basket.cpu_by_kind - most, 0)
    return over


def _take_back_excess(basket: Basket) -> None:
    """Give back instances of kinds that exceed their share, the least useful first; place their tasks again."""
    offered, need = basket.problem.offered, basket.problem.backlog.need
    over = _excess(basket)
    rows = [row for row in basket.rows() if over[offered.kind[row[0]]] > 0]
    for pool, pattern, times in sorted(
        rows, key=lambda row: (float((row[1] @ need)[0]) / offered.price[row[0]], row[0])
    ):
        excess = math.ceil(over[offered.kind[pool]])
        cpu = int(offered.capacity[pool, 0])
        if excess > 0 and cpu:
            gone = min(times, -(-excess // cpu))
            basket.give_back(pool, pattern, gone)
            over[offered.kind[pool]] -= gone * cpu
