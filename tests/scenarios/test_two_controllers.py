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


@pytest.mark.parametrize("hears", [True, False])
@pytest.mark.parametrize(("tick_s", "exit_code"), [(10.0, 3), (10.0, 0), (60.0, 3), (60.0, 0)])
def test_ended_tasks_are_seen_within_two_minutes_and_a_tick(tick_s: float, exit_code: int, hears: bool) -> None:
    """60 s is the period of the schedule. A loop ticks every 5 s while an end is open, because that is due at once
    (`scheduler.due`). A failure counts once its instance was seen running later; each lost commit costs a tick."""
    cluster = without_a_lease(tick_s, lose=lambda message: not hears and message["source"] == "aws.ecs")
    cluster.world.workload = lambda task, instance: TaskBehaviour(90.0, exit_code=exit_code)
    run_id = cluster.submit(TASKS, retryStrategy={"attempts": 1})
    status, ended_at = TaskStatus.FAILED if exit_code else TaskStatus.SUCCEEDED, float("inf")
    cluster.tick()
    while cluster.record(run_id).counts[status] < TASKS:
        cluster.tick()
        if stopped(cluster) == TASKS:
            ended_at = min(ended_at, cluster.world.now)
        assert cluster.world.now <= ended_at + TWO_MINUTES_S + tick_s
    assert cluster.conflicts > 0
    assert cluster.record(run_id).attempts == TASKS
