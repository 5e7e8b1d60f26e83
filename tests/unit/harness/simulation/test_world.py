"""Do instances, agents and tasks of a world behave over virtual time?"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from argosy.emulator.ec2.service import Ec2Setup
from tests.fakes.ec2_cloud import NAMED
from tests.fakes.worlds import ended, grown, instances, run, task, world
from tests.harness.simulation.world.agent import CHECK_S, AgentBehaviour
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import World

# --- registration --------------------------------------------------------------------------------------------------


def test_a_fleets_instances_register_with_the_sizes_and_attributes_of_their_type() -> None:
    (instance,) = grown(world(), "p3.8xlarge")
    sizes = {each["name"]: each for each in instance["registeredResources"]}
    assert sizes["CPU"]["integerValue"] == 32 * 1024
    assert sizes["MEMORY"]["integerValue"] == NAMED["p3.8xlarge"].registered_memory_mib
    assert len(set(sizes["GPU"]["stringSetValue"])) == 4
    attributes = {each["name"]: each.get("value") for each in instance["attributes"]}
    assert attributes["ecs.instance-type"] == "p3.8xlarge"
    assert attributes["ecs.availability-zone"] == "us-east-1a"
    assert attributes["ecs.os-type"] == "linux"
    assert attributes["ecs.cpu-architecture"] == "x86_64"
    assert attributes["ecs.ami-id"].startswith("ami-")


def test_registration_takes_its_time() -> None:
    made = world(agent=AgentBehaviour(register_s=20))
    made.add_fleet("c5.large", "us-east-1a", spot=1)
    made.run_for(49)
    assert instances(made) == []
    made.run_for(2)
    assert len(instances(made)) == 1


def test_an_instance_may_never_register() -> None:
    made = world(agent=AgentBehaviour(registers=False))
    assert grown(made) == []
    assert len(made.agents) == 1
    made.interrupt(next(iter(made.agents)))
    made.run_for(600)
    assert made.ec2.describe_instances()["Reservations"][0]["Instances"][0]["State"]["Name"] == "terminated"


def test_an_instance_may_come_without_its_gpus() -> None:
    (instance,) = grown(world(agent=AgentBehaviour(gpus=0)), "p3.2xlarge")
    assert "GPU" not in {each["name"] for each in instance["registeredResources"]}


def test_an_instance_that_ends_before_it_runs_never_had_an_agent() -> None:
    made = world()
    made.add_fleet("c5.large", "us-east-1a", spot=1)
    made.run_for(1)
    (instance_id,) = made.ec2.ledger.instances
    made.interrupt(instance_id, notice_s=1)
    made.run_for(10)
    assert instance_id not in made.agents
    made.run_for(120)
    assert instance_id not in {each["ec2InstanceId"] for each in instances(made)}


def test_an_instance_that_dies_before_registering_is_never_seen() -> None:
    made = world(agent=AgentBehaviour(register_s=60))
    made.add_fleet("c5.large", "us-east-1a", spot=1)
    made.run_for(45)
    (instance_id,) = made.agents
    made.ec2.lose(instance_id)
    made.run_for(60)
    assert instance_id not in {each["ec2InstanceId"] for each in instances(made)}


# --- tasks ---------------------------------------------------------------------------------------------------------


def test_a_task_is_pulled_runs_and_ends_as_the_workload_says() -> None:
    made = world(TaskBehaviour(pull_s=5, duration_s=40, exit_code=3, reason="boom"))
    grown(made)
    arn = run(made)
    made.run_for(4)
    assert task(made, arn)["lastStatus"] == "PENDING"
    made.run_for(2)
    assert task(made, arn)["lastStatus"] == "RUNNING"
    made.run_for(60)
    assert ended(made, arn) == ("EssentialContainerExited", 3, 40.0)
    seen = task(made, arn)
    assert (seen["pullStoppedAt"] - seen["pullStartedAt"]).total_seconds() == 5.0
    assert seen["containers"][0]["reason"] == "boom"


def test_an_image_that_is_there_is_only_checked_and_each_instance_pulls_for_itself() -> None:
    made = world(TaskBehaviour(pull_s=60, duration_s=10))
    pulls = []
    for expected in (60.0, CHECK_S):
        grown(made)
        arn = run(made)
        made.run_for(100)
        seen = task(made, arn)
        pulls.append((seen["pullStoppedAt"] - seen["pullStartedAt"]).total_seconds())
        assert pulls[-1] == pytest.approx(expected)


def test_an_image_may_be_unpullable() -> None:
    why = "CannotPullContainerError: no such image"
    made = world(TaskBehaviour(cannot_start=why))
    grown(made)
    arn = run(made)
    made.run_for(10)
    assert ended(made, arn) == ("TaskFailedToStart", None, 0.0)
    assert task(made, arn)["stoppedReason"] == why


@pytest.mark.parametrize(("obeys_s", "exit_code", "seconds"), [(2.0, 143, 12.0), (None, 137, 70.0), (90.0, 137, 70.0)])
def test_a_stop_is_obeyed_or_ends_in_a_kill(obeys_s: float | None, exit_code: int, seconds: float) -> None:
    made = world(TaskBehaviour(duration_s=float("inf"), pull_s=0, obeys_s=obeys_s), AgentBehaviour(poll_s=0))
    grown(made)
    arn = run(made)
    made.run_for(10)
    for _ in range(2):
        made.ecs_client().stop_task(cluster=made.cluster, task=arn, reason="cancelled")
    made.run_for(100)
    assert ended(made, arn) == ("UserInitiated", exit_code, seconds)


def test_a_stop_during_the_pull_ends_the_task_without_an_exit_code() -> None:
    made = world(TaskBehaviour(pull_s=30))
    grown(made)
    arn = run(made)
    made.run_for(5)
    made.ecs_client().stop_task(cluster=made.cluster, task=arn)
    made.run_for(60)
    assert ended(made, arn) == ("UserInitiated", None, 0.0)


def test_a_task_that_ends_while_it_is_being_stopped_ends_once() -> None:
    made = world(TaskBehaviour(duration_s=10, pull_s=0, obeys_s=None), AgentBehaviour(poll_s=0))
    grown(made)
    arn = run(made)
    made.run_for(5)
    made.ecs_client().stop_task(cluster=made.cluster, task=arn)
    made.run_for(100)
    assert ended(made, arn) == ("UserInitiated", 0, 10.0)


def test_a_stop_that_crosses_the_end_changes_nothing_at_the_agent() -> None:
    made = world(TaskBehaviour(duration_s=10, pull_s=0), AgentBehaviour(poll_s=1))
    grown(made)
    arn = run(made)
    made.run_for(10.5)
    made.ecs_client().stop_task(cluster=made.cluster, task=arn)
    made.run_for(10)
    assert ended(made, arn) == ("UserInitiated", 0, 10.0)


def test_gpus_return_when_a_task_ends() -> None:
    made = world(TaskBehaviour(duration_s=30))
    grown(made, "p3.2xlarge")
    first = run(made, "gpu")
    assert made.ecs_client().run_task(cluster=made.cluster, taskDefinition="gpu")["tasks"] == []
    made.run_for(60)
    second = run(made, "gpu")
    assert task(made, first)["containers"][0]["gpuIds"] == task(made, second)["containers"][0]["gpuIds"]


# --- the whole -----------------------------------------------------------------------------------------------------


def busy(seed: int) -> list[dict[str, Any]]:
    """Every event of a world with many things going on."""
    made = world(TaskBehaviour(duration_s=45), seed=seed)
    grown(made, "p3.8xlarge", spot=2)
    for _ in range(6):
        run(made, "gpu", placementStrategy=[{"type": "random"}])
    made.run_for(20)
    made.interrupt(sorted(made.agents)[0], notice_s=10)
    made.run_for(300)
    return made.events


def test_the_same_seed_gives_the_same_events_and_another_seed_others() -> None:
    assert json.dumps(busy(1)) == json.dumps(busy(1))
    assert json.dumps(busy(1)) != json.dumps(busy(2))


def test_events_are_in_the_order_of_time() -> None:
    times = [each["time"] for each in busy(3)]
    assert all(earlier <= later for earlier, later in pairwise(times))


def test_sinks_get_every_event_and_by_default_the_world_keeps_none() -> None:
    heard: list[dict[str, Any]] = []
    made = World(Ec2Setup(NAMED))
    made.sinks.append(heard.append)
    grown(made)
    assert heard
    assert made.events == []
