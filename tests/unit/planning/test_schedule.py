"""The closed form for equal tasks equals a list scheduler that works one task at a time."""

from __future__ import annotations

import heapq
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.planning.schedule import EqualTasks, InstanceGroup, completion

UNPACED = 1e9


def one_at_a_time(tasks: int, task_s: float, groups: list[InstanceGroup]) -> float:
    """When the last task ends if each is given to the place that would end it first."""
    heap = [group.ready_s + task_s for group in groups for _ in range(group.instances * group.places)]
    heapq.heapify(heap)
    ended = 0.0
    for _ in range(tasks):
        ended = heapq.heappop(heap)
        heapq.heappush(heap, ended + task_s)
    return ended


groups = st.lists(
    st.builds(
        InstanceGroup,
        instances=st.integers(1, 4),
        places=st.integers(1, 5),
        price_usd_per_hour=st.floats(0.01, 10),
        ready_s=st.floats(0, 300),
    ),
    min_size=1,
    max_size=4,
)


@given(tasks=st.integers(1, 200), task_s=st.floats(0.5, 500), given=groups)
def test_the_end_is_that_of_a_list_scheduler(tasks: int, task_s: float, given: list[InstanceGroup]) -> None:
    assert completion(EqualTasks(tasks, task_s), given, 0.0, UNPACED).seconds == pytest.approx(
        one_at_a_time(tasks, task_s, given)
    )


@given(tasks=st.integers(1, 200), task_s=st.floats(0.5, 500), given=groups, linger_s=st.floats(0, 1000))
def test_no_instance_is_paid_beyond_the_end_nor_less_than_its_work(
    tasks: int, task_s: float, given: list[InstanceGroup], linger_s: float
) -> None:
    found = completion(EqualTasks(tasks, task_s), given, linger_s, UNPACED)
    most = sum(group.instances for group in given) * found.seconds / 3600
    places = max(group.places for group in given)
    assert tasks * task_s / places / 3600 <= found.instance_hours * (1 + 1e-6)
    assert found.instance_hours <= most * (1 + 1e-6)


def test_an_instance_without_a_last_round_is_let_go_after_its_linger() -> None:
    quick, slow = InstanceGroup(1, 1, 1.0), InstanceGroup(1, 1, 1.0, ready_s=50.0)
    found = completion(EqualTasks(2, 100.0), [quick, slow], 10.0, UNPACED)  # ends at 150; the quick one is over at 100
    assert found.seconds == pytest.approx(150)
    assert found.instance_hours == pytest.approx((110 + 150) / 3600)
    assert found.cost_usd == pytest.approx(found.instance_hours)


def test_starting_tasks_is_paced() -> None:
    assert completion(EqualTasks(4000, 1.0), [InstanceGroup(1000, 10, 1.0)], 0.0, 40.0).seconds == pytest.approx(101)


def test_nothing_that_could_run_it_is_no_forecast_and_no_work_costs_nothing() -> None:
    assert math.isinf(completion(EqualTasks(1, 1.0), [InstanceGroup(3, 0, 1.0)], 0.0, UNPACED).seconds)
    assert completion(EqualTasks(0, 1.0), [], 0.0, UNPACED).cost_usd == 0.0


def test_what_one_machine_runs_at_a_time_bounds_what_many_instances_would() -> None:
    many = [InstanceGroup(instances=100, places=10, price_usd_per_hour=1.0)]
    assert completion(EqualTasks(1000, 10.0), many, 0.0, UNPACED).seconds == pytest.approx(10)
    assert completion(EqualTasks(1000, 10.0, at_once=2), many, 0.0, UNPACED).seconds == pytest.approx(5000)
    assert completion(EqualTasks(3, 10.0, at_once=2), many, 0.0, UNPACED).seconds == pytest.approx(20)
