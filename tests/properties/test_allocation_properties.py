"""Does an allocation keep its promises on small random markets: whole, above its bound, near the optimum?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.market.allocation.allocate import allocate
from argosy.market.allocation.pricing import Pricer
from argosy.market.allocation.problem import Offered, Problem, TaskShapes
from argosy.market.allocation.relaxed import relaxed_worth
from tests.allocation_checks import all_patterns, assert_whole, cheapest_usd

needs = st.tuples(st.integers(0, 6), st.integers(0, 9), st.sampled_from((0, 0, 0, 1, 2))).filter(any)
sizes = st.tuples(st.integers(0, 12), st.integers(0, 16), st.sampled_from((0, 0, 0, 1, 4)))
pools = st.lists(st.tuples(sizes, st.integers(1, 500), st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=5)
backlogs = st.lists(st.tuples(needs, st.integers(0, 5)), min_size=1, max_size=3)
shares = st.one_of(st.none(), st.sampled_from((0.3, 0.6, 1.0)))


def problem_of(market: list[Any], backlog: list[Any], share: float | None = None) -> Problem:
    """Prices are in cents."""
    columns = list(zip(*market, strict=True))
    offered = Offered.of(columns[0], [cents / 100 for cents in columns[1]], columns[2], columns[3])
    return Problem(offered, TaskShapes.of(*zip(*backlog, strict=True)), share)


@given(pools, backlogs, shares, st.booleans())
@settings(max_examples=150, deadline=None)
def test_every_task_is_in_a_pattern_that_fits_or_is_left_out(
    market: list[Any], backlog: list[Any], share: float | None, solver: bool
) -> None:
    problem = problem_of(market, backlog, share)
    found = allocate(problem, solver=solver)
    assert_whole(problem, found)
    if share is not None and found.instances:
        cpu = np.bincount(
            problem.offered.kind[found.pool], weights=found.times * problem.offered.capacity[found.pool, 0]
        )
        assert cpu.max() <= share * cpu.sum() * (1 + 1e-9)


@given(pools, backlogs, st.booleans())
@settings(max_examples=100, deadline=None)
def test_no_plan_is_cheaper_than_the_bound(market: list[Any], backlog: list[Any], solver: bool) -> None:
    problem = problem_of(market, backlog)
    found = allocate(problem, solver=solver)
    placed = problem.backlog.count - found.left_out
    columns = list(zip(*market, strict=True))
    best = cheapest_usd(columns[0], [c / 100 for c in columns[1]], columns[2], [n for n, _ in backlog], placed.tolist())
    assert found.lower_bound_usd_per_hour <= best * (1 + 1e-9) + 1e-12
    assert best <= found.usd_per_hour * (1 + 1e-9) + 1e-9


@given(pools, backlogs)
@settings(max_examples=100, deadline=None)
def test_with_enough_of_every_pool_nothing_is_left_out_and_the_price_is_near_the_cheapest(
    market: list[Any], backlog: list[Any]
) -> None:
    market = [(size, cents, 20, kind) for size, cents, _, kind in market]
    problem = problem_of(market, backlog)
    found = allocate(problem)
    assert (found.left_out == np.where(problem.unplaceable, problem.backlog.count, 0)).all()
    columns = list(zip(*market, strict=True))
    placed = (problem.backlog.count - found.left_out).tolist()
    best = cheapest_usd(columns[0], [c / 100 for c in columns[1]], columns[2], [n for n, _ in backlog], placed)
    assert found.usd_per_hour <= best * 1.5 + 1e-9
    assert found.usd_per_hour <= allocate(problem, solver=False).usd_per_hour + 1e-9


@given(
    st.lists(sizes, min_size=1, max_size=4),
    st.lists(st.tuples(needs, st.floats(0, 10)), min_size=1, max_size=3),
    st.sampled_from((1, 60, 2_000, 1_000_000)),
)
@settings(max_examples=200, deadline=None)
def test_a_filling_is_never_valued_too_low_and_always_fits(market: list[Any], tasks: list[Any], work: int) -> None:
    capacity, need = np.array(market), np.array([n for n, _ in tasks])
    value, most = np.array([v for _, v in tasks]), np.full(len(tasks), 30)
    pricer = Pricer(capacity, need, most)
    pattern, worth = pricer.fillings(value, np.zeros(len(capacity)), work)
    bound = pricer.at_most(value, np.ones(len(capacity), dtype=bool), work)
    relaxed = relaxed_worth(capacity, need, value)
    assert (pattern @ need <= capacity).all()
    for number, size in enumerate(market):
        best = max(float(np.dot(p, value)) for p in all_patterns(size, [n for n, _ in tasks], [16] * len(tasks)))
        assert worth[number] <= best * (1 + 1e-6) + 1e-9
        assert bound[number] >= best * (1 - 1e-9)
        assert relaxed[number] >= best * (1 - 1e-9) - 1e-12
        if work == 1_000_000 and not size[2]:
            assert worth[number] == pytest.approx(best, rel=1e-5, abs=1e-8)
