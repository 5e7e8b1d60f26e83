"""Two controllers work without a lease: each drops what it knows whenever the other has committed."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.tasks import TaskStatus
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

TASKS, TWO_MINUTES_S = 4, 120.0


def stopped(cluster: Controlled) -> int:
    """ECS tasks that have stopped."""
    return len(cluster.ecs.list_tasks(cluster=cluster.world.cluster, desiredStatus="STOPPED")["taskArns"])


def without_a_lease(tick_s: float, **options: Any) -> Controlled:
    cluster = Controlled(zones=("us-east-1a",), tick_s=tick_s, work_s=90.0, **options)
    cluster.controllers = [cluster.controller(), cluster.controller()]
    return cluster


@pytest.mark.parametrize("tick_s", [5.0, 10.0])
@pytest.mark.parametrize("hears", [True, False])
def test_ended_tasks_are_seen_within_two_minutes_and_a_tick(tick_s: float, hears: bool) -> None:
    """A loop ticks every 5 s while nothing happens; sweeps are 120 s apart."""
    cluster = without_a_lease(tick_s, lose=lambda message: not hears and message["source"] == "aws.ecs")
    cluster.world.workload = lambda task, instance: TaskBehaviour(90.0, exit_code=3)
    run_id = cluster.submit(TASKS, retryStrategy={"attempts": 1})
    ended_at = float("inf")
    cluster.tick()
    while cluster.record(run_id).counts[TaskStatus.FAILED] < TASKS:
        cluster.tick()
        if stopped(cluster) == TASKS:
            ended_at = min(ended_at, cluster.world.now)
        assert cluster.world.now < ended_at + TWO_MINUTES_S + tick_s
    assert cluster.conflicts > 0
