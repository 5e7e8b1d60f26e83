"""Several queues on one cluster, from the inbox to the tasks: the order of starts, and the purchases."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.builders import RUN_ID
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

SMALL = "small-261121-070000-aaaa"
OTHER = "other-261121-070000-bbbb"
QUEUES: dict[str, Any] = {"version": 1, "queues": {"research": {"weight": 1}, "night": {"weight": 0}}}


def shared(cluster: Controlled, document: dict[str, Any] | None = None, base: int = 0) -> None:
    cluster.share(document or QUEUES, base)


def until_started(cluster: Controlled, run_id: str, limit_s: float) -> float:
    """How long it takes until a task of the run has started."""
    began = cluster.world.now
    cluster.tick()  # it is taken in
    while cluster.record(run_id).status not in (RunStatus.RUNNING, RunStatus.SUCCEEDED):
        assert cluster.world.now - began < limit_s, cluster.record(run_id).waiting
        cluster.tick()
    return cluster.world.now - began


def test_a_run_of_one_task_of_another_queue_starts_within_one_task_s_length() -> None:
    cluster = Controlled(work_s=60.0, max_instances=2)
    shared(cluster)
    cluster.submit(80)
    cluster.run_for(200)
    cluster.submit(1, SMALL, queue="research")
    assert until_started(cluster, SMALL, 90) <= 75
    cluster.run_to_rest()
    assert {cluster.record(each).status for each in (RUN_ID, SMALL)} == {RunStatus.SUCCEEDED}
    assert len(cluster.world.ec2.ledger.instances) <= 3  # nothing more was bought for it


def test_without_queues_it_waits_for_the_run_before_it_unless_its_priority_is_higher() -> None:
    cluster = Controlled(work_s=60.0, max_instances=2)
    cluster.submit(60)
    cluster.run_for(150)
    cluster.submit(1, SMALL)
    cluster.submit(1, OTHER, priority=1)
    assert until_started(cluster, OTHER, 90) <= 75
    assert cluster.record(SMALL).status is not RunStatus.RUNNING
    cluster.run_to_rest()


def test_another_document_is_in_force_in_the_next_tick() -> None:
    cluster = Controlled(work_s=120.0, max_instances=2)
    cluster.submit(200)
    cluster.run_for(200)
    cluster.submit(8, SMALL, queue="research")
    shared(cluster, {"version": 1, "queues": {"default": {"weight": 0}, "research": {}}})
    assert until_started(cluster, SMALL, 150) <= 135
    cluster.run_for(300)
    assert cluster.record(SMALL).status is RunStatus.SUCCEEDED  # all eight places, before any more of the first
    cluster.cancel()
    cluster.run_to_rest()


def test_a_sharer_that_uses_up_launches_leaves_the_places_to_the_others() -> None:
    """Two launches a tick keep only six short tasks running. Their queue uses little of the places and would be
    first forever: long tasks would come to half of the places, and the rest would stay empty."""
    cluster = Controlled(max_instances=6, launches_per_cell=2, launch_rate=1.0)
    shared(cluster)
    cluster.world.workload = lambda task, instance: TaskBehaviour(6.0 if SMALL in task["group"] else 3_600.0)
    cluster.submit(400, SMALL, queue="research", array={"size": 100_000, "expectedSeconds": 6})
    cluster.submit(40, array={"size": 40, "expectedSeconds": 3_600})
    cluster.run_for(400)
    places = 4 * len(cluster.live_instances())
    assert places == 24
    running = [record.counts[TaskStatus.RUNNING] for record in (cluster.record(), cluster.record(SMALL))]
    assert running[0] >= 0.75 * (places - 6), running


def test_what_is_bought_for_a_small_queue_is_bought_once() -> None:
    cluster = Controlled(work_s=60.0, max_instances=40, growth_per_tick=4)
    shared(cluster)
    cluster.submit(600)
    cluster.submit(4, SMALL, queue="research")
    assert until_started(cluster, SMALL, 200) <= 90
    cluster.run_for(150)
    cluster.cancel()
    cluster.run_to_rest()
    assert len(cluster.world.ec2.ledger.instances) <= 42


def test_dollars_are_shared_although_instances_are_ordered_a_few_at_a_time() -> None:
    """Two instances an order, and one costs three times as much as the other: in the end each queue has half of the
    dollars, and its tasks are on the instances that were bought for it."""
    cluster = Controlled(
        ("c5.xlarge", "g4dn.xlarge"), ("us-east-1a",), work_s=7_200.0, growth_per_tick=2, max_type_share=1.0, tick_s=5.0
    )
    shared(cluster, {"version": 1, "limits": {"usdPerHour": 3}, "queues": {"default": {}, "research": {}}})
    cluster.submit(400, resources={"vcpus": 4, "memory": 4_096})
    cluster.submit(400, OTHER, queue="research", resources={"vcpus": 4, "memory": 8_192, "gpus": 1})
    cluster.run_for(500)
    state = cluster.controllers[0].state
    assert state is not None
    usd: Counter[str] = Counter()
    for instance in state.instances.values():
        usd[instance.instance_type] += instance.price_usd_per_hour
    assert usd["c5.xlarge"] == pytest.approx(1.5, abs=0.25)
    assert usd["g4dn.xlarge"] == pytest.approx(1.5, abs=0.25)
    for run_id, kind in ((RUN_ID, "c5.xlarge"), (OTHER, "g4dn.xlarge")):
        many = sum(instance.instance_type == kind for instance in state.instances.values())
        assert cluster.record(run_id).counts[TaskStatus.RUNNING] == many
    cluster.cancel()
    cluster.cancel(OTHER)
    cluster.run_to_rest()


def test_recent_use_counts_even_if_the_controller_dies_in_between() -> None:
    """Half the cluster each by weight alone."""
    cluster = Controlled(work_s=120.0, max_instances=2)
    shared(cluster, {"version": 1, "halfLife": "30m", "queues": {"default": {}, "research": {}}})
    cluster.submit(1_000)
    cluster.run_for(3_600)
    cluster.controllers = [cluster.controller()]
    cluster.submit(200, SMALL, queue="research")
    cluster.run_for(300)
    running = [record.counts[TaskStatus.RUNNING] for record in (cluster.record(), cluster.record(SMALL))]
    assert sum(running) >= 7
    assert running[1] >= 6
    cluster.cancel()
    cluster.cancel(SMALL)
    cluster.run_to_rest()


def test_within_a_queue_a_deadline_that_can_be_met_comes_before_an_older_run() -> None:
    cluster = Controlled(work_s=60.0, max_instances=2)
    cluster.submit(400)
    cluster.run_for(200)
    cluster.submit(16, OTHER)
    known = {"size": 16, "expectedSeconds": 60}
    cluster.submit(16, SMALL, array=known, capacity={"deadline": "20m", "purchase": "spot"})
    assert until_started(cluster, SMALL, 90) <= 75
    cluster.run_for(400)
    assert cluster.record(SMALL).status is RunStatus.SUCCEEDED
    assert cluster.record(OTHER).status is not RunStatus.RUNNING
    for each in (RUN_ID, OTHER):
        cluster.cancel(each)
    cluster.run_to_rest()
