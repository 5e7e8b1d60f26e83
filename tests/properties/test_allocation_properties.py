"""Does an allocation keep its promises on small random markets: whole, above its bound, near the optimum?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.market.allocation.allocate import allocate
from argosy.market.allocation.basket import with_places
from argosy.market.allocation.effort import THOROUGH
from argosy.market.allocation.filling_bounds import counted_worth, relaxed_worth
from argosy.market.allocation.pricing import Pricer
from argosy.market.allocation.problem import PoolTable, Problem, TaskShapes
from tests.allocation_checks import all_patterns, assert_whole, cheapest_usd

BRIEF = replace(THOROUGH, again=1)
needs = st.tuples(st.integers(0, 6), st.integers(0, 9), st.sampled_from((0, 0, 0, 1, 2))).filter(any)
sizes = st.tuples(st.integers(0, 12), st.integers(0, 16), st.sampled_from((0, 0, 0, 1, 4)))
pools = st.lists(st.tuples(sizes, st.integers(1, 500), st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=5)
backlogs = st.lists(st.tuples(needs, st.integers(0, 5)), min_size=1, max_size=3)
mosts = st.lists(st.sampled_from((1, 2, 3, 5, 1_023)), min_size=5, max_size=5)
shares = st.one_of(st.none(), st.sampled_from((0.3, 0.6, 1.0)))


def problem_of(
    market: list[Any], backlog: list[Any], share: float | None = None, most: list[int] | None = None
) -> Problem:
    """Prices are in cents. most: tasks on an instance of each pool."""
    columns = list(zip(*market, strict=True))
    offered = PoolTable.of(
        columns[0], [cents / 100 for cents in columns[1]], columns[2], columns[3], most and most[: len(market)]
    )
    return Problem(offered, TaskShapes.of(*zip(*backlog, strict=True)), share)


@given(pools, backlogs, shares, st.booleans(), st.none() | mosts)
@settings(max_examples=60, deadline=None)
def test_every_task_is_in_a_pattern_that_fits_or_is_left_out(
    market: list[Any], backlog: list[Any], share: float | None, solver: bool, most: list[int] | None
) -> None:
    problem = problem_of(market, backlog, share, most)
    found = allocate(problem, BRIEF, solver=solver)
    assert_whole(problem, found)
    if share is not None and found.instances:
        cpu = np.bincount(
            problem.offered.kind[found.pool], weights=found.times * problem.offered.capacity[found.pool, 0]
        )
        assert cpu.max() <= share * cpu.sum() * (1 + 1e-9)


@given(pools, backlogs, st.booleans(), st.none() | mosts)
@settings(max_examples=60, deadline=None)
def test_no_plan_is_cheaper_than_the_bound(
    market: list[Any], backlog: list[Any], solver: bool, most: list[int] | None
) -> None:
    problem = problem_of(market, backlog, most=most)
    found = allocate(problem, BRIEF, solver=solver)
    placed = problem.backlog.count - found.left_out
    columns = list(zip(*market, strict=True))
    prices = [cents / 100 for cents in columns[1]]
    best = cheapest_usd(columns[0], prices, columns[2], [n for n, _ in backlog], placed.tolist(), most)
    assert found.lower_bound_usd_per_hour <= best * (1 + 1e-9) + 1e-12
    assert best <= found.usd_per_hour * (1 + 1e-9) + 1e-9


@given(pools, backlogs, st.none() | mosts)
@settings(max_examples=60, deadline=None)
def test_with_enough_of_every_pool_nothing_is_left_out_and_the_price_is_near_the_cheapest(
    market: list[Any], backlog: list[Any], most: list[int] | None
) -> None:
    market = [(size, cents, 20, kind) for size, cents, _, kind in market]
    problem = problem_of(market, backlog, most=most)
    found = allocate(problem, BRIEF)
    assert (found.left_out == np.where(problem.unplaceable, problem.backlog.count, 0)).all()
    columns = list(zip(*market, strict=True))
    placed = (problem.backlog.count - found.left_out).tolist()
    prices = [cents / 100 for cents in columns[1]]
    best = cheapest_usd(columns[0], prices, columns[2], [n for n, _ in backlog], placed, most)
    assert found.usd_per_hour <= best * 1.5 + 1e-9
    assert found.usd_per_hour <= allocate(problem, solver=False).usd_per_hour + 1e-9


@given(
    st.lists(sizes, min_size=1, max_size=4),
    st.lists(st.tuples(needs, st.floats(0, 10)), min_size=1, max_size=3),
    st.sampled_from((1, 60, 2_000, 1_000_000)),
    st.none() | mosts,
)
@settings(max_examples=80, deadline=None)
def test_a_filling_is_never_valued_too_low_and_always_fits(
    market: list[Any], tasks: list[Any], work: int, mosts_of: list[int] | None
) -> None:
    capacity, need = np.array(market), np.array([n for n, _ in tasks])
    value, most = np.array([v for _, v in tasks]), np.full(len(tasks), 30)
    most_tasks = None if mosts_of is None else np.array(mosts_of[: len(market)])
    pricer = Pricer(capacity, need, most, most_tasks)
    _, pattern, worth = pricer.fillings(value, np.zeros(len(capacity)), work)
    bound = pricer.at_most(value, np.ones(len(capacity), dtype=bool), work)
    relaxed = relaxed_worth(capacity, need, value, most_tasks)
    assert (pattern @ need <= capacity).all()
    assert most_tasks is None or (pattern.sum(axis=1) <= most_tasks).all()
    for number, size in enumerate(market):
        cap = mosts_of[number] if mosts_of else 1 << 40
        every = all_patterns(size, [n for n, _ in tasks], [16] * len(tasks), cap)
        best = max(float(np.dot(p, value)) for p in every)
        assert worth[number] <= best * (1 + 1e-6) + 1e-9
        assert bound[number] >= best * (1 - 1e-9)
        assert relaxed[number] >= best * (1 - 1e-9) - 1e-12
        if work == 1_000_000 and not size[2] and most_tasks is None:
            assert worth[number] == pytest.approx(best, rel=1e-5, abs=1e-8)


@given(
    st.lists(sizes, min_size=1, max_size=4),
    st.lists(st.tuples(needs, st.floats(0, 10), st.integers(0, 4)), min_size=1, max_size=3),
    st.none() | mosts,
)
@settings(max_examples=60, deadline=None)
def test_a_filling_with_that_many_tasks_of_a_shape_is_never_valued_too_low(
    market: list[Any], tasks: list[Any], mosts_of: list[int] | None
) -> None:
    need, value = np.array([n for n, _, _ in tasks]), np.array([v for _, v, _ in tasks])
    count = np.array([c for _, _, c in tasks])
    capacity, most_tasks = np.array(market), None if mosts_of is None else np.array(mosts_of[: len(market)])
    columns = (capacity, need) if most_tasks is None else with_places(capacity, need, most_tasks)
    worth = counted_worth(*columns, value, count)
    _, pattern, found = Pricer(capacity, need, count, most_tasks).whole_parts(value, np.full(len(market), -1.0))
    assert (pattern @ need <= capacity).all()
    assert most_tasks is None or (pattern.sum(axis=1) <= most_tasks).all()
    for number, size in enumerate(market):
        cap = mosts_of[number] if mosts_of else 1 << 40
        fillings = all_patterns(size, [n for n, _, _ in tasks], count.tolist(), cap)
        best = max(float(np.array(held) @ value) for held in fillings)
        assert best <= worth[number] * (1 + 1e-9) + 1e-12
        assert found[number] <= best * (1 + 1e-9) + 1e-12
