"""How does the allocator behave at its edges: bad numbers, no time, no solver, nothing left to buy, huge amounts?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from argosy.market.allocation.allocate import Allocation, allocate
from argosy.market.allocation.effort import QUICK, THOROUGH
from argosy.market.allocation.problem import PoolTable, Problem, TaskShapes
from tests.allocation_checks import assert_whole
from tests.generated_markets import backlog, changed, market, proportional_market, small_tasks

GIB = 1024


BRIEF = replace(THOROUGH, again=1)


def small(**changes: Any) -> Problem:
    """Two sizes; tasks of much cpu and tasks of much memory, which fit well together only on the larger."""
    columns: dict[str, Any] = {
        "capacity": [(2048, 4 * GIB, 0), (8192, 32 * GIB, 0)],
        "price": [0.04, 0.16],
        "depth": [100, 100],
        "kind": [0, 1],
        "need": [(1024, GIB, 0), (512, 6 * GIB, 0)],
        "count": [40, 20],
    } | changes
    offered = PoolTable.of(
        columns["capacity"], columns["price"], columns["depth"], columns["kind"], columns.get("most_tasks")
    )
    return Problem(offered, TaskShapes.of(columns["need"], columns["count"]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"price": [0.0, 0.1]}, "price must be"),
        ({"price": [float("nan"), 0.1]}, "price must be"),
        ({"price": [float("inf"), 0.1]}, "price must be"),
        ({"depth": [-1, 1]}, "depth must be"),
        ({"most_tasks": [-1, 1]}, "most of tasks must be"),
        ({"capacity": [(-1, 1, 1), (1, 1, 1)]}, "capacity must be"),
        ({"capacity": [(2**41, 1, 1), (1, 1, 1)]}, "capacity must be"),
        ({"need": [(1, 1, 1), (0, 0, 0)]}, "ask for something"),
        ({"need": [(1, 1, 1), (0, 0, -1)]}, "need must be"),
        ({"count": [1, 2**41]}, "count must be"),
    ],
)
def test_impossible_numbers_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        small(**changes)


def test_a_most_of_tasks_that_no_instance_can_reach_changes_nothing() -> None:
    assert small(most_tasks=[4, 16]).most_tasks is None  # 2,048 and 8,192 cpu units, and no task takes less than 512
    assert small(most_tasks=[3, 16]).most_tasks is not None


def test_patterns_that_are_kept_hold_no_more_than_the_most_of_tasks_when_that_comes_later() -> None:
    kept = allocate(small(), BRIEF).kept
    capped = small(most_tasks=[1, 3])
    found = allocate(capped, BRIEF, kept=kept)
    assert_whole(capped, found)
    assert not found.left_out.any()
    assert found.gap < 0.03


def test_thousands_of_sizes_on_instances_with_a_most_of_tasks_are_planned_within_it_and_above_the_bound() -> None:
    rng = np.random.default_rng(0)
    need = [(int(cpu), int(memory), 0) for cpu, memory in rng.integers((64, 128), (512, GIB), size=(400, 2))]
    many = small(need=need, count=[1] * 400, most_tasks=[2, 7])
    found = allocate(many, BRIEF)
    assert_whole(many, found)
    assert not found.left_out.any()
    assert found.gap < 0.1


def test_nothing_wanted_and_nothing_offered_cost_nothing() -> None:
    for problem in (small(count=[0, 0]), small(depth=[0, 0])):
        found = allocate(problem, BRIEF)
        assert (found.usd_per_hour, found.lower_bound_usd_per_hour, found.gap, found.instances) == (0, 0, 0, 0)
        assert (found.left_out == problem.backlog.count).all()


def test_mixed_patterns_beat_what_greed_finds() -> None:
    problem = Problem(market(200, 1), backlog(8, 3_000, 1))
    greedy, found = allocate(problem, solver=False), allocate(problem, BRIEF)
    assert (greedy.method, found.method) == ("greedy", "patterns")
    assert found.usd_per_hour < greedy.usd_per_hour
    assert found.gap < 0.02 < greedy.gap


@pytest.mark.slow
def test_what_the_program_wants_in_fractions_of_large_instances_is_not_lost_in_rounding() -> None:
    problem = Problem(proportional_market(100), small_tasks(1_000, 0))
    found, greedy = allocate(problem, QUICK), allocate(problem, solver=False)
    assert_whole(problem, found)
    assert not found.left_out.any()
    assert found.usd_per_hour < greedy.usd_per_hour * 0.97


def test_without_the_solver_the_answer_is_the_greedy_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    assert allocate(small(), BRIEF).method == "greedy"


def ticking(step_s: float) -> Callable[[], float]:
    """A clock that advances `step_s` seconds at every reading."""
    ticks: Iterator[int] = count()
    return lambda: next(ticks) * step_s


@pytest.mark.parametrize("step_s", [2.0, 0.3, 0.05, 0.01])
def test_when_time_is_up_there_is_a_whole_answer_with_a_bound(step_s: float) -> None:
    problem = Problem(market(200, 2), backlog(8, 3_000, 2))
    found = allocate(problem, THOROUGH.within(1, ticking(step_s)))
    assert_whole(problem, found)
    assert not found.left_out.any()
    assert 0 < found.lower_bound_usd_per_hour <= found.usd_per_hour
    assert found.method == "greedy" or step_s < 2


def same(one: Allocation, other: Allocation) -> bool:
    return one.usd_per_hour == other.usd_per_hour and one.pool.tolist() == other.pool.tolist()


@pytest.mark.slow
def test_the_same_question_gets_the_same_answer() -> None:
    problem = Problem(market(150, 3), backlog(6, 2_000, 3))
    assert same(allocate(problem, BRIEF), allocate(problem, BRIEF))


@pytest.mark.slow
def test_patterns_kept_from_one_allocation_serve_the_next_whatever_has_changed() -> None:
    problem = Problem(market(150, 4), backlog(6, 2_000, 4))
    kept = allocate(problem, BRIEF).kept
    assert kept
    other = Problem(market(120, 5), backlog(4, 500, 6))  # other pools, other shapes
    for following in (changed(problem, 4), other):
        warm, cold = allocate(following, BRIEF, kept=kept), allocate(following, BRIEF)
        assert_whole(following, warm)
        assert warm.usd_per_hour <= cold.usd_per_hour * 1.01


def test_when_all_is_sold_out_the_bound_is_for_what_has_a_place() -> None:
    problem = small(depth=[5, 3])
    found = allocate(problem, BRIEF)
    assert_whole(problem, found)
    assert found.left_out.any()
    assert 0 < found.lower_bound_usd_per_hour <= found.usd_per_hour == pytest.approx(5 * 0.04 + 3 * 0.16)


@pytest.mark.parametrize("gpus", [8, 60_000])
def test_gpus_however_many_are_priced(gpus: int) -> None:
    """A layer of the knapsack's table for each GPU would be too much for a great many."""
    problem = small(capacity=[(2048, 4 * GIB, 0), (64 * GIB, 480 * GIB, gpus)], need=[(1024, GIB, 0), (512, GIB, 1)])
    found = allocate(problem, BRIEF)
    assert_whole(problem, found)
    assert not found.left_out.any()


def test_the_largest_amounts_do_not_overflow() -> None:
    most = 1 << 40
    problem = small(
        capacity=[(most, most, 65_536), (most, 1, 0)],
        depth=[most, most],
        need=[(1, 1, 0), (most, most, 1)],
        count=[most, most - 1],  # one instance of the first pool for the small ones
    )
    found = allocate(problem, BRIEF)
    assert all((lot.count > 0).all() for lot in found.lots)
    assert (found.left_out == 0).all()
    assert np.isfinite(found.usd_per_hour)
    assert 0 < found.lower_bound_usd_per_hour <= found.usd_per_hour
