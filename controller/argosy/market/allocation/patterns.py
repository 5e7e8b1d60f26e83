"""Plans from the LP over patterns: generate, round, bound; again on a finer grid if needed.

Rounding down leaves one fraction per row of the LP at most. Greedy purchases complete the plan if little is missing. If
instances are large, the fractions are most of the plan: then dives complete it too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from argosy.market.allocation.basket import Basket, finish
from argosy.market.allocation.bound import best_bound
from argosy.market.allocation.effort import Effort
from argosy.market.allocation.generate import Centre, ColumnGeneration, Master, Solution, cover, pool_prices
from argosy.market.allocation.many_sizes import Dives
from argosy.market.allocation.problem import BestPlan, Plan, Problem
from argosy.market.allocation.shared_pricing import pricer_of
from argosy.model.pools import Patterns
from argosy.placement.arrays import FloatArray, IntArray

_NEVER_DEARER = 10.0  # a task is left out only if its place costs this many times the most expensive instance
_SLIGHTLY_LESS = 0.998
_NEAR = 0.002  # patterns that would be used if a size were cheaper by this share are kept too
_MUCH = 0.02  # share of the LP's cost that rounding loses: then dives complete plans before its last state
_WHOLE = 1e-6  # a fraction this close to the next whole number is that number
_IN_ROUNDS = 0.8  # of the time if tasks share GPUs; the rest is for the bound
_SLOWER = 2  # times the rounds where tasks share GPUs: their pricing ends a round early
_FOR_THE_REST = 300  # patterns
_LEAST = 0.05  # the share of its price that a pool keeps under the shares, so that none is free


def by_patterns(best: BestPlan, value: FloatArray, kept: Patterns, effort: Effort, dives: Dives | None) -> Patterns:
    """Improve on `best`; returns the patterns to keep.

    value: (s,) > 0 for shapes that fit somewhere: the preference among tasks that the LP values at 0.
    """
    problem = best.plan.problem
    highest = float(problem.offered.price.max(initial=0.0))
    master = Master(problem, np.full(len(value), _NEVER_DEARER * highest))
    master.add(*_single_patterns(problem))
    master.add(*recall(problem, kept))
    if problem.shares is not None:
        master.add(*_patterns_of(best.plan))
    pricer = pricer_of(problem)
    keeping = kept
    for work in effort.work:
        last = len(effort.work) > 1 and work == effort.work[-1]
        rounds = effort.rounds * (1 if problem.shares is None else _SLOWER)
        in_rounds = 1.0 if problem.shares is None else _IN_ROUNDS
        generation = ColumnGeneration(master, pricer, work, rounds, partial(effort.time.passed, in_rounds), last)
        for solution, centre, complete in generation.states(problem):
            # An unfinished step is ignored, so that more time adds steps and never changes earlier ones.
            if effort.time.passed():
                return keeping
            keeping = keep(problem, master, solution)
            whole = rounded_down(problem, master, solution)
            parts = whole.plan()
            price = np.maximum(pool_prices(problem, solution), problem.offered.price * _LEAST)
            finish(whole, np.maximum(solution.task_value, value * 1e-6), price)
            best.offer(whole.plan(), "patterns")
            lost = effort.good_enough if complete else _MUCH
            lost_much = whole.usd_per_hour() > solution.usd_per_hour * (1 + lost)
            if dives and lost_much:
                dives.complete(best, parts, "patterns")
            looks = effort if complete else replace(effort, looks=0)
            best.raise_bound(best_bound(problem, centre, best.plan, generation, looks))
            if complete and problem.shares is not None and lost_much and not effort.time.passed():
                whole = _completed(problem, master, solution, effort)
                finish(whole, np.maximum(solution.task_value, value * 1e-6), price)
                best.offer(whole.plan(), "patterns")
        if best.plan.rest.any() and not best.is_near(effort.good_enough):
            centre = _centre_of_placed(problem, best.plan, generation)
            best.raise_bound(best_bound(problem, centre, best.plan, generation, effort))
        if best.is_near(effort.good_enough):
            break
    return keeping


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


def _completed(problem: Problem, master: Master, solution: Solution, effort: Effort) -> Basket:
    """The whole instances of `solution`, and, for the rest, instances that branch and bound chooses from the best
    patterns."""
    basket = rounded_down(problem, master, solution)
    price = problem.cheapest(pool_prices(problem, solution))[master.size_of]
    worth = master.pattern @ solution.task_value / np.maximum(price, 1e-12)
    best = np.argsort(-worth, kind="stable")[:_FOR_THE_REST]
    pattern = np.minimum(master.pattern[best], basket.rest)
    for row, times in enumerate(cover(basket.rest, pattern, price[best], effort.time.left())):
        pools = np.flatnonzero(problem.size_of_pool == master.size_of[best[row]])
        pools = pools[np.argsort(problem.offered.price[pools], kind="stable")]
        for _ in range(times):
            held = np.minimum(pattern[row], basket.rest)
            any(basket.buy(pool, held, 1) for pool in pools.tolist())
    return basket


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


def _centre_of_placed(problem: Problem, plan: Plan, generation: ColumnGeneration) -> Centre:
    """Duals for the tasks that have a place.

    If everything is sold out, the LP's own duals are the worth of a place to the tasks left out, which is far more than
    its cost. So the LP is solved for slightly fewer tasks than were placed.
    """
    fewer = np.floor((problem.backlog.count - plan.rest) * _SLIGHTLY_LESS).astype(np.int64)
    generation.master.demand(fewer)
    _, centre = generation.run(replace(problem, backlog=replace(problem.backlog, count=fewer)))
    generation.master.demand(problem.backlog.count)
    return centre


def _single_patterns(problem: Problem) -> tuple[IntArray, IntArray]:
    """Patterns with as many tasks of one shape as fit on an instance, for every size and shape."""
    size, shape = np.nonzero(problem.room)
    pattern = np.zeros((len(size), len(problem.backlog.need)), dtype=np.int64)
    pattern[np.arange(len(size)), shape] = problem.room[size, shape]
    return size.astype(np.int64), pattern


def _patterns_of(plan: Plan) -> tuple[IntArray, IntArray]:
    """(q,) sizes and (q, s) tasks of a plan's instances."""
    pattern = np.zeros((len(plan.lots), len(plan.rest)), dtype=np.int64)
    for row, lot in enumerate(plan.lots):
        pattern[row, lot.shape] = lot.count
    return plan.problem.size_of_pool[[lot.pool for lot in plan.lots]], pattern


def keep(problem: Problem, master: Master, solution: Solution) -> Patterns:
    """The patterns in use and nearly in use."""
    cost = np.maximum(solution.size_value, problem.cheapest(pool_prices(problem, solution)))[master.size_of]
    used = np.zeros(len(master.size_of))
    used[: len(solution.used)] = solution.used  # patterns may have been added since
    near = (used > 0) | (master.pattern @ solution.task_value >= cost * (1 - _NEAR))
    needs = _names_of_shapes(problem)
    patterns = []
    for number in np.flatnonzero(near).tolist():
        held = np.flatnonzero(master.pattern[number]).tolist()
        tasks = tuple((needs[shape], int(master.pattern[number, shape])) for shape in held)
        patterns.append((_names(problem)[int(master.size_of[number])], tasks))
    return tuple(patterns)


def _names(problem: Problem) -> list[tuple[int, ...]]:
    """The key of each size's patterns: its capacity, the most tasks on it where that can bind, and the memory of a GPU
    where tasks share some."""
    columns = problem.sizes if problem.most_tasks is None else np.column_stack([problem.sizes, problem.most_tasks])
    if problem.shares is not None:
        apart = np.full((len(columns), 5 - columns.shape[1]), -1)  # so that neither is taken for the other
        columns = np.column_stack([columns, apart, problem.gpu_mib])
    return [tuple(size) for size in columns.tolist()]


def _names_of_shapes(problem: Problem) -> list[tuple[int, ...]]:
    columns = problem.backlog.need
    if problem.shares is not None:
        columns = np.column_stack([columns, problem.shares])
    return [tuple(shape) for shape in columns.tolist()]


def recall(problem: Problem, kept: Patterns) -> tuple[IntArray, IntArray]:
    """(q,) sizes and (q, s) tasks of the kept patterns whose size this problem has, less shapes it does not have."""
    sizes = {name: number for number, name in enumerate(_names(problem))}
    shapes = {name: number for number, name in enumerate(_names_of_shapes(problem))}
    known = [(sizes[size], tasks) for size, tasks in kept if size in sizes]
    pattern = np.zeros((len(known), len(problem.backlog.need)), dtype=np.int64)
    for row, (_, tasks) in enumerate(known):
        for need, count in tasks:
            if need in shapes:
                pattern[row, shapes[need]] = count
    pattern = np.minimum(pattern, problem.backlog.count)
    return np.array([size for size, _ in known], dtype=np.int64), pattern
