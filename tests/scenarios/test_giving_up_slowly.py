"""A run that is spread over more chunks than a commit holds is given up over several ticks, and none of its tasks
starts."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.attempts import AttemptStatus
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus, TaskTable
from argosy.spec.terms import terms_of_form
from tests.builders import RUN_ID
from tests.fakes.aws import refusal
from tests.scenarios.controlled import Controlled

TASKS = 150


class Throttled:
    """ECS that starts nothing for now."""

    def __init__(self, ecs: Any) -> None:
        self.ecs, self.closed, self.asked = ecs, True, 0

    def __getattr__(self, operation: str) -> Any:
        return getattr(self.ecs, operation)

    def run_task(self, **request: Any) -> Any:
        self.asked += 1
        if self.closed:
            raise refusal("ThrottlingException", "Rate exceeded")
        return self.ecs.run_task(**request)


def intents(cluster: Controlled) -> int:
    state = cluster.controllers[0].state
    assert state is not None
    return len(state.attempts.with_status(AttemptStatus.INTENT))


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> tuple[Controlled, Throttled]:
    """Every task is in its own chunk, as failed tasks of a million may be, and has a launch intent."""
    monkeypatch.setattr(TaskTable, "chunk_rows", 1)
    cluster = Controlled(zones=("us-east-1a",), work_s=5.0, intent_age_s=1e9, max_promised_documents=400)
    ecs = Throttled(cluster.ecs)
    cluster.controllers = [cluster.controller(ecs)]
    cluster.submit(TASKS, resources={"vcpus": 0.25, "memory": 64})
    for _ in range(500):
        cluster.tick()
        if intents(cluster) == TASKS:
            return cluster, ecs
    raise AssertionError(f"{intents(cluster)} intents")


@pytest.mark.parametrize("cause", ["cancel", "timeout"])
def test_a_run_spread_over_many_chunks_is_given_up_within_the_bounds_of_a_commit(
    spread: tuple[Controlled, Throttled], cause: str
) -> None:
    """The store asserts the bounds."""
    cluster, ecs = spread
    if cause == "cancel":
        cluster.cancel()
    else:
        spec = dict(cluster.run.spec)
        cluster.run.spec = {**spec, "timeout": {"runDurationSeconds": 1}}
        cluster.run.terms = terms_of_form(cluster.run.spec)
    cluster.tick()
    assert 0 < intents(cluster) < TASKS
    ecs.closed, asked = False, ecs.asked
    cluster.run_to_rest()
    record = cluster.record()
    assert record.counts[TaskStatus.CANCELLED] == TASKS
    assert record.status == (RunStatus.CANCELLED if cause == "cancel" else RunStatus.FAILED)
    assert ecs.asked == asked  # what was not dropped at once was not sent either
    assert not cluster.starts()
    assert f"{RUN_ID}/_FAILED" in cluster.s3.objects
