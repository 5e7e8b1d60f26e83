"""Is every packing complete, within the instances' capacity, and near the bound that none can beat?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.bench.bin_packing import lower_bound, pack
from tests.placement_bound import pattern_bound

pytestmark = pytest.mark.slow

amounts = st.integers(0, 9)


@given(st.lists(st.tuples(amounts, amounts, amounts, st.integers(0, 30)), max_size=8))
def test_every_task_is_packed_once_and_no_instance_holds_more_than_it_has(
    rows: list[tuple[int, int, int, int]],
) -> None:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    shapes, counts, capacity = table[:, :3], table[:, 3], (8, 9, 4)
    packing = pack(shapes, counts, capacity)
    assert (packing.times @ packing.patterns + packing.unplaced == counts).all()
    assert (packing.patterns @ shapes <= capacity).all()
    assert packing.instances == packing.times.sum() >= packing.lower_bound
    assert (packing.unplaced[(shapes <= capacity).all(axis=1)] == 0).all()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=7))
def test_the_bound_is_never_above_the_optimum(sizes: list[int]) -> None:
    shapes = np.array([[size, 0, 0] for size in sizes], dtype=np.int64)
    counts = np.ones(len(sizes), dtype=np.int64)
    assert lower_bound(shapes, counts, np.array([10, 10, 10])) <= _optimum(sorted(sizes, reverse=True), [], 10)


def _optimum(sizes: list[int], bins: list[int], capacity: int) -> int:
    """By trying every bin for every item."""
    if not sizes:
        return len(bins)
    first, rest = sizes[0], sizes[1:]
    best = _optimum(rest, [*bins, first], capacity)
    for index, used in enumerate(bins):
        if used + first <= capacity:
            best = min(best, _optimum(rest, [*bins[:index], used + first, *bins[index + 1 :]], capacity))
    return best


@pytest.mark.parametrize("seed", range(5))
def test_a_mixed_backlog_needs_at_most_three_per_cent_more_than_the_bound(seed: int) -> None:
    """Against the pattern LP, which knows of what rounding makes impossible and is never above the optimum."""
    vcpus = np.repeat([1, 2, 4, 8], 4)
    shapes = np.stack([vcpus, vcpus * np.tile([1, 2, 4, 8], 4)], axis=1)
    counts = np.random.default_rng(seed).integers(500, 9_000, len(shapes))
    packing = pack(np.column_stack([shapes, 0 * vcpus]), counts, (32, 124, 0))
    bound = pattern_bound(shapes, counts, (32, 124))
    assert packing.lower_bound <= bound <= packing.instances <= 1.03 * bound


def test_nothing_to_pack_needs_no_instance() -> None:
    assert pack(np.empty((0, 3)), np.empty(0), (1, 1, 1)).instances == 0


def test_tasks_that_need_nothing_share_one_instance() -> None:
    packing = pack(np.array([[0, 0, 0]]), np.array([10**6]), (1, 1, 1))
    assert (packing.instances, packing.patterns.tolist()) == (1, [[10**6]])


def test_a_shape_too_large_for_an_empty_instance_is_unplaced() -> None:
    packing = pack(np.array([[2, 1, 0], [1, 1, 0]]), np.array([3, 4]), (1, 1, 1))
    assert (packing.unplaced.tolist(), packing.instances) == ([3, 0], 4)


@pytest.mark.parametrize(
    ("shapes", "counts", "capacity"),
    [
        ([[-1, 1, 0]], [1], (1, 1, 1)),
        ([[1, 1, 0]], [-1], (1, 1, 1)),
        ([[1, 1, 0]], [1], (2**50, 1, 1)),
        ([[1, 1, 0]], [2**50], (1, 1, 1)),
    ],
)
def test_impossible_numbers_are_refused(
    shapes: list[list[int]], counts: list[int], capacity: tuple[int, int, int]
) -> None:
    with pytest.raises(ValueError, match=r"negative|above"):
        pack(np.array(shapes), np.array(counts), capacity)
