"""How near to the cheapest are large purchases, and how long do they take to plan?

Floors: 1,500 pools, 20 shapes, 100,000 tasks within +2 % of a valid bound in 3 s cold and 1 s warm; 20,000 pools,
100 shapes, 1,000,000 tasks within +2 % in 10 s; 5,000 and 20,000 tasks of as many sizes within +2 % in 10 and 30 s, and
never more expensive after more time; 5,000 small tasks of 30 sizes on 400 types at one price per vCPU within +1 % in 2
s; 18 kinds of tasks with whole GPUs, shares of GPUs and none on the catalogue within +1 % in 2 s. `make bench` prints
the figures.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from argosy.market.allocation.allocate import Allocation, allocate
from argosy.market.allocation.effort import QUICK, THOROUGH
from argosy.market.allocation.pricing import Pricer
from argosy.market.allocation.problem import Problem
from tests.allocation_checks import assert_whole, best_worth
from tests.generated_markets import (
    backlog,
    catalogue_market,
    changed,
    distinct_sizes,
    market,
    proportional_market,
    shared_backlog,
    small_tasks,
)


def measured(
    name: str, problem: Problem, capsys: pytest.CaptureFixture[str], within_s: float, warm: Allocation | None = None
) -> tuple[Allocation, float]:
    """At most `within_s`; 0 = the greedy answer alone."""
    started = time.perf_counter()
    effort = THOROUGH.within(within_s, time.perf_counter)
    found = allocate(problem, effort, kept=warm.kept if warm else (), solver=within_s > 0)
    seconds = time.perf_counter() - started
    with capsys.disabled():
        print(f"\n{name}: {found.usd_per_hour:.2f} USD/h, +{100 * found.gap:.3f} % over the bound, {seconds:.2f} s")
    assert_whole(problem, found)
    assert not found.left_out.any()
    return found, seconds


@pytest.mark.benchmark
@pytest.mark.parametrize("seed", range(3))
def test_1_500_pools_and_100_000_tasks(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem(market(1_500, seed), backlog(20, 100_000, seed))
    greedy, greedy_s = measured(f"greedy, seed {seed}", problem, capsys, 0)
    cold, cold_s = measured(f"cold, seed {seed}", problem, capsys, 3)
    warm, warm_s = measured(f"warm, seed {seed}", changed(problem, seed), capsys, 1, cold)
    assert cold.gap < 0.02
    assert cold_s < 3
    assert warm.gap < 0.02
    assert warm_s < 1.0
    assert cold.usd_per_hour <= greedy.usd_per_hour
    assert greedy_s < 0.15  # the goal is 0.05 s


@pytest.mark.benchmark
def test_20_000_pools_and_1_000_000_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem(market(20_000, 0), backlog(100, 1_000_000, 0))
    cold, cold_s = measured("20,000 pools", problem, capsys, 9)  # the step under way at the limit is completed
    assert cold.gap < 0.02
    assert cold_s < 10


@pytest.mark.benchmark
@pytest.mark.parametrize(("tasks", "gpu_share"), [(5_000, 0.0), (5_000, 0.03), (20_000, 0.0)])
def test_as_many_sizes_as_tasks(tasks: int, gpu_share: float, capsys: pytest.CaptureFixture[str]) -> None:
    """1,500 pools. The clock counts the CPU time of this process, as on an idle machine."""
    problem = Problem(market(1_500, 0), distinct_sizes(tasks, 0, gpu_share))
    last = float("inf")
    for seconds in (2, 10) if tasks == 5_000 else (10, 30):
        found = allocate(problem, THOROUGH.within(seconds, time.process_time))
        with capsys.disabled():
            print(
                f"\n{tasks} sizes, {100 * gpu_share:.0f} % with GPUs, {seconds} s of cpu: "
                f"{found.usd_per_hour:.2f} USD/h, +{100 * found.gap:.2f} % over {found.lower_bound_usd_per_hour:.2f}"
            )
        assert_whole(problem, found)
        assert not found.left_out.any()
        assert found.usd_per_hour <= last
        last = found.usd_per_hour
    assert found.gap < 0.02


@pytest.mark.benchmark
@pytest.mark.parametrize("seed", range(3))
def test_small_tasks_on_instances_of_any_size(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The LP may use fractions of few, large instances: rounding alone loses a tenth of the cost."""
    problem = Problem(proportional_market(400), small_tasks(5_000, seed))
    for seconds in (2, 10):
        found = allocate(problem, THOROUGH.within(seconds, time.process_time))
        with capsys.disabled():
            print(f"\n30 small sizes, seed {seed}, {seconds} s of cpu: +{100 * found.gap:.2f} % over the bound")
        assert_whole(problem, found)
        assert not found.left_out.any()
        assert found.gap < 0.01


@pytest.mark.benchmark
@pytest.mark.parametrize("seed", range(6))
def test_whole_gpus_shares_of_gpus_and_none_together(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem(catalogue_market(), shared_backlog(seed))
    for effort in (QUICK, THOROUGH):
        started = time.process_time()
        found = allocate(problem, effort.within(2, time.process_time))
        with capsys.disabled():
            print(
                f"\nshares, seed {seed}: {found.usd_per_hour:.2f} USD/h, +{100 * found.gap:.2f} % over the bound, "
                f"{time.process_time() - started:.2f} s of cpu"
            )
        assert_whole(problem, found)
        assert not found.left_out.any()
    assert found.gap < 0.01


@pytest.mark.benchmark
@pytest.mark.parametrize("seed", range(2))
def test_no_filling_of_a_real_size_is_worth_more_than_the_bound_says(seed: int) -> None:
    """The bound depends on this. Exact pricing by branch and bound: seconds, so not in the normal suite."""
    problem = Problem(market(1_500, seed), backlog(20, 100_000, seed))
    need, sizes = problem.backlog.need, problem.sizes
    value = need @ [1e-5, 3e-6, 0.3] * np.random.default_rng(seed).uniform(0.7, 1.3, len(need))
    pricer = Pricer(sizes, need, problem.backlog.count)
    bound = pricer.at_most(value, np.ones(len(sizes), dtype=bool), 2_000_000)
    _, _, worth = pricer.fillings(value, np.zeros(len(sizes)), 20_000_000)
    best = np.array([best_worth(size, need.tolist(), value.tolist()) for size in sizes.tolist()])
    assert (bound >= best * (1 - 1e-6)).all()
    assert (worth <= best * (1 + 1e-6)).all()
    assert worth.sum() > best.sum() * 0.97


def test_the_benchmark_works_in_small(capsys: pytest.CaptureFixture[str]) -> None:
    """So that it cannot become outdated unnoticed."""
    problem = Problem(market(60, 0), backlog(6, 8_000, 0))
    cold, _ = measured("60 pools", problem, capsys, 60)
    assert cold.gap < 0.05
    again = allocate(problem)
    assert (again.pool.tolist(), again.times.tolist()) == (cold.pool.tolist(), cold.times.tolist())
