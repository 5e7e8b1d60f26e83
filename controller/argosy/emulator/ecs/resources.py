"""A task's resources: its needs, whether they fit, and what remains. The only module that moves resources."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from argosy.emulator.ecs.records import ContainerInstance, EcsTask, PhysicalGpu, TaskDefinition, TaskNeeds
from argosy.emulator.operations import Refusal

JSON = dict[str, Any]

_DOCKER_API = "com.amazonaws.ecs.capability.docker-remote-api."  # every real agent declares some versions of it
RESERVED_PORTS = frozenset((port, "tcp") for port in (22, 2375, 2376, 51678, 51679))  # ssh, docker, the agent's own
MOST_PORTS = 100  # of an instance, those among them (API reference, PortMapping.hostPort)


def needs_of(definition: TaskDefinition, overrides: Mapping[str, Any]) -> TaskNeeds:
    """Task-level cpu and memory if set, otherwise the sum over the containers, where memoryReservation wins over
    memory: the agent's own rule (ToHostResources; aws.md 2.2). Overrides count. Raises Refusal."""
    merged = [{**container, **_override(container["name"], overrides)} for container in definition.containers]
    cpu = overrides.get("cpu") or definition.body.get("cpu")
    memory = overrides.get("memory") or definition.body.get("memory")
    host_mode = definition.body.get("networkMode") == "host"
    return TaskNeeds(
        cpu_units=cpu_units(cpu) if cpu else sum(int(each.get("cpu") or 0) for each in merged),
        memory_mib=memory_mib(memory) if memory else sum(_container_memory_mib(each) for each in merged),
        gpus={each["name"]: count for each in merged if (count := gpu_count(each))},
        shares={each["name"]: gpu_share_mib(share) for each in merged if (share := gpu_sharing(each))},
        ports=frozenset(_host_ports(merged, host_mode)),
        gpu_part=next(filter(None, map(gpu_part, merged)), ""),
    )


def gpu_count(container: Mapping[str, Any]) -> int:
    """How many GPUs a container definition (or override) asks for; a part of one is one. Values were checked at
    registration."""
    requirements: Iterable[Mapping[str, Any]] = container.get("resourceRequirements") or ()
    return sum(math.ceil(float(each.get("value") or 0)) for each in requirements if each["type"] == "GPU")


def gpu_part(container: Mapping[str, Any]) -> str:
    """The part of a GPU that a container definition (or override) asks for; "" = none, or whole ones."""
    requirements: Iterable[Mapping[str, Any]] = container.get("resourceRequirements") or ()
    return next((each["value"] for each in requirements if str(each.get("value", "")).startswith("0.")), "")


def gpu_sharing(container: Mapping[str, Any]) -> JSON | None:
    """The sharing strategy of a container definition (or override)."""
    requirements: Iterable[Mapping[str, Any]] = container.get("resourceRequirements") or ()
    return next((each["sharingStrategy"] for each in requirements if each.get("sharingStrategy")), None)


def gpu_share_mib(sharing: Mapping[str, Any]) -> int:
    """MiB of a GPU."""
    return int(sharing["nvidiaMps"]["memory"])


def cpu_units(text: str) -> int:
    """A task-level cpu: "1024" or "1 vCPU". Raises Refusal."""
    return _size(text, {"": 1, "vcpu": 1024}, "cpu")


def memory_mib(text: str) -> int:
    """A task-level memory: "2048" or "2 GB". Raises Refusal."""
    return _size(text, {"": 1, "gb": 1024}, "memory")


def shortfall(instance: ContainerInstance, needs: TaskNeeds, required: Iterable[str]) -> str | None:
    """The first reason why ECS refuses to put such a task there, in AWS's words; None when it fits.

    `required` are names of attributes. An instance that declares no Docker API is not described in full (an emulated
    agent) and is taken to be capable of everything.
    """
    if not instance.agent_connected:
        return "AGENT"
    if needs.cpu_units > instance.free_cpu_units:
        return "RESOURCE:CPU"
    if needs.memory_mib > instance.free_memory_mib:
        return "RESOURCE:MEMORY"
    if needs.ports & instance.taken_ports or len(needs.ports | instance.taken_ports) > MOST_PORTS:
        return "RESOURCE:PORTS"
    if needs.shares and not instance.shares_gpus:
        return "ATTRIBUTE"
    if needs.gpus and instance.gpu_part != needs.gpu_part:
        return "RESOURCE:GPU"
    if needs.gpu_count > len(instance.free_gpu_ids) or (needs.shares and not _with_room(instance, needs)):
        return "RESOURCE:GPU"
    declares = any(name.startswith(_DOCKER_API) for name in instance.attributes)
    missing = [name for name in required if name not in instance.attributes]
    return "ATTRIBUTE" if declares and missing else None


def _with_room(instance: ContainerInstance, needs: TaskNeeds) -> list[PhysicalGpu]:
    """The GPUs that all the task's sharing containers fit on together."""
    return [gpu for gpu in instance.gpus.values() if sum(needs.shares.values()) <= gpu.free_mib]


def fullest(gpus: Sequence[PhysicalGpu]) -> PhysicalGpu:
    """The one with the least free memory: a GPU that is shared before an idle one, the first of equals."""
    return min(gpus, key=lambda gpu: gpu.free_mib)


def take(
    instance: ContainerInstance, needs: TaskNeeds, pick: Callable[[Sequence[PhysicalGpu]], PhysicalGpu]
) -> dict[str, list[str]]:
    """Take a task's needs from its instance; which GPUs each container got. The caller has checked `shortfall`. pick:
    which of several GPUs that its sharing containers fit on they get."""
    instance.free_cpu_units -= needs.cpu_units
    instance.free_memory_mib -= needs.memory_mib
    instance.taken_ports |= needs.ports
    pinned: dict[str, list[str]] = {}
    for name, count in needs.gpus.items():
        pinned[name] = instance.free_gpu_ids[:count]
        for gpu in pinned[name]:
            instance.gpus[gpu].containers = 1
    if needs.shares:
        chosen = pick(_with_room(instance, needs))
        chosen.is_shared = True
        chosen.containers += len(needs.shares)
        chosen.shared_mib += sum(needs.shares.values())
        pinned |= {name: [chosen.id] for name in needs.shares}
    return pinned


def give_back(task: EcsTask) -> None:
    """Once, when the task is STOPPED: a GPU id is then never in two tasks that are not stopped. Under the readings in
    `changes.gives_room_back_early` when its *desired* status is STOPPED; the agent then holds the successor PENDING."""
    if task.gave_back:
        return
    task.gave_back, instance = True, task.instance
    instance.free_cpu_units += task.needs.cpu_units
    instance.free_memory_mib += task.needs.memory_mib
    instance.taken_ports -= task.needs.ports
    for container in task.containers:
        for gpu in (instance.gpus[each] for each in container.gpu_ids):
            gpu.containers -= 1
            gpu.shared_mib -= gpu_share_mib(container.gpu_sharing) if container.gpu_sharing else 0
            gpu.is_shared = gpu.is_shared and gpu.containers > 0


def admitted(instance: ContainerInstance) -> list[EcsTask]:
    """The first tasks in an agent's queue that fit beside those that it has: none behind one that does not fit."""
    found: list[EcsTask] = []
    there = [task for task in instance.tasks.values() if task.handed_over]
    for task in instance.to_start.values():
        if not _fits_beside(instance, task, [*there, *found]):
            break
        found.append(task)
    return found


def _fits_beside(instance: ContainerInstance, task: EcsTask, others: list[EcsTask]) -> bool:
    every = [task, *others]
    containers = [container for each in every for container in each.containers]
    gpus = [gpu for container in containers for gpu in container.gpu_ids if not container.gpu_sharing]
    shared = Counter[str]()
    for container in containers:
        if container.gpu_sharing:
            shared[container.gpu_ids[0]] += gpu_share_mib(container.gpu_sharing)
    ports = frozenset[tuple[int, str]]().union(*(each.needs.ports for each in others))
    return (
        sum(each.needs.cpu_units for each in every) <= instance.cpu_units
        and sum(each.needs.memory_mib for each in every) <= instance.memory_mib
        and len(gpus) == len(set(gpus) - shared.keys())
        and all(mib <= instance.gpus[gpu].total_mib for gpu, mib in shared.items())
        and not ports & task.needs.ports
    )


def remaining(instance: ContainerInstance) -> list[JSON]:
    """remainingResources. PORTS list what is *in use*; GPU lists the free ids (the common reading; aws.md 7.2)."""
    values: dict[str, Any] = {
        "CPU": instance.free_cpu_units,
        "MEMORY": instance.free_memory_mib,
        "PORTS": [str(port) for port, protocol in sorted(instance.taken_ports) if protocol == "tcp"],
        "PORTS_UDP": [str(port) for port, protocol in sorted(instance.taken_ports) if protocol == "udp"],
        "GPU": list(instance.free_gpu_ids),
    }
    return [
        resource(each["name"], values[each["name"]]) if each["name"] in values else dict(each)
        for each in instance.registered
    ]


def resource(name: str, value: int | list[str]) -> JSON:
    """One Resource, all its value fields set as ECS sets them."""
    empty: JSON = {"name": name, "doubleValue": 0.0, "longValue": 0, "integerValue": 0}
    if isinstance(value, int):
        return {**empty, "type": "INTEGER", "integerValue": value}
    return {**empty, "type": "STRINGSET", "stringSetValue": list(value)}


def _override(name: str, overrides: Mapping[str, Any]) -> JSON:
    for each in overrides.get("containerOverrides") or ():
        if each.get("name") == name:
            return {key: value for key, value in each.items() if key != "environment"}
    return {}


def _container_memory_mib(container: Mapping[str, Any]) -> int:
    return int(container.get("memoryReservation") or container.get("memory") or 0)


def _host_ports(containers: Iterable[Mapping[str, Any]], host_mode: bool) -> Iterable[tuple[int, str]]:
    for container in containers:
        for mapping in container.get("portMappings") or ():
            port = mapping.get("hostPort") or (mapping.get("containerPort") if host_mode else 0)
            if port:
                yield int(port), str(mapping.get("protocol") or "tcp")


def _size(text: str, units: Mapping[str, int], what: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(text))
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise Refusal("ClientException", f"Invalid '{what}' setting for task.")
    return int(float(match[1]) * factor)
