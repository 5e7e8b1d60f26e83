"""Does every plan of the fast kernels equal placing one task at a time, bit for bit, for any input?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.placement.demand import Batch, Queue
from argosy.placement.place import place_queue
from argosy.placement.supply import InstanceRow, Supply
from tests.placement_cases import (
    FUNCTIONS,
    cases,
    check,
    drawing_cases,
    gpu_counting_cases,
    per_batch,
    plain_cases,
    plain_share_cases,
    share_cases,
    tall_cases,
)

ORDINARY = settings(max_examples=120, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
PARTS = 8  # of 1,300 cases: each ends before the watch for hanging tests strikes
DEEP = settings(max_examples=1_300, deadline=None, suppress_health_check=list(HealthCheck))


@given(cases)
@ORDINARY
def test_a_plan_equals_the_reference_loop(case: tuple[list[InstanceRow], list[Batch]]) -> None:
    check(*case, matrix_from=10_000)


@given(share_cases, st.sampled_from((0, 10_000)))
@ORDINARY
def test_a_plan_with_shares_of_gpus_equals_the_reference_loop(
    case: tuple[list[InstanceRow], list[Batch]], matrix_from: int
) -> None:
    check(*case, matrix_from=matrix_from)


@given(st.one_of(plain_share_cases, gpu_counting_cases(), gpu_counting_cases()))
@settings(ORDINARY, max_examples=180)
def test_an_interleaved_plan_with_shares_of_gpus_equals_the_reference_loop(
    case: tuple[list[InstanceRow], list[Batch]],
) -> None:
    check(*case, matrix_from=0)


@given(gpu_counting_cases(), st.sampled_from([{(1, 1, 0, 5): 3, (1, 1, 2, 0): 1}, {(40, 1, 1, 0): 2}]))
@settings(ORDINARY, max_examples=60)
def test_default_chains_strand_few_gpus_for_known_typical_tasks_as_the_reference_loop_does(
    case: tuple[list[InstanceRow], list[Batch]], mix: dict[tuple[int, int, int, int], int]
) -> None:
    check(*case, matrix_from=0, mix=Counter(mix))


@given(plain_cases)
@ORDINARY
def test_an_interleaved_plan_equals_the_reference_loop(case: tuple[list[InstanceRow], list[Batch]]) -> None:
    check(*case, matrix_from=0)


@given(drawing_cases, st.sampled_from((0, 10_000)))
@ORDINARY
def test_small_batches_draw_as_the_reference_loop_does_one_by_one_and_interleaved(
    case: tuple[list[InstanceRow], list[Batch]], matrix_from: int
) -> None:
    check(*case, matrix_from=matrix_from)


@given(tall_cases())
@settings(ORDINARY, max_examples=100)
def test_many_small_tasks_on_few_instances_equal_the_reference_loop(
    case: tuple[list[InstanceRow], list[Batch]],
) -> None:
    check(*case, matrix_from=10_000)


@given(cases, st.randoms(use_true_random=False))
@settings(ORDINARY, max_examples=100)
def test_the_order_of_rows_changes_nothing_but_ties(
    case: tuple[list[InstanceRow], list[Batch]], random: Random
) -> None:
    """Instances that differ in their (unique) price are never tied under `cheapest`; so each gets the same tasks in
    any order.
    """
    rows = [replace(row, price_usd_per_hour=1.0 + number) for number, row in enumerate(case[0])]
    queue = [replace(batch, strategy=(*batch.strategy[:2], "cheapest")) for batch in case[1]]
    shuffled = random.sample(rows, len(rows))
    plans = []
    for order in (rows, shuffled):
        plan = place_queue(Queue.of(queue), Supply.of(order), fitness=FUNCTIONS)
        named = zip(plan.batch.tolist(), (order[row].id for row in plan.row), plan.count.tolist(), strict=True)
        plans.append(sorted(named))
    assert plans[0] == plans[1]


@given(cases, st.lists(st.sampled_from(["random", "random:7", "spread:attribute:zone", "binpack:memory"]), max_size=3))
@ORDINARY
def test_nothing_is_over_committed_where_chance_decides(
    case: tuple[list[InstanceRow], list[Batch]], chain: list[str]
) -> None:
    rows, batches_ = case
    queue = [replace(batch, strategy=(*chain, "random")) for batch in batches_]
    supply = Supply.of(rows)
    plan, again = place_queue(Queue.of(queue), supply), place_queue(Queue.of(queue), supply)
    assert (plan.row.tolist(), plan.count.tolist()) == (again.row.tolist(), again.count.tolist())
    needs = np.array([batch.need for batch in queue])
    used = np.zeros((len(rows), 3), dtype=np.int64)
    np.add.at(used, plan.row, needs[plan.batch] * plan.count[:, None])
    assert (supply.free >= used.T).all()
    assert supply.healthy[plan.row].all()
    added = np.bincount(plan.row, weights=plan.count, minlength=len(rows))
    assert all(
        n == 0 or row.most_tasks is None or row.running_tasks + n <= row.most_tasks
        for n, row in zip(added, rows, strict=True)
    )
    for batch, placed in zip(queue, per_batch(plan, len(queue)), strict=True):
        if "distinctInstance" in batch.constraints or batch.host_ports:
            assert max(placed.values(), default=0) <= 1


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
@given(case=cases)
@DEEP
def test_a_plan_equals_the_reference_loop_on_ten_thousand_cases(
    case: tuple[list[InstanceRow], list[Batch]], part: int
) -> None:
    check(*case, matrix_from=10_000)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
@given(case=plain_cases)
@DEEP
def test_an_interleaved_plan_equals_it_on_ten_thousand_cases(
    case: tuple[list[InstanceRow], list[Batch]], part: int
) -> None:
    check(*case, matrix_from=0)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10 * PARTS))
@given(case=share_cases)
@settings(DEEP, max_examples=1_250)
def test_a_plan_with_shares_equals_it_on_a_hundred_thousand_cases(
    case: tuple[list[InstanceRow], list[Batch]], part: int
) -> None:
    check(*case, matrix_from=10_000)


@pytest.mark.deep
@given(tall_cases())
@settings(DEEP, max_examples=500)
def test_many_small_tasks_equal_it_on_five_hundred_cases(case: tuple[list[InstanceRow], list[Batch]]) -> None:
    check(*case, matrix_from=10_000)
