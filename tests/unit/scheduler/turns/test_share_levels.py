"""The inputs of a sharer's level: contested parts of the cluster, or dollars if these are limited."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.model.actions import Launch
from argosy.model.resources import Resources
from argosy.model.state import State
from argosy.scheduler.turns.fair_order import FairOrder
from argosy.scheduler.turns.share_levels import PER_S, ShareLevels
from argosy.sharing.columns import MOST
from tests.builders import begun, container_instance, fleet, host, state_with, told
from tests.shared_clusters import cluster, decided, launches, run, shared

GPU: dict[str, Any] = {"resources": {"vcpus": 1, "memory": 1024, "gpus": 1}}
P3 = {"ecs.instance-type": "p3.2xlarge", "ecs.availability-zone": "us-east-1a"}
LARGE, SMALL = ((16_384, 32_768, 0), 0.40), ((4_096, 16_384, 1), 0.20)
QUEUES: dict[str, Any] = {"version": 1, "queues": {"default": {}, "research": {}}}
DOLLARS = {**QUEUES, "limits": {"usdPerHour": 4}}


def lifting_on(state: State, *instances: tuple[tuple[int, int, int], float]) -> ShareLevels:
    """Where one launch a second is what there may be."""
    sizes, prices = zip(*instances, strict=True)
    return ShareLevels.of(state, np.array([Resources(*size) for size in sizes]), np.array(prices), 1.0)


def with_gpus(instances: int) -> State:
    """Each takes four tasks and has two GPUs."""
    state = state_with(fleet("p3.2xlarge", spot_target=instances))
    for number in range(instances):
        told(state, host(number, "p3.2xlarge"), container_instance(number, gpus=2, attributes=P3))
    return state


def test_gpus_that_only_one_queue_wants_raise_no_level() -> None:
    state = shared(with_gpus(4), QUEUES)
    first, second = run(state, 1, 1_000), run(state, 2, 1_000, queue="research", **GPU)
    assert launches(decided(state, max_instances=4)) == {first: 8, second: 8}  # all GPUs, and a half of the cpu
    assert lifting_on(state, SMALL).capacity.tolist() == [4_096, 16_384, MOST, MOST, PER_S]


def test_gpus_that_several_want_count() -> None:
    state = shared(with_gpus(4), QUEUES)
    run(state, 1, 1_000, **GPU)
    run(state, 2, 1_000, queue="research", **GPU)
    assert lifting_on(state, SMALL).capacity.tolist() == [4_096, 16_384, 1, MOST, PER_S]


def test_where_dollars_are_limited_a_task_counts_what_it_costs_where_it_costs_least() -> None:
    state = shared(cluster(1), DOLLARS)
    cpu = run(state, 1, 10, resources={"vcpus": 4, "memory": 2048})
    memory = run(state, 2, 10, resources={"vcpus": 1, "memory": 16_384})
    huge = run(state, 3, 10, resources={"vcpus": 32, "memory": 1024})
    found = lifting_on(state, LARGE, SMALL)
    assert found.capacity.tolist() == [MOST, MOST, MOST, 400_000, PER_S]
    assert found.takes(state.runs[cpu])[3] == 10_000  # a quarter of the large one, not all of the small one
    assert found.takes(state.runs[memory])[3] == 20_000  # half of the one, or all of the other
    assert found.takes(state.runs[huge])[3] == 0  # nothing here takes it


def test_what_runs_of_a_queue_counts_at_the_same_price() -> None:
    state = shared(cluster(2), DOLLARS)
    run(state, 1, 3)
    begun(state, [each for each in decided(state) if isinstance(each, Launch)])
    run(state, 2, 3, queue="research")
    order = FairOrder.of(state, [*state.runs.values()])
    lifting = lifting_on(state, LARGE)
    used = dict(zip(order.sharers, lifting.used(state, order)[:, 3].tolist(), strict=True))
    each = lifting.takes((*state.runs.values(),)[0])[3]
    assert used == {("research", ""): 0, ("default", ""): 3 * each}
    assert each > 0


def test_a_queue_whose_tasks_cost_twice_as_much_gets_half_as_many() -> None:
    state = shared(cluster(6), DOLLARS)
    small = run(state, 1, 1_000, resources={"vcpus": 1, "memory": 256})
    large = run(state, 2, 1_000, queue="research", resources={"vcpus": 2, "memory": 256})
    found = launches(decided(state, max_instances=6))
    assert found == {small: 12, large: 6}
