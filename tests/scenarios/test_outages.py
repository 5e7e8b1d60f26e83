"""S3 does not answer for a while: finished work stays finished, and only long outages lead to giving up."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.builders import RUN_ID, spec, submit_request
from tests.fakes.aws import S3_OUTAGES, refusal
from tests.scenarios.controlled import Controlled

TASKS = 40


class BadLine:
    """S3, and `fault` in place of its answers while there is one."""

    def __init__(self, real: Any) -> None:
        self.real, self.fault, self.refused = real, None, 0

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            if self.fault is not None:
                self.refused += 1
                raise self.fault
            return getattr(self.real, name)(**request)

        return call


def results_to_look_up(fault: Exception) -> tuple[Controlled, BadLine]:
    """Every task has written its result, and the first have ended: from now on S3 answers with the fault."""
    cluster = Controlled(zones=("us-east-1a",), work_s=60.0, max_instances=20, growth_per_tick=20)
    line = BadLine(cluster.s3)
    cluster.s3 = line  # type: ignore[assignment]
    cluster.controllers = [cluster.controller()]
    order = spec(array={"size": TASKS}, container={"image": "argosy/digits", "command": ["work"]})
    now, output = cluster.world.now, f"s3://results/{RUN_ID}/"
    cluster.put(submit_request(RUN_ID, now, order, TASKS, "argosy/digits", output, True), RUN_ID)
    cluster.tick()
    for index in range(TASKS):
        line.real.objects[f"{RUN_ID}/attempts/{index:07d}/1/out.txt"] = b"x"
    while not cluster.record().counts[TaskStatus.RUNNING]:
        cluster.step()
    line.fault = fault
    while not cluster.record().counts[TaskStatus.VERIFYING]:
        cluster.step()
    return cluster, line


@pytest.mark.parametrize("fault", S3_OUTAGES, ids=["throttled", "an error of S3", "no answer"])
def test_minutes_without_s3_fail_no_task_that_is_done(fault: Exception) -> None:
    cluster, line = results_to_look_up(fault)
    cluster.run_for(1500.0)
    assert line.refused > TASKS
    assert cluster.record().status == RunStatus.RUNNING
    line.fault = None
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.counts[TaskStatus.SUCCEEDED]) == (RunStatus.SUCCEEDED, TASKS)
    assert record.attempts == TASKS


def test_results_that_cannot_be_looked_up_for_an_hour_are_given_up() -> None:
    cluster, line = results_to_look_up(S3_OUTAGES[0])
    began = cluster.world.now
    cluster.tick_s = 30.0
    cluster.run_for(3000.0)
    assert cluster.record().status == RunStatus.RUNNING
    cluster.run_for(900.0)
    assert cluster.record().counts[TaskStatus.FAILED] == TASKS
    line.fault = None
    cluster.run_to_rest()
    record = cluster.record()
    assert record.status == RunStatus.FAILED
    assert "SlowDown" in record.status_reason
    assert record.stopped_at - began < 3600.0 + 600.0


def test_a_refusal_that_stays_is_asked_twenty_times_at_growing_pauses_and_not_for_an_hour() -> None:
    cluster, line = results_to_look_up(refusal("AccessDenied", "User is not authorized", 403))
    began = cluster.world.now
    while not cluster.record().counts[TaskStatus.FAILED]:
        cluster.step()
        assert cluster.world.now - began < 1800.0
    assert cluster.world.now - began > 600.0  # twenty rounds, not twenty answers
    line.fault = None
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.FAILED
