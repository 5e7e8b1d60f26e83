"""One container of a task, from definition, overrides, image and host, as the ECS agent combines them.

A process of this machine cannot have the port that its definition names for itself, as a container can: several tasks
would need the same one. So it gets another port, in the variable that its definition names for that, and only on the
loopback interface is it reachable.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from argosy.local.containers.images import Image
from argosy.local.containers.process import MARK, Isolation, Program
from argosy.local.containers.program_run import program_environment
from argosy.local.gpus import Gpu, visible, why_gone
from argosy.local.mps import MpsDaemon, limits_of
from argosy.model.run_terms import PROGRAM_ENTRY_POINT
from argosy.model.services.ports import PORT_VARIABLE

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PortOfTask:
    """is_endpoint: the task gets it, and it leads to the container; others are only reserved."""

    container: int
    host: int
    protocol: str
    is_endpoint: bool

    def as_binding(self) -> dict[str, Any]:
        """As the agent reports it."""
        return {
            "bindIP": LOOPBACK,
            "containerPort": self.container,
            "hostPort": self.host,
            "protocol": self.protocol,
        }


def free_port() -> int:
    """A port without a listener now. Raises OSError."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def bound(definition: Mapping[str, Any], choose: Callable[[], int]) -> Iterator[PortOfTask]:
    """The ports of a container definition. Host port 0 means one of the agent's choice. Raises OSError."""
    told = {each["name"] for each in definition.get("environment", ())}
    for each in definition.get("portMappings", ()):
        container, host = int(each["containerPort"]), int(each.get("hostPort") or 0)
        is_endpoint = f"{PORT_VARIABLE}{container}" in told
        yield PortOfTask(container, host or choose(), str(each.get("protocol") or "tcp"), is_endpoint)


def told_ports(ports: Sequence[PortOfTask]) -> dict[str, str]:
    """The port of a process, if its definition passes one to it at all."""
    return {f"{PORT_VARIABLE}{each.container}": str(each.host) for each in ports if each.is_endpoint}


DEFAULT_STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class LocalContainer:
    """One container of a task, ready to start."""

    name: str
    essential: bool
    program: Program
    log: tuple[str, str] | None  # group and stream; None: the lines are dropped
    bindings: tuple[PortOfTask, ...] = ()
    health: Mapping[str, Any] | None = None  # its healthCheck
    why_lost: Callable[[], str] = str  # why its failure is that of the machine; "" = it is its own
    why_gone: Callable[[], str] = str  # the same for a GPU that has failed, which other tasks should not get


@dataclass(frozen=True, slots=True)
class HostSettings:
    """The settings of every container on one host. `gpu_ids`: all GPUs of the host, in the order of their ordinals.
    `gpus`: the same GPUs as devices of this machine; empty if they are simulated."""

    environment: Mapping[str, str]
    gpu_ids: Sequence[str]
    stop_timeout_s: float | None = None  # replaces stopTimeout; tests and demonstrations are in a hurry
    free_port: Callable[[], int] = free_port
    gpus: Sequence[Gpu] = ()
    daemons: Mapping[str, MpsDaemon] = field(default_factory=dict)  # by id, of those that tasks can share


def container_of(
    definition: Mapping[str, Any], task: Mapping[str, Any], image: Image, around: HostSettings
) -> LocalContainer:
    """One container definition of `task` (as DescribeTasks shows it) on a host. Raises MpsError if the GPU that it
    shares cannot be shared."""
    name = definition["name"]
    override = _named(task.get("overrides", {}).get("containerOverrides", ()), name)
    shown = _named(task.get("containers", ()), name)
    gpu_ids, sharing = shown.get("gpuIds") or (), shown.get("gpuSharingStrategy")
    daemon = around.daemons.get(gpu_ids[0]) if sharing and gpu_ids else None
    start = daemon.start() if daemon else 0
    environment = {
        **around.environment,
        **image.environment,
        **_pairs(definition.get("environment", ())),
        **_pairs(override.get("environment", ())),
        **_gpu_environment(gpu_ids, around),
        **(limits_of(sharing) if sharing else {}),
        **({"CUDA_MPS_PIPE_DIRECTORY": str(daemon.pipes)} if daemon else {}),
    }
    bindings = tuple(bound(definition, around.free_port))
    if not image.reference:
        environment |= {**told_ports(bindings), MARK: uuid.uuid4().hex}
    has_runner = definition.get("entryPoint") == [PROGRAM_ENTRY_POINT]
    if image.reference is None and (has_runner or image.bare):
        environment = program_environment(environment, image.python)
    command = override.get("command") or definition.get("command")
    stop_timeout_s = around.stop_timeout_s
    if stop_timeout_s is None:
        stop_timeout_s = float(definition.get("stopTimeout", DEFAULT_STOP_TIMEOUT_S))
    program = Program(
        arguments=image.arguments(definition.get("entryPoint") or None, command or None),
        environment=environment,
        folder=image.folder,
        memory_mib=_memory_mib(definition, override, task),
        stop_timeout_s=stop_timeout_s,
        has_runner=has_runner,
        bare=image.bare,
        isolation=_isolation(image.reference, definition, override, gpu_ids, around, bindings)
        if image.reference
        else None,
    )
    if daemon and program.isolation:
        program = replace(program, isolation=replace(program.isolation, mps_pipes=daemon.pipes))
    log = _log_of(definition, name, task["taskArn"])
    essential = bool(definition.get("essential", True))
    why_lost = partial(daemon.why_lost, start) if daemon else str
    own = _own_gpus(gpu_ids, around)
    health, broken = definition.get("healthCheck"), partial(why_gone, own)
    return LocalContainer(name, essential, program, log, bindings, health, why_lost, broken)


def _isolation(
    reference: str,
    definition: Mapping[str, Any],
    override: Mapping[str, Any],
    gpu_ids: Sequence[str],
    around: HostSettings,
    bindings: Sequence[PortOfTask],
) -> Isolation:
    linux = definition.get("linuxParameters") or {}
    mounts = linux.get("tmpfs") or ()
    return Isolation(
        image=reference,
        entry_point=next(iter(definition.get("entryPoint") or ()), None),
        cpu_units=int(override.get("cpu") or definition.get("cpu") or 0) or None,
        user=definition.get("user"),
        read_only=bool(definition.get("readonlyRootFilesystem")),
        tmpfs=tuple((mount["containerPath"], int(mount["size"])) for mount in mounts),
        shared_memory_mib=linux.get("sharedMemorySize"),
        gpus=_own_gpus(gpu_ids, around),
        published=tuple((each.host, each.container, each.protocol) for each in bindings if each.is_endpoint),
    )


def _own_gpus(gpu_ids: Sequence[str], around: HostSettings) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in around.gpus if gpu.id in gpu_ids)


def _named(items: Any, name: str) -> Mapping[str, Any]:
    return next((item for item in items if item.get("name") == name), {})


def _pairs(items: Any) -> dict[str, str]:
    return {item["name"]: item["value"] for item in items or ()}


def _gpu_environment(gpu_ids: Sequence[str], around: HostSettings) -> dict[str, str]:
    """The agent names the pinned GPUs. CUDA_VISIBLE_DEVICES stands in for the NVIDIA runtime, which shows a container
    only its own devices; for simulated GPUs it has ordinals."""
    if not gpu_ids:
        return {"CUDA_VISIBLE_DEVICES": ""}
    ordinals = (str(around.gpu_ids.index(gpu_id)) for gpu_id in gpu_ids)
    own = visible(_own_gpus(gpu_ids, around)) or {"CUDA_VISIBLE_DEVICES": ",".join(ordinals)}
    return {"NVIDIA_VISIBLE_DEVICES": ",".join(gpu_ids), **own}


def _memory_mib(definition: Mapping[str, Any], override: Mapping[str, Any], task: Mapping[str, Any]) -> int | None:
    """The hard limit: the container's, else the task's."""
    limit = override.get("memory") or definition.get("memory") or task.get("memory")
    return int(limit) if limit else None


def _log_of(definition: Mapping[str, Any], name: str, task_arn: str) -> tuple[str, str] | None:
    configuration = definition.get("logConfiguration") or {}
    options = configuration.get("options") or {}
    if configuration.get("logDriver") != "awslogs" or "awslogs-group" not in options:
        return None
    task_id = task_arn.rpartition("/")[2]
    prefix = options.get("awslogs-stream-prefix")
    return options["awslogs-group"], f"{prefix}/{name}/{task_id}" if prefix else task_id
