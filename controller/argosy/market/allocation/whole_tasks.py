"""How much more than their price are tasks worth because they cannot be split?

Two tasks that each need more than half of a size's cpu never share an instance of it. So each of them may be worth the
size's cost less the best filling of the room next to it, all of them at once; on larger sizes it pays by the price. The
best filling comes from a knapsack table with needs rounded down, so it is never valued too low. Sizes are handled from
small to large: a value raised for one size must only respect the prices of the larger ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import AnyArray, FloatArray, IntArray

_CELLS = 256  # of a table, on each axis
_LEVELS = 3  # amounts of cpu, from the least: larger sizes hold enough tasks to be filled
_UP = 1 + 1e-5  # above the rounding loss of sums of 32-bit floats


def raised(problem: Problem, value: FloatArray, sizes: IntArray, price: FloatArray) -> FloatArray:
    """(s,) values >= `value` at which no filling of any of `sizes` is worth more than the size costs.

    price: (k, 3) USD per hour of a cpu unit, a MiB and a GPU on each size: no task that fits is worth more by `value`.
    """
    amounts = np.unique(problem.sizes[sizes, 0])
    for amount in amounts[amounts > 0][:_LEVELS].tolist():
        value = _raised_up_to(problem, value, sizes, price, amount)
    return value


def _raised_up_to(problem: Problem, value: FloatArray, sizes: IntArray, price: FloatArray, amount: int) -> FloatArray:
    """Higher values for tasks with more than half of `amount` cpu units, at most all of it."""
    need, cpu = problem.backlog.need, problem.backlog.need[:, 0]
    large = np.flatnonzero((cpu > amount / 2) & (cpu <= amount) & (value > 0) & (need[:, 2] == 0))
    small = np.flatnonzero((cpu <= amount / 2) & (value > 0))
    fits = problem.room[:, large] > 0
    level = problem.sizes[sizes, 0] <= amount
    larger = sizes[~level]
    pays = np.where(fits[larger], price[larger] @ need[large].T, np.inf)
    more = pays.min(axis=0, initial=np.inf) - value[large]
    for size in sizes[level].tolist():
        asked = np.flatnonzero(fits[size] & (more > 0))
        if len(asked):
            chosen = large[asked]
            rest = _rest_beside(problem, value, size, price[size], small, chosen)
            more[asked] = np.minimum(more[asked], rest - value[chosen])
    found = value.copy()
    found[large] += np.maximum(np.where(np.isfinite(more), more, 0.0), 0.0)
    return found


def _rest_beside(
    problem: Problem, value: FloatArray, size: int, price: FloatArray, small: IntArray, large: IntArray
) -> FloatArray:
    """(n,) the cost of the size at `price` (3,) less the highest worth of the room next to each `large` (n,) task.

    GPUs are paid for by their price: the table has no axis for them.
    """
    capacity, need = problem.sizes[size], problem.backlog.need
    reach = np.maximum([capacity[0] // 2, capacity[1]], 1)
    small = small[(problem.room[size, small] > 0) & (need[small, :2] <= reach).all(axis=1)]
    worth = _table(
        need[small, :2] * _CELLS // reach,
        value[small] - price[2] * need[small, 2],
        problem.room[size, small],
    )
    at = np.minimum((capacity[:2] - need[large, :2]) * _CELLS // reach, _CELLS)
    beside = worth[at[:, 0], at[:, 1]].astype(np.float64) * _UP
    found: FloatArray = price[:2] @ capacity[:2] - beside
    return found


def _table(need: IntArray, value: FloatArray, most: IntArray) -> AnyArray:
    """The highest worth of tasks `need` (n, 2), each at most `most` (n,) times, together on that many cells."""
    worth = np.zeros((_CELLS + 1, _CELLS + 1), dtype=np.float32)
    for (cpu, memory), one, times in zip(need.tolist(), value.tolist(), most.tolist(), strict=True):
        for together in _bundles(times if one > 0 else 0):
            first, second = cpu * together, memory * together
            if max(first, second) <= _CELLS:
                rest = worth[: _CELLS + 1 - first, : _CELLS + 1 - second] + np.float32(one * together)
                np.maximum(worth[first:, second:], rest, out=worth[first:, second:])
    return worth


def _bundles(times: int) -> Iterator[int]:
    """Numbers whose sums, each used once, give every number up to `times`: 1, 2, 4 and so on, and the rest."""
    together = 1
    while times > 0:
        yield min(together, times)
        times, together = times - together, 2 * together
