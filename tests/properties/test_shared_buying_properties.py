"""Does an allocation for tasks that share GPUs hold what placement takes, and is its bound below the optimum?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from argosy.market.allocation.allocate import allocate
from argosy.market.allocation.effort import QUICK, THOROUGH, Effort
from argosy.market.allocation.problem import PoolTable, Problem, TaskShapes
from argosy.market.allocation.shared_pricing import pricer_of
from argosy.placement.demand import Batch
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply
from tests.allocation_checks import assert_whole, cheapest_usd

pytestmark = pytest.mark.slow

Size = tuple[int, int, int, int]
"""cpu units, MiB, GPUs, and MiB of one of them."""
Shape = tuple[int, int, int, int, int]
"""cpu units, MiB, GPUs taken whole, MiB of one that is shared, and its owner."""

amounts = st.integers(1, 4)
plain = st.tuples(amounts, amounts, st.just(0), st.just(0), st.just(0))
whole = st.tuples(amounts, amounts, st.integers(1, 2), st.just(0), st.just(0))
sharing = st.tuples(
    amounts, amounts, st.just(0), st.sampled_from((2, 3, 4, 5, 6, 8, 12)), st.sampled_from((1, 1, 1, 2))
)
shapes = st.lists(st.one_of(sharing, sharing, whole, plain), min_size=1, max_size=3, unique=True)
sizes = st.tuples(
    st.integers(4, 20), st.integers(4, 20), st.sampled_from((0, 1, 2, 2, 3)), st.sampled_from((0, 7, 12, 12))
)
TWO_OF_A_KIND: Size = (20, 20, 2, 12)
FOUR_AND_EIGHT: list[Shape] = [(1, 1, 0, 4, 0), (1, 1, 0, 8, 0), (1, 1, 1, 0, 0)]
pools = st.lists(st.tuples(sizes, st.integers(1, 500)), min_size=1, max_size=3)


def problem_of(market: Sequence[tuple[Size, int]], backlog: Sequence[tuple[Shape, int]]) -> Problem:
    """Prices are in cents."""
    depth = [20] * len(market)
    offered = PoolTable.of([size[:3] for size, _ in market], [cents / 100 for _, cents in market], depth, depth)
    offered = replace(offered, gpu_mib=np.array([size[3] for size, _ in market]))
    tasks = TaskShapes.of([shape[:3] for shape, _ in backlog], [count for _, count in backlog])
    return Problem(offered, replace(tasks, shares=np.array([shape[3:] for shape, _ in backlog])))


def takes(size: Size, shapes: Sequence[Shape], pattern: Sequence[int]) -> bool:
    """Whether placement counts all these tasks on one empty instance."""
    cpu, memory, gpus, gpu_mib = size
    row = InstanceRow("i-1", cpu, memory, gpus, cpu, memory, gpus, {}, gpu_memory_mib=gpu_mib)
    batches = [
        Batch(*shape[:3], count, gpu_share_mib=shape[3], gpu_owner=shape[4])
        for shape, count in zip(shapes, pattern, strict=True)
    ]
    return not place(batches, Supply.of([row])).unplaced.any()


@given(sizes, shapes, st.permutations((0, 1, 2)))
@example(TWO_OF_A_KIND, FOUR_AND_EIGHT, [0, 1, 2])
@settings(max_examples=30, derandomize=True, deadline=None)
def test_an_instance_holds_exactly_what_placement_takes_in_any_order(
    size: Size, tasks: list[Shape], order: list[int]
) -> None:
    problem = problem_of([(size, 1)], [(shape, 9) for shape in tasks])
    order = [n for n in order if n < len(tasks)]
    patterns = list(itertools.product(range(4), repeat=len(tasks)))
    held = problem.holds(np.array(patterns))[:, 0].tolist()
    for pattern, holds in zip(patterns, held, strict=True):
        assert holds == takes(size, [tasks[n] for n in order], [pattern[n] for n in order])


@given(
    sizes, shapes, st.lists(st.floats(0.01, 10), min_size=3, max_size=3), st.floats(0, 10), st.sampled_from((2, 4, 99))
)
@example(TWO_OF_A_KIND, FOUR_AND_EIGHT, [1.0, 2.0, 3.0], 0.0, 99)
@settings(max_examples=40, derandomize=True, deadline=None)
def test_a_filling_is_never_valued_too_low_and_always_fits(
    size: Size, tasks: list[Shape], values: list[float], floor: float, most_tasks: int
) -> None:
    value, cents = np.array(values[: len(tasks)]), max(1, round(100 * floor))
    problem = problem_of([(size, cents)], [(shape, 3) for shape in tasks])
    problem = Problem(replace(problem.offered, most_tasks=np.array([most_tasks])), problem.backlog)
    pricer = pricer_of(problem)
    every = [p for p in itertools.product(range(4), repeat=len(tasks)) if takes(size, tasks, p)]
    every = [p for p in every if sum(p) <= most_tasks]
    best = max(float(np.dot(pattern, value)) for pattern in every)
    _, pattern, worth = pricer.fillings(value, np.array([floor]), 20_000_000)
    assert {tuple(held) for held in pattern.tolist()} <= set(every)
    found = float((pattern @ value).max(initial=0.0))
    assert worth[0] >= found * (1 - 1e-9)
    if problem.shares is not None:
        assert found >= best * (1 - 2e-3) or found > floor or best <= floor * (1 + 1e-5)
        assert worth[0] >= best * (1 - 2e-3) or best <= floor * (1 + 1e-5)
    for bound in (pricer.relaxed(value), pricer.at_most(value, np.array([True]), 1)):
        assert bound[0] >= best * (1 - 1e-9)


@given(
    pools,
    shapes,
    st.lists(st.integers(0, 5), min_size=3, max_size=3),
    st.sampled_from((QUICK, THOROUGH)),
    st.booleans(),
)
@settings(max_examples=25, derandomize=True, deadline=None)
def test_the_optimum_is_between_the_bound_and_what_is_bought(
    market: list[tuple[Size, int]], tasks: list[Shape], counts: list[int], effort: Effort, solver: bool
) -> None:
    problem = problem_of(market, list(zip(tasks, counts, strict=False)))
    found = allocate(problem, replace(effort, again=0), solver=solver)
    assert_whole(problem, found)
    for lot in found.lots:
        assert takes(market[lot.pool][0], [tasks[n] for n in lot.shape.tolist()], lot.count.tolist())
    assert (found.left_out == np.where(problem.unplaceable, problem.backlog.count, 0)).all()
    best = cheapest_usd(
        [size[:3] for size, _ in market],
        [cents / 100 for _, cents in market],
        [20] * len(market),
        [shape[:3] for shape in tasks],
        (problem.backlog.count - found.left_out).tolist(),
        takes=lambda pool, pattern: takes(market[pool][0], tasks, pattern),
    )
    assert found.lower_bound_usd_per_hour <= best * (1 + 1e-9) + 1e-12
    assert best <= found.usd_per_hour * (1 + 1e-9) + 1e-9
    assert not solver or found.usd_per_hour <= best * 1.5 + 1e-9
