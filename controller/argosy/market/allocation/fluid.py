"""What would the work cost if tasks could be cut, and so what can no plan cost less than? In milliseconds, no solver.

Every task is worth what its cpu, memory and GPUs cost at one price each. No filling is then worth more than the size it
fills, so `sum(count x value) - sum(depth x max(0, value of the size - price))` is a bound for any three prices. It is
concave in them: the ellipsoid method halves what may hold the best ones, a hundred times or so. On 1,500 pools it comes
out a sixth below the bound of the patterns, where the values of single shapes alone are a fifth to two fifths below.
"""

from __future__ import annotations

import numpy as np

from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import FloatArray, IntArray

_ROUNDS = 120
_REACH = 3.0  # how many times what an axis would cost if it alone were paid for its price is looked for
_SAFETY = 1e-9  # share given away for the rounding of float sums


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
