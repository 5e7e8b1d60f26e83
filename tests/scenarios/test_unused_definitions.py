"""The task definitions that Argosy registers: there while a run needs them, and not much longer."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.runs import RunStatus
from argosy.scheduler.upkeep.upkeep import UNUSED_S
from tests.builders import CELL, RUN_ID
from tests.fakes.aws import refusal
from tests.scenarios.controlled import Controlled, failing
from tests.scenarios.two_cells import AWAY, TwoCells

OTHER_RUN, LATE_RUN = "other-261121-062733-k3f9", "late-261121-062733-k3f9"
LARGER = {"vcpus": 1, "memory": 1536}  # makes another definition
WHILE_S = 150.0  # longer than an unused definition stays, shorter than an idle instance does


def finish(cluster: Controlled) -> None:
    """Until the first run has just been closed."""
    cluster.tick()
    while cluster.record().status != RunStatus.SUCCEEDED:
        cluster.step()


def busy(**request: Any) -> None:
    raise refusal("SlowDown", "Please reduce your request rate.", 503)


def active(ecs: Any) -> list[str]:
    """The active revisions of ours, as family:revision."""
    arns = ecs.list_task_definitions(status="ACTIVE")["taskDefinitionArns"]
    return [name for arn in arns if (name := arn.rpartition("/")[2]).startswith("argosy-")]


def deregister(cluster: Controlled) -> list[str]:
    """Foreign changes to every one of our definitions, and which these are."""
    names = active(cluster.ecs)
    for name in names:
        cluster.ecs.deregister_task_definition(taskDefinition=name)
    return names


def test_two_runs_of_the_same_content_share_a_definition_until_both_have_ended() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    cluster.submit(4)
    cluster.submit(60, run_id=OTHER_RUN, name="other", placement={"maxConcurrentTasks": 4})
    cluster.run_for(WHILE_S + 100)
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert cluster.record(OTHER_RUN).status == RunStatus.RUNNING
    assert [name[-2:] for name in active(cluster.ecs)] == [":1"]
    cluster.run_to_rest()
    assert cluster.record(OTHER_RUN).status == RunStatus.SUCCEEDED
    assert active(cluster.ecs) == []


def test_a_steady_stream_of_submissions_holds_up_no_definition_that_is_unused() -> None:
    """There is a run without a definition in every tick."""
    cluster = Controlled(zones=("us-east-1a",), work_s=2.0, starts_s=2.0)
    cluster.submit(1)
    cluster.tick()
    [first] = active(cluster.ecs)
    for number in range(int(UNUSED_S / cluster.tick_s) + 20):
        cluster.submit(1, run_id=f"run{number}-261121-062733-k3f9", name=f"run{number}", resources=LARGER)
        cluster.tick()
    [second] = active(cluster.ecs)
    assert first != second
    cluster.run_to_rest()
    assert active(cluster.ecs) == []


def test_a_definition_that_is_due_stays_for_a_run_of_the_same_content_that_waits() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    cluster.submit(1)
    cluster.submit(40, run_id=OTHER_RUN, name="other", placement={"maxConcurrentTasks": 4}, resources=LARGER)
    finish(cluster)
    put, cluster.s3.put_object = cluster.s3.put_object, busy  # type: ignore[method-assign]
    cluster.submit(1, run_id=LATE_RUN, name="late")
    cluster.run_for(UNUSED_S + 10)
    assert (cluster.record(LATE_RUN).task_definition, len(active(cluster.ecs))) == ("", 2)
    cluster.s3.put_object = put  # type: ignore[method-assign]
    cluster.run_to_rest()
    assert cluster.record(LATE_RUN).status == RunStatus.SUCCEEDED
    assert cluster.record(LATE_RUN).task_definition == cluster.record().task_definition
    assert active(cluster.ecs) == []


def test_a_run_that_comes_back_after_its_definition_went_gets_another() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    failing(cluster, 1)
    cluster.submit(3)
    cluster.run_to_rest()
    assert (cluster.record().status, active(cluster.ecs)) == (RunStatus.PARTIAL, [])
    failing(cluster)
    cluster.retry()
    cluster.run_for(200.0)
    assert cluster.record().task_definition.endswith(":2")
    cluster.run_to_rest()
    assert (cluster.record().status, active(cluster.ecs)) == (RunStatus.SUCCEEDED, [])


def test_it_goes_in_every_cell() -> None:
    cluster = TwoCells({CELL: 0.09, AWAY: 0.05})
    cluster.submit(4)
    cluster.run_for(100)
    ecs = [cluster.world_of(name).ecs_client() for name in (CELL, AWAY)]
    home, away = (active(each) for each in ecs)
    assert home == away != []
    cluster.run_to_rest()
    assert [active(each) for each in ecs] == [[], []]


@pytest.mark.parametrize("new_process", [False, True])
def test_a_definition_that_is_deregistered_during_a_run_is_registered_again(new_process: bool) -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    cluster.submit(40, placement={"maxConcurrentTasks": 4})
    cluster.run_for(200.0)
    [first] = deregister(cluster)
    cluster.run_for(60.0)
    assert active(cluster.ecs) == [first.replace(":1", ":2")]
    if new_process:  # which reads from the store that the run is pinned to the first revision
        cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.SUCCEEDED, 40)
    assert max(cluster.starts().values()) == 1
    assert active(cluster.ecs) == []


def test_a_run_whose_definition_vanished_between_preparation_and_first_launch_still_starts() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    cluster.submit(4)
    cluster.run_for(10.0)
    assert len(deregister(cluster)) == 1
    cluster.run_to_rest()
    assert (cluster.record(RUN_ID).status, active(cluster.ecs)) == (RunStatus.SUCCEEDED, [])


def test_a_refusal_to_deregister_holds_nothing_up_and_the_next_run_has_it_tried_again() -> None:
    cluster = Controlled(zones=("us-east-1a",))

    class Denied:
        def __getattr__(self, name: str) -> Any:
            return getattr(cluster.ecs, name)

        def deregister_task_definition(self, **request: Any) -> None:
            raise refusal("AccessDeniedException", "not authorized to perform: ecs:DeregisterTaskDefinition")

    cluster.controllers = [cluster.controller(Denied())]
    cluster.submit(4)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert len(active(cluster.ecs)) == 1
    cluster.controllers = [cluster.controller()]
    cluster.submit(1, run_id=OTHER_RUN, name="other", container={"image": "argosy/digits", "command": ["another"]})
    cluster.run_to_rest()
    assert active(cluster.ecs) == []
