"""The linear program over patterns, and the patterns that it lacks.

Columns: instances of a pool at its price, up to its depth; uses of a pattern; tasks left out at a price above all
others, so that there is always a solution. Rows: every shape's tasks are in patterns; every size's patterns have
instances; with a maximum share, no kind has more than its share of the bought cpu. All may be fractions.

Column generation: solve the LP, price fillings by its duals, add the better ones as columns, and continue the simplex
from its last basis. Prices are taken between the LP's duals and those of the best bound so far (Wentges' smoothing):
the duals of an LP with few patterns jump, and patterns made for them are wasted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from argosy.market.allocation.basket import fillings
from argosy.market.allocation.pricing import Pricer
from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import AnyArray, FloatArray, IntArray

_BETTER = 1 + 1e-7  # a pattern must be worth this many times its size's price
_SMOOTHING = 0.5
_QUICK_GAIN = 0.002  # quick pricing continues while it lowers the cost by more than this share
_STATE_EVERY = 8  # rounds with tables
_TOLERANCE = 0.0001  # share of the cost, in fractions of instances
_SHARED_TOLERANCE = 0.001  # where tasks share GPUs: rounds take longer
CPU = 1024.0  # cpu units per vCPU: keeps the numbers of the share rows near one
OPTIONS: Final = (
    ("output_flag", False),
    ("threads", 1),
    ("random_seed", 1),
    ("presolve", "off"),  # it would discard the basis
    ("simplex_strategy", 4),  # primal: adding columns keeps the basis feasible
)


Entries = tuple[AnyArray, AnyArray, AnyArray]  # column, row and amount of each


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An optimum of the LP over its current patterns."""

    bought: FloatArray  # (p,) instances
    used: FloatArray  # (q,) of each pattern
    left_out: FloatArray  # (s,) tasks
    task_value: FloatArray  # (s,) USD per hour: duals of the demand
    size_value: FloatArray  # (k,) USD per hour: duals of the sizes
    share_value: FloatArray  # (t,) USD per hour and cpu unit: duals of the shares
    usd_per_hour: float  # the objective, including the penalty for tasks left out


class NoOptimum(Exception):
    """HiGHS found no optimum."""


def optimum(lp: Any) -> tuple[FloatArray, FloatArray]:
    """The value of each column and the dual of each row. Raises NoOptimum."""
    lp.run()
    status = lp.modelStatusToString(lp.getModelStatus())
    if status != "Optimal":
        raise NoOptimum(f"the LP has no optimum: {status}")
    answer = lp.getSolution()
    return np.array(answer.col_value), np.array(answer.row_dual)


def is_available() -> bool:
    """Whether HiGHS is installed; without it there is only the greedy answer."""
    from importlib.util import find_spec

    return find_spec("highspy") is not None


def new_lp() -> Any:
    """An empty program in HiGHS."""
    import highspy

    engine: Any = highspy.Highs
    lp = engine()
    for option, choice in OPTIONS:
        lp.setOptionValue(option, choice)
    return lp


def add_rows(lp: Any, lower: FloatArray, upper: FloatArray) -> None:
    """Rows without entries."""
    none = np.zeros(0, dtype=np.int32)
    starts = np.zeros(len(lower), dtype=np.int32)
    lp.addRows(len(lower), lower.astype(np.float64), upper, 0, starts, none, none.astype(np.float64))


def add_columns(lp: Any, cost: FloatArray, upper: FloatArray, entries: Entries) -> None:
    """Columns with these entries, sorted by column."""
    column, row, amount = entries
    starts = np.searchsorted(column, np.arange(len(cost))).astype(np.int32)
    lp.addCols(len(cost), cost, np.zeros(len(cost)), upper, len(row), starts, row.astype(np.int32), amount)


def cover(count: IntArray, pattern: IntArray, price: FloatArray, seconds: float) -> list[int]:
    """How often each pattern (q, s) of `price` (q,) is used to hold `count` (s,) tasks, in a cheap way; 0 if none is
    found."""
    lp, rows = new_lp(), np.flatnonzero(count)
    for option, choice in (("presolve", "on"), ("mip_max_nodes", 200), ("mip_rel_gap", 2e-3), ("time_limit", seconds)):
        lp.setOptionValue(option, choice)
    add_rows(lp, count[rows].astype(np.float64), np.full(len(rows), np.inf))
    column, row = pattern[:, rows].nonzero()
    add_columns(lp, price, np.full(len(price), np.inf), (column, row, pattern[column, rows[row]].astype(np.float64)))
    every = np.arange(len(price), dtype=np.int32)
    lp.changeColsIntegrality(len(every), every, np.ones(len(every), dtype=np.uint8))
    lp.run()
    found: list[int] = np.rint(np.maximum(lp.getSolution().col_value, 0)).astype(np.int64).tolist()
    return found


class Master:
    """The LP of one problem. Patterns are (size, tasks by shape) and are only ever added. Tasks may be fractions."""

    def __init__(self, problem: Problem, penalty: FloatArray) -> None:
        self._problem, self._lp = problem, new_lp()
        self.size_of = np.zeros(0, dtype=np.int64)
        self.pattern: AnyArray = np.zeros((0, len(penalty)), dtype=np.int64)
        self._known: set[tuple[int, bytes]] = set()
        self._add_rows()
        each = np.arange(len(penalty))
        add_columns(self._lp, penalty, np.full(len(penalty), np.inf), (each, each, np.ones(len(penalty))))
        self._add_pools()

    def add(self, size_of: IntArray, pattern: IntArray | FloatArray) -> int:
        """Add patterns (q, s) for sizes (q,), except empty and known ones; returns how many were new."""
        size_of, pattern = self._new(size_of, pattern)
        if len(size_of):
            self.size_of = np.concatenate([self.size_of, size_of])
            self.pattern = np.concatenate([self.pattern, pattern])
            self._add_uses(size_of, pattern)
        return len(size_of)

    def _add_uses(self, size_of: IntArray, pattern: AnyArray) -> None:
        """A column each: the tasks that the pattern holds, then the row of its size."""
        column, shape = pattern.nonzero()
        ends = np.bincount(column, minlength=len(size_of)).cumsum()
        rows = np.insert(shape, ends, self.pattern.shape[1] + size_of)
        amounts = np.insert(pattern[column, shape].astype(np.float64), ends, -1.0)
        none = np.zeros(len(ends))
        add_columns(self._lp, none, none + np.inf, (np.insert(column, ends, np.arange(len(ends))), rows, amounts))

    def solve(self) -> Solution:
        """Unsolved when HiGHS finds no optimum: amounts of 2^40 next to 1 exceed what floats hold."""
        column, dual = optimum(self._lp)
        shapes, sizes, pools = self.pattern.shape[1], len(self._problem.sizes), len(self._problem.offered.price)
        uses = shapes + pools + (self._kinds > 0)
        return Solution(
            bought=np.maximum(column[shapes : shapes + pools], 0),
            used=np.maximum(column[uses:], 0),
            left_out=np.maximum(column[:shapes], 0),
            task_value=np.maximum(dual[:shapes], 0),
            size_value=dual[shapes : shapes + sizes],
            share_value=np.maximum(dual[shapes + sizes + 1 :], 0),
            usd_per_hour=float(self._lp.getObjectiveValue()),
        )

    def demand(self, count: IntArray | FloatArray) -> None:
        """Set other numbers of tasks from now on; count (s,)."""
        for shape, number in enumerate(count.tolist()):
            self._lp.changeRowBounds(shape, float(number), np.inf)

    @property
    def _kinds(self) -> int:
        return int(self._problem.offered.kind.max(initial=-1)) + 1 if self._problem.max_share is not None else 0

    def _add_rows(self) -> None:
        sizes, count = len(self._problem.sizes), self._problem.backlog.count.astype(np.float64)
        lower = np.concatenate([count, np.zeros(sizes + (1 + self._kinds) * (self._kinds > 0))])
        upper = np.full(len(lower), np.inf)
        if self._kinds:
            # No empty instances are bought only to satisfy the shares.
            upper[len(count) : len(count) + sizes + 1] = 0.0
        add_rows(self._lp, lower, upper)

    def _add_pools(self) -> None:
        offered, shares = self._problem.offered, self.pattern.shape[1] + len(self._problem.sizes)
        pool, cpu = np.arange(len(offered.price)), offered.capacity[:, 0] / CPU
        rows, amounts = [self.pattern.shape[1] + self._problem.size_of_pool], [np.ones(len(pool))]
        if self._kinds:
            rows += [np.full(len(pool), shares), shares + 1 + offered.kind]
            amounts += [cpu, -cpu]
        entries = np.repeat(pool, len(rows)), np.column_stack(rows).ravel(), np.column_stack(amounts).ravel()
        add_columns(self._lp, offered.price, offered.depth.astype(np.float64), entries)
        if self._kinds:
            share = np.append(-1.0, np.full(self._kinds, self._problem.max_share))
            none, infinity = np.zeros(1), np.full(1, np.inf)
            add_columns(self._lp, none, infinity, (np.zeros(len(share)), shares + np.arange(len(share)), share))

    def _new(self, size_of: IntArray, pattern: AnyArray) -> tuple[IntArray, AnyArray]:
        fresh = []
        for row, (size, tasks) in enumerate(zip(size_of.tolist(), pattern, strict=True)):
            key = (size, tasks.tobytes())
            if key not in self._known and tasks.any():
                self._known.add(key)
                fresh.append(row)
        return size_of[fresh], pattern[fresh]


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
    """Whether to search as well for fillings that no grid shows."""

    def run(self, problem: Problem) -> tuple[Solution, Centre]:
        """The last of `states`, even if unfinished."""
        *_, (solution, centre, _) = self.states(problem)
        return solution, centre

    def states(self, problem: Problem) -> Iterator[tuple[Solution, Centre, bool]]:
        """The LP after the quick rounds and after every few rounds with tables, and whether it is final.

        The rounds end when the LP is near the bound of its duals, nothing improves, or time or rounds are up.
        """
        solution = self._quick_rounds(problem)
        centre = Centre(0.0, solution.task_value, pool_prices(problem, solution))
        smoothing, in_parts = 0.0, False
        for number in range(self.rounds):
            if number % _STATE_EVERY == 0 and self.rounds >= 2 * _STATE_EVERY:
                yield solution, centre, False
            if self.time_is_up():
                break
            value = smoothing * centre.task_value + (1 - smoothing) * solution.task_value
            price = smoothing * centre.pool_price + (1 - smoothing) * pool_prices(problem, solution)
            if in_parts:
                size, pattern, worth = self.pricer.whole_parts(value, problem.cheapest(price))
            else:
                size, pattern, worth = self.pricer.fillings(value, problem.cheapest(price), self.work)
            bound_of = dual_bound if problem.shares is None else scaled_bound
            bound = bound_of(problem, problem.backlog.count, value, price, worth)
            if bound > centre.bound:
                centre = Centre(bound, value, price)
            tolerance = _TOLERANCE if problem.shares is None else _SHARED_TOLERANCE
            if solution.usd_per_hour - centre.bound > tolerance * solution.usd_per_hour:
                if _add_better(problem, self.master, solution, size, pattern):
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
        every_size, every_shape = np.arange(len(problem.sizes)), np.arange(len(backlog.need))
        for _ in range(self.rounds):
            if self.time_is_up():
                break
            pattern, _worth = fillings(problem, every_size, every_shape, solution.task_value, backlog.count)
            if not _add_better(problem, self.master, solution, every_size, pattern):
                break
            before, solution = solution, self.master.solve()
            if solution.usd_per_hour > before.usd_per_hour * (1 - _QUICK_GAIN):
                break
        return solution


def _add_better(problem: Problem, master: Master, solution: Solution, size: IntArray, pattern: IntArray) -> int:
    """Add the patterns (n, s) that are worth more than their `size` (n,) costs."""
    cost = np.maximum(solution.size_value, problem.cheapest(pool_prices(problem, solution)))
    better = pattern @ solution.task_value > cost[size] * _BETTER
    return master.add(size[better], pattern[better])


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


def scaled_bound(problem: Problem, count: AnyArray, value: FloatArray, price: FloatArray, worth: FloatArray) -> float:
    """The best bound for a multiple of `value`. worth: (k,) at least that of the best filling of each size."""
    offered = problem.offered
    at, least = worth[problem.size_of_pool], float(count @ value)
    pays = (at > 0) & (offered.depth > 0)
    turn = np.maximum(price[pays], 0) / at[pays]
    order = np.argsort(turn, kind="stable")
    slope = least - np.cumsum((offered.depth[pays] * at[pays])[order])
    last = int(np.searchsorted(-slope, 0.0))
    factor = float(turn[order][last]) if last < len(order) else 1.0
    return max(dual_bound(problem, count, value * f, price, worth * f) for f in (factor, 1.0))
