"""ECS is queried for a hundred tasks at a time, and every failure is reported."""

from __future__ import annotations

import pytest

from argosy.aws.executor import EcsPolls
from argosy.model.actions import LookAtTasks
from argosy.model.events import NotCarriedOut, TaskSeen
from tests.builders import CELL, NOW, task_arn
from tests.fakes.aws import SOON, Clock, ScriptedClient, cell, refusal

SHOWN = {"taskArn": task_arn(1), "version": 3, "lastStatus": "RUNNING", "containers": [{"healthStatus": "HEALTHY"}]}
THROTTLED = refusal("ThrottlingException", "Rate exceeded")
DENIED = refusal("AccessDeniedException", "no permission for ecs:DescribeTasks")


def looks(ecs: ScriptedClient) -> EcsPolls:
    clock = Clock()
    return EcsPolls({CELL: cell(clock, ecs=ecs)}, clock)


def test_facts_from_ecs_have_the_time_of_the_request() -> None:
    ecs = ScriptedClient("ecs", describe_tasks={"tasks": [SHOWN], "failures": []})
    (seen,) = looks(ecs).look(LookAtTasks(CELL, (task_arn(1), task_arn(2))), SOON)
    assert isinstance(seen, TaskSeen)
    assert (seen.arn, seen.health, seen.looked_at) == (task_arn(1), "HEALTHY", NOW)


def test_it_asks_about_a_hundred_at_a_time_and_stops_at_the_first_refusal() -> None:
    ecs = ScriptedClient("ecs", describe_tasks=[{"tasks": [SHOWN], "failures": []}, THROTTLED])
    arns = tuple(task_arn(n) for n in range(250))
    seen, refused = looks(ecs).look(LookAtTasks(CELL, arns), SOON)
    assert isinstance(seen, TaskSeen)
    assert isinstance(refused, NotCarriedOut)
    assert refused.passing


def test_without_time_or_a_cell_nothing_is_asked() -> None:
    ecs = ScriptedClient("ecs")
    assert list(looks(ecs).look(LookAtTasks(CELL, (task_arn(1),)), NOW - 1)) == [
        NotCarriedOut("the time limit was reached")
    ]
    assert list(looks(ecs).look(LookAtTasks("nowhere", ()), SOON)) == [NotCarriedOut("there is no cell nowhere")]


@pytest.mark.parametrize(("error", "slows_down"), [(THROTTLED, True), (DENIED, False)])
def test_only_a_throttled_poll_lowers_the_rate_of_the_next_reads(error: Exception, slows_down: bool) -> None:
    clock = Clock()
    asked = cell(clock, ecs=ScriptedClient("ecs", describe_tasks=error))
    before = asked.rates.reads.rate_per_s
    (refused,) = EcsPolls({CELL: asked}, clock).look(LookAtTasks(CELL, (task_arn(1),)), SOON)
    assert isinstance(refused, NotCarriedOut)
    assert (asked.rates.reads.rate_per_s < before) is slows_down
