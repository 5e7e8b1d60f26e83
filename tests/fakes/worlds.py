"""Worlds for tests: two task definitions, and quick ways to grow a cluster and to view it."""

from __future__ import annotations

from typing import Any

from argosy.emulator.ec2.service import Ec2Setup
from tests.fakes.ec2_cloud import NAMED
from tests.harness.simulation.world.agent import AgentBehaviour
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import Behaviour, World


def world(behaviour: TaskBehaviour | None = None, agent: AgentBehaviour | None = None, **more: Any) -> World:
    """A world with two definitions: `digits` (1 vCPU, 1 GiB) and `gpu` (the same with 1 GPU)."""
    made = World(
        Ec2Setup(NAMED),
        Behaviour(lambda given, instance: behaviour or TaskBehaviour(), (lambda instance: agent) if agent else None),
        **more,
    )
    made.record_events()
    container = {"name": "main", "image": "argosy/digits", "cpu": 1024, "memory": 1024, "stopTimeout": 60}
    one_gpu = {"resourceRequirements": [{"type": "GPU", "value": "1"}]}
    made.ecs.register_task_definition(family="digits", containerDefinitions=[container])
    made.ecs.register_task_definition(family="gpu", containerDefinitions=[{**container, **one_gpu}])
    return made


def grown(made: World, instance_type: str = "c5.2xlarge", spot: int = 1) -> list[dict[str, Any]]:
    """The container instances of a fleet, registered."""
    made.add_fleet(instance_type, "us-east-1a", spot=spot)
    made.run_for(120)
    return instances(made)


def instances(made: World) -> list[dict[str, Any]]:
    client = made.ecs_client()
    arns = client.list_container_instances(cluster=made.cluster)["containerInstanceArns"]
    if not arns:
        return []
    found: list[dict[str, Any]] = client.describe_container_instances(cluster=made.cluster, containerInstances=arns)[
        "containerInstances"
    ]
    return found


def run(made: World, definition: str = "digits", **more: Any) -> str:
    reply = made.ecs_client().run_task(cluster=made.cluster, taskDefinition=definition, **more)
    return str(reply["tasks"][0]["taskArn"])


def task(made: World, arn: str) -> dict[str, Any]:
    found: dict[str, Any] = made.ecs_client().describe_tasks(cluster=made.cluster, tasks=[arn])["tasks"][0]
    return found


def ended(made: World, arn: str) -> tuple[str, int | None, float]:
    """(stop code, exit code, seconds from start to stop; 0 when it never started)."""
    seen = task(made, arn)
    started = seen.get("startedAt", seen["stoppedAt"])
    seconds = (seen["stoppedAt"] - started).total_seconds()
    return seen["stopCode"], seen["containers"][0].get("exitCode"), seconds
