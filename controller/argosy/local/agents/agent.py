"""The ECS agents of all local instances: they register, start and stop tasks, report, and die with their instance.

One thread handles the messages, one at a time. The models post them under their own locks, so posting never waits. Only
the end of a task is handled by the thread that saw it, which then starts the next one: with tasks of milliseconds,
waking another thread for it would take longer than they do. A lock keeps the two apart; models are called with it held,
and never take it.
"""

from __future__ import annotations

import json
import queue
import shutil
import tempfile
import threading
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.local.agents.execution import TaskExecution, TaskReport
from argosy.local.agents.log_shipper import LogShipper
from argosy.local.containers.container import HostSettings
from argosy.local.containers.runtime import Runtime
from argosy.local.gpus import Gpu
from argosy.local.mps import MpsDaemon
from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE, InstanceType

_GPU_NAMESPACE = uuid.UUID("6f0e2c1a-4f0b-4d5e-9b7a-2f1f4f6f1d11")


@dataclass(frozen=True, slots=True)
class Host:
    """One instance with its agent."""

    instance_id: str
    instance_type: InstanceType
    availability_zone: str
    own_attributes: Mapping[str, str] = field(
        default_factory=dict
    )  # the owner's, as in the agent's ECS_INSTANCE_ATTRIBUTES
    gpus: tuple[Gpu, ...] = ()  # of this machine; none: those of its type are simulated
    daemons: Mapping[str, MpsDaemon] = field(default_factory=dict)  # by id, of `gpus` if tasks can share them

    @property
    def gpu_ids(self) -> tuple[str, ...]:
        """The id of each GPU, in the order of their ordinals. Simulated ones are GPU-<uuid>, always the same for an
        instance id."""
        if self.gpus:
            return tuple(gpu.id for gpu in self.gpus)
        names = (f"{self.instance_id}/{ordinal}" for ordinal in range(self.instance_type.gpus))
        return tuple(f"GPU-{uuid.uuid5(_GPU_NAMESPACE, name)}" for name in names)

    @property
    def shares_gpus(self) -> bool:
        """Whether tasks can share them."""
        return self.instance_type.shared_gpu_mib > 0 and (not self.gpus or bool(self.daemons))

    def registration(self, cluster: str, image_id: str | None) -> dict[str, Any]:
        """The agent's RegisterContainerInstance."""
        kind = self.instance_type
        resources: list[dict[str, Any]] = [
            {"name": "CPU", "type": "INTEGER", "integerValue": kind.cpu_units},
            {"name": "MEMORY", "type": "INTEGER", "integerValue": kind.registered_memory_mib},
        ]
        if self.gpu_ids:
            resources.append({"name": "GPU", "type": "STRINGSET", "stringSetValue": list(self.gpu_ids)})
        identity = {
            "instanceId": self.instance_id,
            "instanceType": kind.name,
            "availabilityZone": self.availability_zone,
            "imageId": image_id,
        }
        return {
            "cluster": cluster,
            "instanceIdentityDocument": json.dumps(identity),
            "totalResources": resources,
            "platformDevices": [
                {"id": gpu, "type": "GPU", "gpuInfo": {"memoryInMiB": mib}} for gpu, mib in self._gpu_memory()
            ],
            "attributes": [{"name": name, "value": value} for name, value in self._attributes(image_id).items()],
            "versionInfo": {"agentVersion": "1.105.1", "agentHash": "argosy", "dockerVersion": "argosy-local"},
        }

    def _gpu_memory(self) -> Iterable[tuple[str, int]]:
        """MiB of each GPU, by id."""
        if self.gpus:
            return [(gpu.id, gpu.memory_mib) for gpu in self.gpus]
        return [(gpu, self.instance_type.shared_gpu_mib) for gpu in self.gpu_ids]

    def _attributes(self, image_id: str | None) -> dict[str, str]:
        kind = self.instance_type
        attributes = {
            "ecs.instance-type": kind.name,
            "ecs.availability-zone": self.availability_zone,
            "ecs.cpu-architecture": kind.architecture,
            "ecs.os-type": "linux",
            "ecs.os-family": "LINUX",
            "com.amazonaws.ecs.capability.logging-driver.awslogs": "",
            **self.own_attributes,
        }
        if self.shares_gpus:
            attributes[GPU_SHARING_ATTRIBUTE] = ""
        return attributes | ({"ecs.ami-id": image_id} if image_id else {})


_DISK_FULL = "CannotCreateContainerError: no space left on device"  # what the agent says when Docker finds no room
JOIN_S = 30.0  # for processes that were killed to be gone; a container engine takes seconds on a busy machine


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The parts that all agents share. `processes`: real processes at once; further tasks wait as PENDING."""

    cluster: str
    environment: Mapping[str, str]
    processes: int
    stop_timeout_s: float | None = None
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))  # where programs write
    min_free_bytes: int = 0  # free space there; with less no task is started


@dataclass(slots=True)
class _Instance:
    """One agent's memory."""

    host: Host
    arn: str
    executions: dict[str, TaskExecution] = field(default_factory=dict)


class Agents:
    """All agents. `ecs` is an EcsModel; messages may be posted from any thread."""

    def __init__(self, ecs: Any, runtime: Runtime, shipper: LogShipper, options: AgentOptions) -> None:
        self._ecs = ecs
        self._runtime = runtime
        self._shipper = shipper
        self._options = options
        self._instances: dict[str, _Instance] = {}  # by EC2 instance id
        self._killed: list[TaskExecution] = []  # with their instances; some may not be gone yet
        self._waiting: deque[tuple[_Instance, TaskExecution]] = deque()
        self._running: set[str] = set()  # task ARNs
        self._serving: set[str] = set()  # those of them that are services'
        self._pulling: set[str] = set()  # those of them whose images are being pulled
        self._messages: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._guard = threading.Lock()  # of everything above
        self._holder: int | None = None  # the thread that has it
        self._ending = False
        self.on_gone: Callable[[str], None] = lambda instance_id: None
        """Called when an instance and all its programs are gone, from any thread."""
        self._thread = threading.Thread(target=self._run, name="argosy-agents")
        ecs.on_work.append(self.post_work)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def post_up(self, host: Host, image_id: str | None = None) -> None:
        """The instance runs: its agent registers."""
        self._messages.put(lambda: self._up(host, image_id))

    def post_down(self, instance_id: str) -> None:
        """The instance is gone, and everything on it."""
        self._messages.put(lambda: self._down(instance_id))

    def post_warning(self, instance_id: str) -> None:
        """A spot interruption warning: the agent drains its instance (ECS_ENABLE_SPOT_INSTANCE_DRAINING)."""
        self._messages.put(lambda: self._drain(instance_id))

    def post_work(self, container_instance_arn: str) -> None:
        """ECS has something for this agent."""
        self._messages.put(lambda: self._work(container_instance_arn))

    def session(self, task_arn: str, container: str) -> tuple[str, str] | None:
        """Address and token of a session of ECS Exec; None if no agent has such a container running. Called under
        ECS's lock, so that it takes no other."""
        for instance in list(self._instances.values()):
            execution = instance.executions.get(task_arn)
            found = None if execution is None else execution.way_in(container)
            if found is not None:
                return found.as_session()
        return None

    def close(self) -> None:
        """Kill every task, wait for their processes, end."""
        self._ecs.on_work.remove(self.post_work)
        self._messages.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while (message := self._messages.get()) is not None:
            self._handle(message)
        with self._guard:
            self._ending = True
            executions = [each for instance in self._instances.values() for each in instance.executions.values()]
        for execution in executions:
            execution.kill()
        for execution in [*self._killed, *executions]:
            execution.join(JOIN_S)

    def _handle(self, message: Callable[[], None]) -> None:
        try:
            with self._guard:
                self._holder = threading.get_ident()
                try:
                    message()
                finally:
                    self._holder = None
        except Exception:  # noqa: BLE001 - one bad task must not end every agent; the fault is ours and is printed
            traceback.print_exc()

    def _up(self, host: Host, image_id: str | None) -> None:
        registered = self._ecs.register_container_instance(**host.registration(self._options.cluster, image_id))
        arn = registered["containerInstance"]["containerInstanceArn"]
        self._instances[host.instance_id] = _Instance(host, arn)
        self._work(arn)

    def _down(self, instance_id: str) -> None:
        instance = self._instances.pop(instance_id, None)
        if instance is None:
            return self.on_gone(instance_id)  # it ended before its agent had registered
        for execution in instance.executions.values():
            execution.kill()
            self._running.discard(execution.task_arn)
            self._serving.discard(execution.task_arn)
            self._pulling.discard(execution.task_arn)
        self._killed = [each for each in (*self._killed, *instance.executions.values()) if each.lives]
        self._waiting = deque(each for each in self._waiting if each[0] is not instance)
        self._ecs.lose_instance(instance.arn)
        self._start_waiting()
        if not instance.host.gpus:
            return self.on_gone(instance_id)
        return threading.Thread(target=self._gone, args=(instance,), name="argosy-gpus").start()

    def _gone(self, instance: _Instance) -> None:
        """Report it once its programs have ended: until then they hold memory of its GPUs."""
        for execution in list(instance.executions.values()):
            execution.join(JOIN_S)
        self.on_gone(instance.host.instance_id)

    def _drain(self, instance_id: str) -> None:
        instance = self._instances.get(instance_id)
        if instance is not None:
            self._ecs.update_container_instances_state(
                cluster=self._options.cluster, containerInstances=[instance.arn], status="DRAINING"
            )

    def _work(self, arn: str) -> None:
        instance = next((each for each in self._instances.values() if each.arn == arn), None)
        if instance is None:
            return  # it is still registering, and asks again afterwards; or it is gone
        work = self._ecs.agent_work(arn)
        for task in work.start:
            execution = TaskExecution(task, self._definition(task), self._reporter(instance), self._ecs.report_health)
            instance.executions[execution.task_arn] = execution
            if execution.serves:  # it never ends by itself: neither its own turn nor any later one would come
                self._serving.add(execution.task_arn)
                self._start(instance, execution)
            else:
                self._waiting.append((instance, execution))
        for task_arn in work.stop:
            self._stop(instance, task_arn)
        self._start_waiting()

    def _definition(self, task: Mapping[str, Any]) -> dict[str, Any]:
        found = self._ecs.describe_task_definition(taskDefinition=task["taskDefinitionArn"])
        return dict(found["taskDefinition"])

    def _stop(self, instance: _Instance, task_arn: str) -> None:
        execution = instance.executions.get(task_arn)
        if execution is None:
            return  # ended in the meantime
        if task_arn in self._running - self._pulling:
            execution.stop()
            return
        self._pulling.discard(task_arn)
        self._waiting = deque(each for each in self._waiting if each[1] is not execution)
        execution.refuse(None)

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running - self._serving) < self._options.processes and not self._ending:
            self._start(*self._waiting.popleft())

    def _start(self, instance: _Instance, execution: TaskExecution) -> None:
        self._running.add(execution.task_arn)
        if self._runtime.slow:
            self._pulling.add(execution.task_arn)
            threading.Thread(target=self._pull, args=(instance, execution), name="argosy-pull", daemon=True).start()
        else:
            self._begin(instance, execution)

    def _pull(self, instance: _Instance, execution: TaskExecution) -> None:
        """In a separate thread: a build takes minutes, and must not hold up the other agents."""
        execution.pull(self._runtime)
        self._messages.put(lambda: self._pulled(instance, execution))

    def _pulled(self, instance: _Instance, execution: TaskExecution) -> None:
        if execution.task_arn in self._pulling:  # else it was stopped in the meantime, or its host is gone
            self._pulling.discard(execution.task_arn)
            self._begin(instance, execution)

    def _begin(self, instance: _Instance, execution: TaskExecution) -> None:
        options = self._options
        if shutil.disk_usage(options.scratch).free < options.min_free_bytes:
            return execution.refuse(f"{_DISK_FULL}: the disk of {options.scratch} is full")
        host = instance.host
        around = HostSettings(
            options.environment, host.gpu_ids, options.stop_timeout_s, gpus=host.gpus, daemons=host.daemons
        )
        return execution.start(self._runtime, self._shipper, around)

    def _reporter(self, instance: _Instance) -> Callable[[TaskReport], None]:
        def report(said: TaskReport) -> None:
            if said.impaired:
                self._ecs.check_health(instance.arn, "ACCELERATED_COMPUTE", "IMPAIRED", said.impaired)
            self._ecs.submit_task_state_change(
                cluster=self._options.cluster,
                task=said.task_arn,
                status=said.status,
                containers=said.containers,
                **({"reason": said.reason} if said.reason else {}),
                **(dict(zip(("pullStartedAt", "pullStoppedAt"), said.pulled, strict=True)) if said.pulled else {}),
            )
            if said.status == "STOPPED":
                self._told_of_end(lambda: self._ended(instance, said.task_arn))

        return report

    def _told_of_end(self, message: Callable[[], None]) -> None:
        """Without this, a thousand tasks that cannot even start would call each other recursively."""
        if self._holder == threading.get_ident():
            self._messages.put(message)
        else:
            self._handle(message)

    def _ended(self, instance: _Instance, task_arn: str) -> None:
        instance.executions.pop(task_arn, None)
        self._running.discard(task_arn)
        self._serving.discard(task_arn)
        self._start_waiting()
