"""Which implementations of ECS do the contract tests run against?

A case uses only `client`, a boto3 ECS client or a fake, in a cluster that no other case uses. A feature that an
implementation lacks (passing time, reading events) is None, and the cases that need it are skipped.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.ecs.service import EcsModel
from argosy.emulator.region import AwsRegion
from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE

CLUSTER = "argosy"
_numbers = itertools.count(1)


@dataclass
class EcsCloud:
    """One implementation, fresh for one test."""

    client: Any
    pass_time: Callable[[float], None] | None = None
    """Let seconds pass."""
    events: list[dict[str, Any]] | None = None
    """Every EventBridge message so far, in order."""
    agent_work: Callable[[str], Any] | None = None
    """The agent asks what to do, by container-instance ARN."""
    lose_instance: Callable[[str], None] | None = None
    register_agent: Callable[..., dict[str, Any]] | None = None
    """RegisterContainerInstance with what agents send beyond the published API: the memory of GPUs."""
    instances: list[str] = field(default_factory=list)

    def register(self, instance_type: str = "c5.2xlarge", zone: str = "us-east-1a", **more: Any) -> dict[str, Any]:
        """A container instance of a real size, as its agent would register it. share_mib: memory of each GPU, of an
        agent that shares them."""
        machine = load_catalogue()[instance_type]
        instance_id = f"i-{next(_numbers):017x}"
        resources: list[dict[str, Any]] = [
            {"name": "CPU", "type": "INTEGER", "integerValue": machine.cpu_units},
            {"name": "MEMORY", "type": "INTEGER", "integerValue": machine.registered_memory_mib},
            {"name": "PORTS", "type": "STRINGSET", "stringSetValue": ["22", "2375", "2376", "51678", "51679"]},
            {"name": "PORTS_UDP", "type": "STRINGSET", "stringSetValue": []},
        ]
        ids = [f"GPU-{instance_id}-{ordinal}" for ordinal in range(machine.gpus)]
        if machine.gpus:
            resources.append({"name": "GPU", "type": "STRINGSET", "stringSetValue": ids})
        attributes = {
            "ecs.instance-type": instance_type,
            "ecs.availability-zone": zone,
            "ecs.os-type": "linux",
            "ecs.cpu-architecture": machine.architecture,
            "ecs.ami-id": "ami-0123456789abcdef0",
            **more.pop("attributes", {}),
        }
        if share_mib := more.pop("share_mib", 0):
            attributes[GPU_SHARING_ATTRIBUTE] = ""
            more["platformDevices"] = [{"id": gpu, "type": "GPU", "gpuInfo": {"memoryInMiB": share_mib}} for gpu in ids]
        request = {
            "cluster": CLUSTER,
            "instanceIdentityDocument": json.dumps({"instanceId": instance_id, "instanceType": instance_type}),
            "totalResources": resources,
            "attributes": [{"name": name, "value": value} for name, value in attributes.items()],
            "versionInfo": {"agentVersion": "1.106.2", "agentHash": "test", "dockerVersion": "25.0.14"},
            **more,
        }
        register = self.register_agent if "platformDevices" in more else self.client.register_container_instance
        assert register is not None
        instance: dict[str, Any] = register(**request)["containerInstance"]
        self.instances.append(instance["containerInstanceArn"])
        return instance

    def define(self, family: str = "digits", *, gpus: int = 0, **more: Any) -> str:
        """A definition with one container `main` of 1 vCPU and 1 GiB (changed by `container`); its ARN."""
        container: dict[str, Any] = {"name": "main", "image": "argosy/digits", "cpu": 1024, "memory": 1024}
        if gpus:
            container["resourceRequirements"] = [{"type": "GPU", "value": str(gpus)}]
        container.update(more.pop("container", {}))
        containers = more.pop("containers", [container])
        reply = self.client.register_task_definition(family=family, containerDefinitions=containers, **more)
        return str(reply["taskDefinition"]["taskDefinitionArn"])

    def run(self, definition: str = "digits", **more: Any) -> dict[str, Any]:
        """RunTask in the cluster."""
        reply: dict[str, Any] = self.client.run_task(cluster=CLUSTER, taskDefinition=definition, **more)
        return reply

    def run_on(self, instance: dict[str, Any], definition: str = "digits", **more: Any) -> dict[str, Any]:
        """RunTask pinned to one instance, as every launch of ours is."""
        pin = {"type": "memberOf", "expression": f"ec2InstanceId == {instance['ec2InstanceId']}"}
        return self.run(definition, placementConstraints=[pin], **more)

    def task(self, arn: str) -> dict[str, Any]:
        """One task as DescribeTasks shows it."""
        reply = self.client.describe_tasks(cluster=CLUSTER, tasks=[arn], include=["TAGS"])
        assert reply["failures"] == []
        task: dict[str, Any] = reply["tasks"][0]
        return task

    def instance(self, arn: str) -> dict[str, Any]:
        """One instance as DescribeContainerInstances shows it."""
        reply = self.client.describe_container_instances(cluster=CLUSTER, containerInstances=[arn])
        instance: dict[str, Any] = reply["containerInstances"][0]
        return instance

    def remaining(self, instance: dict[str, Any]) -> dict[str, Any]:
        """What is left: CPU and MEMORY as numbers, GPU and the ports in use as lists."""
        resources = self.instance(instance["containerInstanceArn"])["remainingResources"]
        return {
            each["name"]: each["integerValue"] if each["type"] == "INTEGER" else each["stringSetValue"]
            for each in resources
        }

    def report(self, arn: str, status: str, **container: Any) -> None:
        """The agent's SubmitTaskStateChange; container fields go to the container `main`."""
        if self.agent_work is not None:
            self.agent_work(self.task(arn)["containerInstanceArn"])
        change = {"containerName": "main", "status": status, **container}
        self.client.submit_task_state_change(cluster=CLUSTER, task=arn, status=status, containers=[change])


@contextmanager
def refused(code: str, message: str = "") -> Iterator[Any]:
    """The call inside is refused with AWS's error code, and nothing else happens."""
    with pytest.raises(ClientError) as caught:
        yield caught
    error = caught.value.response["Error"]
    assert error["Code"] == code
    assert message in error["Message"]


def simulation() -> EcsCloud:
    """Our model on a virtual clock, every request and reply checked against botocore's service model."""
    return simulation_and_model()[0]


def simulation_and_model() -> tuple[EcsCloud, EcsModel]:
    """The same, and the model itself: its agents' side is no part of AWS's API."""
    clock, events = [1_800_000_000.0], list[dict[str, Any]]()
    model = EcsModel(AwsRegion(lambda: clock[0], emit=events.append))

    def pass_time(seconds: float) -> None:
        clock[0] += seconds

    client = SimulatedClient(model, "ecs")
    register = model.register_container_instance
    cloud = EcsCloud(client, pass_time, events, model.agent_work, model.lose_instance, register)
    cloud.client.create_cluster(clusterName=CLUSTER)
    return cloud, model


IMPLEMENTATIONS: dict[str, Callable[[], EcsCloud]] = {"simulation": simulation}
