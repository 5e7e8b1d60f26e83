"""An instance's registration: the agent's RegisterContainerInstance, checked."""

from __future__ import annotations

import json
from typing import Any

from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import ContainerInstance, EcsCluster, PhysicalGpu
from argosy.emulator.ecs.resources import RESERVED_PORTS, resource
from argosy.emulator.ecs.tags import checked
from argosy.emulator.operations import Refusal

JSON = dict[str, Any]

# ECS itself sets these for an EC2 instance, whether or not the agent sends them.
_FROM_IDENTITY = {
    "ecs.instance-type": "instanceType",
    "ecs.availability-zone": "availabilityZone",
    "ecs.ami-id": "imageId",
}


def read_registration(ledger: EcsLedger, cluster: EcsCluster, request: JSON) -> ContainerInstance:
    """A new container instance for this registration. Raises Refusal."""
    identity = _identity(request)
    resources = _resources(request.get("totalResources") or [])
    attributes = {each["name"]: each.get("value") for each in request.get("attributes") or ()}
    known = {name: identity[key] for name, key in _FROM_IDENTITY.items() if identity.get(key)}
    attributes = {**known, **attributes}
    memory_of = {
        each["id"]: each.get("gpuInfo", {}).get("memoryInMiB", 0) for each in request.get("platformDevices") or ()
    }
    gpu_ids = resources.get("GPU", {}).get("stringSetValue", ())
    cpu_units, memory_mib = _amount(resources, "CPU"), _amount(resources, "MEMORY")
    return ContainerInstance(
        ordinal=ledger.ordinal(),
        arn=ledger.arn("container-instance", f"{cluster.name}/{ledger.new_id()}"),
        cluster=cluster.name,
        ec2_instance_id=str(identity.get("instanceId") or ""),
        registered=list(resources.values()),
        attributes=attributes,
        version_info=dict(request.get("versionInfo") or {}),
        tags=checked(request.get("tags")),
        registered_at=ledger.now(),
        cpu_units=cpu_units,
        memory_mib=memory_mib,
        gpus={gpu: PhysicalGpu(gpu, memory_of.get(gpu, 0)) for gpu in gpu_ids},
        free_cpu_units=cpu_units,
        free_memory_mib=memory_mib,
        taken_ports=_taken(resources),
        built_in=frozenset(attributes),
    )


def registered_again(instance: ContainerInstance, request: JSON) -> None:
    """The agent has restarted and sends its ARN: it is the same instance. Raises Refusal if its sizes have changed."""
    resources = _resources(request.get("totalResources") or [])
    same = _amount(resources, "CPU") == instance.cpu_units and _amount(resources, "MEMORY") == instance.memory_mib
    gpu_ids = tuple(resources.get("GPU", {}).get("stringSetValue", ()))
    if not same or gpu_ids != tuple(instance.gpus):
        raise Refusal("ClientException", "Container instance type changes are not supported.")
    instance.version_info = dict(request.get("versionInfo") or instance.version_info)


def _identity(request: JSON) -> JSON:
    document = request.get("instanceIdentityDocument")
    if document is None:
        return {}
    try:
        identity = json.loads(document)
    except ValueError:
        identity = None
    if not isinstance(identity, dict):
        raise Refusal("ClientException", "The instance identity document is invalid.")
    return identity


def _resources(total: list[JSON]) -> dict[str, JSON]:
    """By name, in the order given, normalised; the reserved ports when none are named. Raises Refusal."""
    resources: dict[str, JSON] = {}
    for each in total:
        name, kind = str(each.get("name") or ""), str(each.get("type") or "INTEGER")
        if kind == "STRINGSET":
            resources[name] = resource(name, [str(value) for value in each.get("stringSetValue") or ()])
        elif kind == "INTEGER":
            resources[name] = resource(name, int(each.get("integerValue") or 0))
        else:
            raise Refusal("InvalidParameterException", f"Resource {name!r} has the unknown type {kind!r}.")
    if _amount(resources, "CPU") <= 0 or _amount(resources, "MEMORY") <= 0:
        raise Refusal("InvalidParameterException", "Registered resources must contain CPU and MEMORY.")
    resources.setdefault("PORTS", resource("PORTS", [str(port) for port, _ in sorted(RESERVED_PORTS)]))
    resources.setdefault("PORTS_UDP", resource("PORTS_UDP", []))
    return resources


def _amount(resources: dict[str, JSON], name: str) -> int:
    return int(resources.get(name, {}).get("integerValue") or 0)


def _taken(resources: dict[str, JSON]) -> set[tuple[int, str]]:
    named = (("PORTS", "tcp"), ("PORTS_UDP", "udp"))
    return {(int(port), protocol) for name, protocol in named for port in resources[name]["stringSetValue"]}
