"""Do plans for thousands of distinct sizes keep the promises of small ones: whole, above a valid bound, anytime?

The methods are called on small backlogs, for which an exact program knows the optimum.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from argosy.market.allocation.allocate import allocate
from argosy.market.allocation.effort import THOROUGH
from argosy.market.allocation.fluid import FluidPlanner
from argosy.market.allocation.groups import grouped
from argosy.market.allocation.many_sizes import Dives, by_groups
from argosy.market.allocation.problem import BestPlan, Plan, PoolTable, Problem, TaskShapes
from argosy.market.allocation.whole_tasks import raised
from tests.allocation_checks import all_patterns, assert_whole, cheapest_usd
from tests.generated_markets import backlog, distinct_sizes, market

needs = st.tuples(st.integers(0, 6), st.integers(0, 9), st.sampled_from((0, 0, 0, 1, 2))).filter(any)
sizes = st.tuples(st.integers(0, 12), st.integers(0, 16), st.sampled_from((0, 0, 0, 1, 4)))
pools = st.lists(st.tuples(sizes, st.integers(1, 500), st.integers(0, 6)), min_size=1, max_size=5)
backlogs = st.lists(st.tuples(needs, st.integers(0, 4)), min_size=1, max_size=4)


def problem_of(market: list[Any], backlog: list[Any]) -> Problem:
    """Prices are in cents; tasks that fit nowhere are left out."""
    columns = list(zip(*market, strict=True))
    offered = PoolTable.of(columns[0], [cents / 100 for cents in columns[1]], columns[2], range(len(market)))
    asked = Problem(offered, TaskShapes.of(*zip(*backlog, strict=True)))
    return Problem(offered, TaskShapes(asked.backlog.need, np.where(asked.unplaceable, 0, asked.backlog.count)))


def dived(problem: Problem, start: Plan, again: int) -> tuple[Plan, float]:
    """The best plan that dives find, `start` included, and its bound."""
    best, dives = BestPlan(start), Dives(problem, replace(THOROUGH, again=again))
    dives.begin(best)
    dives.improve(best)
    return best.plan, best.bound


def faults(plan: Plan) -> list[str]:
    """The inconsistencies of a plan."""
    problem = plan.problem
    placed, bought = np.zeros_like(plan.rest), np.zeros_like(plan.depth)
    found = []
    for lot in plan.lots:
        np.add.at(placed, lot.shape, lot.count * lot.times)
        bought[lot.pool] += lot.times
        if not (lot.count @ problem.backlog.need[lot.shape] <= problem.offered.capacity[lot.pool]).all():
            found.append(f"{lot} does not fit")
        if lot.times <= 0 or not len(lot.count) or lot.count.min() <= 0:
            found.append(f"{lot} is empty")
    if not np.array_equal(placed + plan.rest, problem.backlog.count) or plan.rest.min(initial=0) < 0:
        found.append(f"{placed} placed and {plan.rest} left of {problem.backlog.count}")
    if not np.array_equal(bought + plan.depth, problem.offered.depth) or plan.depth.min(initial=0) < 0:
        found.append("pools are sold beyond their depth")
    return found


@example([((0, 1, 0), 1, 1), ((0, 2, 0), 1, 0)], [((0, 1, 0), 1)])  # a size that is sold out
@given(pools, backlogs)
@settings(max_examples=24, deadline=None)
def test_plans_are_whole_and_no_plan_is_cheaper_than_the_bound(market: list[Any], backlog: list[Any]) -> None:
    problem = problem_of(market, backlog)
    if not problem.backlog.count.any():
        return
    start = by_groups(Plan.empty(problem), problem.backlog.need.sum(axis=1).astype(float), 0.75)
    assert faults(start) == []
    plan, bound = dived(problem, start, 3)
    assert faults(plan) == []
    assert plan.cost() <= start.cost()
    columns = list(zip(*market, strict=True))
    placed = (problem.backlog.count - plan.rest).tolist()
    best = cheapest_usd(columns[0], [cents / 100 for cents in columns[1]], columns[2], [n for n, _ in backlog], placed)
    assert bound <= best * (1 + 1e-9) + 1e-12
    assert best <= plan.usd_per_hour() * (1 + 1e-9) + 1e-9


@given(pools, backlogs)
@settings(max_examples=24, deadline=None)
def test_with_enough_of_every_pool_every_task_has_a_place(market: list[Any], backlog: list[Any]) -> None:
    problem = problem_of([(size, cents, 40) for size, cents, _ in market], backlog)
    if problem.backlog.count.any():
        plan, _ = dived(problem, Plan.empty(problem), 0)
        assert not plan.rest.any()
        assert not by_groups(Plan.empty(problem), np.ones(len(backlog)), 0.9).rest.any()


@given(st.lists(st.tuples(needs, st.integers(1, 5)), min_size=1, max_size=30), st.integers(1, 12))
@settings(max_examples=24, deadline=None)
def test_groups_hold_tasks_with_equally_many_gpus(tasks: list[Any], most: int) -> None:
    need, number = np.array([n for n, _ in tasks]), np.array([n for _, n in tasks])
    group = grouped(need, number.astype(float), most)
    assert all(len(set(need[group == one, 2].tolist())) == 1 for one in set(group.tolist()))
    assert len(set(group.tolist())) <= max(most, len(set(need[:, 2].tolist())))


whole_sizes = st.tuples(st.integers(2, 12), st.integers(2, 16), st.sampled_from((0, 0, 0, 1)))
whole_pools = st.lists(st.tuples(whole_sizes, st.integers(1, 500), st.integers(1, 6)), min_size=1, max_size=4)
large_needs = st.tuples(st.integers(1, 8), st.integers(0, 9), st.sampled_from((0, 0, 0, 1)))
large_backlogs = st.lists(st.tuples(large_needs, st.integers(1, 3)), min_size=1, max_size=4)


@given(whole_pools, large_backlogs, st.integers(1, 8), st.booleans())
@settings(max_examples=50, deadline=None)
def test_no_plan_is_cheaper_than_the_fluid_bound(
    market: list[Any], backlog: list[Any], groups: int, whole: bool
) -> None:
    """However coarsely tasks are grouped, and with the sharper bound for large whole tasks."""
    problem = problem_of([(size, cents, 12) for size, cents, _ in market], backlog)
    if not problem.backlog.count.any():
        return
    bound = FluidPlanner(problem, groups).bound(problem.backlog.count, whole=whole)
    sizes, prices, _ = zip(*market, strict=True)
    usd = [cents / 100 for cents in prices]
    counts = problem.backlog.count.tolist()
    best = cheapest_usd(sizes, usd, [12] * len(sizes), [n for n, _ in backlog], counts)
    assert bound <= best * (1 + 1e-9) + 1e-12


@example([((10, 10, 0), 1, 1)], [((6, 6, 0), 1), ((2, 2, 0), 2)])  # two equal tasks next to a large one
@example([((10, 10, 0), 1, 1), ((20, 20, 0), 1, 1)], [((6, 6, 0), 3)])  # a larger size holds three large ones
@given(whole_pools, large_backlogs)
@settings(max_examples=50, deadline=None)
def test_no_filling_is_worth_more_than_its_size_after_values_are_raised(market: list[Any], backlog: list[Any]) -> None:
    problem = problem_of(market, backlog)
    fits = problem.room.sum(axis=1) > 0
    sizes = np.flatnonzero(fits)
    if not len(sizes):
        return
    price = np.ones((len(problem.sizes), 3)) * (1.0, 0.5, 2.0) * (1 + 0.01 * np.arange(len(problem.sizes)))[:, None]
    pays = np.where(problem.room > 0, price @ problem.backlog.need.T, np.inf).min(axis=0)
    value = np.where(np.isfinite(pays) & (problem.backlog.count > 0), pays, 0.0)
    found = raised(problem, value, sizes, price)
    assert (found >= value).all()
    needs, counts = [n for n, _ in backlog], problem.backlog.count.tolist()
    for size in sizes.tolist():
        best = max(float(found @ pattern) for pattern in all_patterns(problem.sizes[size].tolist(), needs, counts))
        assert best <= float(price[size] @ problem.sizes[size]) * (1 + 1e-9)


def test_a_large_task_is_worth_the_whole_instance_that_nothing_else_fits_on() -> None:
    """No two tasks share an instance: cut into pieces, three of them would fit on two."""
    offered = PoolTable.of([(30, 30, 0)], [1.0], [100], [0])
    problem = Problem(offered, TaskShapes.of([(20, 20, 0), (19, 18, 0)], [6, 6]))
    planner = FluidPlanner(problem, 4)
    assert planner.bound(problem.backlog.count) == pytest.approx(8.0, rel=0.05)
    assert planner.bound(problem.backlog.count, whole=True) == pytest.approx(12.0, rel=1e-3)


def ticking() -> Any:
    """A clock that advances a second at every reading."""
    ticks = count()
    return lambda: float(next(ticks))


@pytest.mark.parametrize(("shapes", "seed"), [(8, 0), (8, 1), (160, 0)])
def test_more_time_never_costs_more_and_never_lowers_the_bound(shapes: int, seed: int) -> None:
    wanted = backlog(shapes, 2_000, seed) if shapes < 100 else distinct_sizes(shapes, seed)
    problem = Problem(market(30, seed), wanted)
    cost, bound = (problem.backlog.count.sum() + 1, 0.0), 0.0
    for seconds in (0, 3, 10, 30, 90):
        found = allocate(problem, replace(THOROUGH, again=3).within(seconds, ticking()))
        assert_whole(problem, found)
        now = (int(found.left_out.sum()), found.usd_per_hour)
        assert now <= cost
        assert found.left_out.any() or found.lower_bound_usd_per_hour >= bound
        cost, bound = now, found.lower_bound_usd_per_hour
    assert found.method in (("patterns", "dives") if shapes < 100 else ("dives",))


def test_thousands_of_distinct_sizes_are_planned_near_a_valid_bound() -> None:
    """In small; `tests/benchmarks/test_allocation.py` has it in full size."""
    problem = Problem(market(40, 1), distinct_sizes(250, 1))
    found = allocate(problem, replace(THOROUGH, again=2))
    assert_whole(problem, found)
    assert not found.left_out.any()
    assert found.gap < 0.1
    again = allocate(problem, replace(THOROUGH, again=2))
    assert (again.usd_per_hour, again.pool.tolist()) == (found.usd_per_hour, found.pool.tolist())


def test_the_fluid_bound_knows_that_cpu_and_memory_of_a_task_stay_together() -> None:
    """Two sizes that fit no type well alone: separately, the tasks would fit for half the price."""
    offered = PoolTable.of([(1024, 64, 0), (64, 1024, 0)], [0.1, 0.1], [100, 100], [0, 1])
    problem = Problem(offered, TaskShapes.of([(64, 64, 0)], [16]))
    assert FluidPlanner(problem, 4).bound(problem.backlog.count) == pytest.approx(1.6, rel=1e-3)
