"""A virtual ECS agent: it registers, and pulls, runs and stops tasks on a virtual clock.

It talks to ECS through the model's own operations, like a real agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from types import MappingProxyType
from typing import Any, Protocol

from botocore.exceptions import ClientError

from argosy.catalogue.lookup import CPU_UNITS_PER_VCPU, registered_memory_mib
from argosy.emulator.ec2.records import Ec2Instance, MachineType
from argosy.emulator.ecs.service import EcsModel
from argosy.emulator.region import as_uuid
from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE, XID_ATTRIBUTE
from argosy.model.run_terms import RUNNER_ATTRIBUTE, RUNNER_PROTOCOL
from tests.harness.simulation.world.virtual_task import TaskBehaviour, VirtualTask, Workload

JSON = dict[str, Any]
GPU_LOST_CODE = 134  # a CUDA program aborts
FIRST_PORT = 32_768  # range of ports that Docker chooses from
WITH_RUNNER = MappingProxyType({RUNNER_ATTRIBUTE: str(RUNNER_PROTOCOL)})

_CAPABILITIES = (
    "com.amazonaws.ecs.capability.docker-remote-api.1.24",
    "com.amazonaws.ecs.capability.docker-remote-api.1.44",
    "com.amazonaws.ecs.capability.logging-driver.awslogs",
    "com.amazonaws.ecs.capability.logging-driver.json-file",
    "com.amazonaws.ecs.capability.ecr-auth",
    "com.amazonaws.ecs.capability.task-iam-role",
    "com.amazonaws.ecs.capability.task-iam-role-network-host",
    "ecs.capability.execution-role-awslogs",
    "ecs.capability.execution-role-ecr-pull",
    "ecs.capability.task-cpu-mem-limit",
)


@dataclass(frozen=True, slots=True)
class AgentBehaviour:
    """How one agent behaves; all times in seconds."""

    register_s: float = 20.0
    """From the start of the instance to its registration."""
    registers: bool = True
    gpus: int | None = None
    """How many GPUs it finds; None = all that the type has."""
    shares_gpus: bool = True
    """Whether its AMI has MPS, where the GPUs of the type can be shared."""
    stop_timeout_s: float = 30.0
    """ECS_CONTAINER_STOP_TIMEOUT, for containers whose definition has no stopTimeout."""
    poll_s: float = 0.1
    """How long the agent takes to notice new work."""
    drains_s: float | None = 1.0
    """From an interruption warning to DRAINING (ECS_ENABLE_SPOT_INSTANCE_DRAINING); None = the option is off."""
    attributes: Mapping[str, str] = field(default_factory=lambda: WITH_RUNNER)
    """ECS_INSTANCE_ATTRIBUTES."""
    tells_pulls: bool = False
    """Whether it reports a pull when that begins; the real one does so only with RUNNING or STOPPED."""
    pulls_go_on: bool = False
    """Whether the image of a task that is stopped during its pull is pulled to the end, and stays."""
    shutdown_code: int | None = None
    """Exit code that every task reports when the operating system shuts down; None = nothing is reported."""


CHECK_S = 0.2  # of the manifest of an image that is there


class Timetable(Protocol):
    """The part of a world that an agent needs."""

    def later(self, delay_s: float, do: Callable[[], None]) -> None:
        """Call `do` after that time; equal times in the order of the calls."""

    def clock(self) -> float:
        """Epoch seconds."""


@dataclass(eq=False, slots=True)
class VirtualAgent:
    """The agent of one instance, from `boot` until `die`."""

    ecs: EcsModel
    cluster: str
    instance: Ec2Instance
    machine: MachineType
    timetable: Timetable
    workload: Workload
    behaviour: AgentBehaviour
    arn: str = ""
    """Of the container instance; "" until it is registered."""
    alive: bool = True
    connected: bool = True
    tasks: dict[str, VirtualTask] = field(default_factory=dict)
    """By task ARN: the tasks that it has received and that have not ended."""
    broken_gpu: str = ""
    """The id of the GPU that has fallen off the bus."""
    gpu_victims: set[str] = field(default_factory=set)
    """ARNs of the tasks that failed for it."""
    images: dict[str, float] = field(default_factory=dict)
    """When each image is there; those that are being pulled only if `pulls_go_on`."""
    _unsent: list[JSON] = field(default_factory=list)
    _ports: dict[tuple[str, int], int] = field(default_factory=dict)

    def boot(self) -> None:
        """The instance runs."""
        if self.behaviour.registers:
            self.later(self.behaviour.register_s, self._register)

    def die(self) -> None:
        """The instance is gone with every task on it, and ECS gets no report."""
        self.alive = False
        for task in self.tasks.values():
            task.vanish()
        self.tasks.clear()

    def shut_down(self) -> None:
        """The operating system ends every container, and the agent lives just long enough to say so."""
        code = self.behaviour.shutdown_code
        if code is not None:
            for task in list(self.tasks.values()):
                task.kill(code)

    def warn(self) -> None:
        """The instance metadata announce an interruption."""
        if self.behaviour.drains_s is not None:
            self.later(self.behaviour.drains_s, self._drain)

    def called(self) -> None:
        """ECS has work for it."""
        self.later(self.behaviour.poll_s, self._take_work)

    @property
    def gpus_left(self) -> bool:
        """Whether it has GPUs, all of them sound."""
        return bool(self.arn and self.machine.gpus and self.behaviour.gpus != 0 and not self.broken_gpu)

    def break_gpu(self, said_after_s: float, *, by_driver: bool = False) -> None:
        """Its first GPU falls off the bus: the programs there fail, and so do later ones. ECS hears it afterwards, or
        by_driver: only the driver's log says so, from which the instance sets an attribute."""
        self.broken_gpu = gpu_ids(self.instance, 1)[0]
        for task in [each for each in self.tasks.values() if self._has_broken_gpu(each.task)]:
            self.gpu_victims.add(task.arn)
            task.kill(GPU_LOST_CODE)
        self.later(said_after_s, self._say_xid if by_driver else self._say_gpu)

    def _say_xid(self) -> None:
        if self.alive and self.arn:
            attribute = {"name": XID_ATTRIBUTE, "value": "79", "targetId": self.arn}
            with suppress(ClientError):  # ECS no longer knows an instance that was deregistered
                self.ecs.put_attributes(cluster=self.cluster, attributes=[attribute])

    def _say_gpu(self) -> None:
        if self.alive:
            self.ecs.check_health(self.arn, "ACCELERATED_COMPUTE", "IMPAIRED", f"Xid 79 on {self.broken_gpu}")

    def _has_broken_gpu(self, task: JSON) -> bool:
        return any(self.broken_gpu in each.get("gpuIds", ()) for each in task["containers"])

    def disconnect(self) -> None:
        """The network is cut: tasks continue, reports wait. ECS sees the agent disconnected."""
        self.connected = False
        if self.arn:
            self.ecs.set_agent_connected(self.arn, False)

    def reconnect(self) -> None:
        """The network heals: reports are sent in order, and work is requested."""
        self.connected = True
        if not self.arn:
            self._register()
            return
        self.ecs.set_agent_connected(self.arn, True)
        unsent, self._unsent = self._unsent, []
        for report in unsent:
            self.report(report)
        for task in self.tasks.values():
            task.tell_health()
        self._take_work()

    def report(self, change: JSON) -> None:
        """SubmitTaskStateChange, now or when the network is back."""
        if not self.connected:
            self._unsent.append(change)
            return
        if self.alive:
            self.ecs.submit_task_state_change(cluster=self.cluster, **change)

    def pull_left_s(self, image: str, whole_s: float) -> float:
        """How long the image's pull takes, less what is done: of an image that is there, only its check. An endless one
        stands for a stuck task, not an image."""
        if whole_s == float("inf"):
            return whole_s
        if self.behaviour.pulls_go_on:
            self.images.setdefault(image, self.clock() + whole_s)
        there_at = self.images.get(image, self.clock() + whole_s)
        return min(whole_s, max(CHECK_S, there_at - self.clock()))

    def pulled(self, image: str) -> None:
        """It is there from now on."""
        self.images.setdefault(image, self.clock())

    def free_port(self, arn: str, number: int) -> int:
        """The lowest of Docker's ports that no other task here has."""
        if (arn, number) not in self._ports:
            taken = {port for (task, _), port in self._ports.items() if task in self.tasks}
            self._ports[arn, number] = next(port for port in count(FIRST_PORT) if port not in taken)
        return self._ports[arn, number]

    def report_health(self, arn: str, container: str, status: str) -> None:
        """Now, or all of it when the network is back."""
        if self.alive and self.connected:
            self.ecs.report_health(arn, container, status)

    def clock(self) -> float:
        """Epoch seconds."""
        return self.timetable.clock()

    def later(self, delay_s: float, do: Callable[[], None]) -> None:
        """Call `do` after that time."""
        self.timetable.later(delay_s, do)

    def ended(self, arn: str) -> None:
        """The task with this ARN runs no longer."""
        self.tasks.pop(arn, None)

    def tells_pulls(self) -> bool:
        """Whether it reports a pull when that begins."""
        return self.behaviour.tells_pulls

    def stop_timeout_s(self) -> float:
        """For containers whose definition sets none."""
        return self.behaviour.stop_timeout_s

    def _register(self) -> None:
        if not self.alive or not self.connected or self.arn:
            return
        reply = self.ecs.register_container_instance(**self.registration())
        self.arn = reply["containerInstance"]["containerInstanceArn"]
        self._take_work()
        if self.instance.ends_at is not None:
            self.warn()  # the metadata still announce it

    def _take_work(self) -> None:
        if not self.alive or not self.connected or not self.arn:
            return
        work = self.ecs.agent_work(self.arn)
        for task in work.start:
            definition = self.ecs.describe_task_definition(taskDefinition=task["taskDefinitionArn"])["taskDefinition"]
            behaviour = self.workload(task, self.instance)
            if self.broken_gpu and self._has_broken_gpu(task):
                self.gpu_victims.add(task["taskArn"])
                behaviour = TaskBehaviour(1.0, exit_code=GPU_LOST_CODE)
            virtual = self.tasks[task["taskArn"]] = VirtualTask(self, task, definition, behaviour)
            virtual.begin()
        for arn in work.stop:
            self.tasks[arn].stop()  # ECS forgets the stop of a task that has ended in the meantime

    def _drain(self) -> None:
        if self.alive and self.connected and self.arn:
            self.ecs.update_container_instances_state(
                cluster=self.cluster, containerInstances=[self.arn], status="DRAINING"
            )

    def registration(self) -> JSON:
        """The content of RegisterContainerInstance: sizes and attributes of the real type."""
        count = self.machine.gpus if self.behaviour.gpus is None else self.behaviour.gpus
        integers = {
            "CPU": self.machine.vcpus * CPU_UNITS_PER_VCPU,
            "MEMORY": registered_memory_mib(self.machine.memory_mib),
        }
        resources: list[JSON] = [
            {"name": name, "type": "INTEGER", "integerValue": value} for name, value in integers.items()
        ]
        if count:
            resources.append({"name": "GPU", "type": "STRINGSET", "stringSetValue": gpu_ids(self.instance, count)})
        usable = {"memoryInMiB": self.machine.gpu_memory_mib * 31 // 32}  # as of a T4 in amazon-ecs-agent's tests
        devices = [{"id": gpu, "type": "GPU", "gpuInfo": usable} for gpu in gpu_ids(self.instance, count)]
        identity = {
            "instanceId": self.instance.instance_id,
            "instanceType": self.instance.instance_type,
            "availabilityZone": self.instance.zone,
            "imageId": self.instance.image_id,
        }
        return {
            "cluster": self.cluster,
            "instanceIdentityDocument": json.dumps(identity),
            "totalResources": resources,
            "platformDevices": devices,
            "attributes": self._attributes(),
            "versionInfo": {"agentVersion": "1.106.2", "agentHash": "simulated", "dockerVersion": "25.0.14"},
        }

    def _attributes(self) -> list[JSON]:
        valued = {
            "ecs.instance-type": self.instance.instance_type,
            "ecs.availability-zone": self.instance.zone,
            "ecs.ami-id": self.instance.image_id,
            "ecs.subnet-id": self.instance.subnet_id,
            "ecs.vpc-id": "vpc-00000000000000000",
            "ecs.os-type": "linux",
            "ecs.os-family": "LINUX",
            "ecs.cpu-architecture": self.machine.architecture,
            **self.behaviour.attributes,
        }
        if self.machine.gpus:
            valued["ecs.capability.gpu-driver-version"] = "580.178.04"
        named = [{"name": name} for name in _CAPABILITIES]
        if self.machine.shared_gpu_mib and self.behaviour.shares_gpus and self.behaviour.gpus != 0:
            named.append({"name": GPU_SHARING_ATTRIBUTE})
        return [{"name": name, "value": value} for name, value in valued.items()] + named


def gpu_ids(instance: Ec2Instance, count: int) -> list[str]:
    """GPU-<uuid> for each GPU, always the same for the same instance."""
    digests = (sha256(f"{instance.instance_id}/gpu/{ordinal}".encode()).hexdigest() for ordinal in range(count))
    return [f"GPU-{as_uuid(digest[:32])}" for digest in digests]
