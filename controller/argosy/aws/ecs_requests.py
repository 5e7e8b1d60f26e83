"""Requests to ECS, as pure functions of the stored intent and the run's spec (DESIGN D4).

The same intent gives the same request, byte for byte, whichever controller sends it and however often. That, and the
token derived from it, makes it safe to send it again.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from argosy.aws.cell import AwsDeployment
from argosy.catalogue.lookup import SHARED_MEMORY_DIVISOR
from argosy.gangs import rendezvous
from argosy.layout import LOG_PREFIX
from argosy.model.actions import Launch
from argosy.model.attempts import LAUNCH_VARIABLE, AttemptKey
from argosy.model.program_versions import FIRST_ATTEMPT_VARIABLE
from argosy.model.resources import Resources
from argosy.model.run_terms import ARM64, PROGRAM_ENTRY_POINT, RESERVED_PORTS, X86_64, HealthTerms, Port
from argosy.model.runs import Run
from argosy.model.services.ports import PORT_VARIABLE, TCP
from argosy.spec.definitions import ways_to_the_host
from argosy.spec.shards import task_overrides

RUN_TAG, STAGE_TAG = "argosy:run", "argosy:stage"
STOP_REASON_LIMIT = 255  # characters that ECS keeps


def client_token(key: AttemptKey) -> str:
    """The idempotency token of a launch: 43 of the 64 characters that ECS allows."""
    digest = hashlib.sha256("|".join(map(str, key)).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def run_task_request(launch: Launch, run: Run, item: Any, task_definition: str, *, stage: str) -> dict[str, Any]:
    """RunTask for one attempt, pinned to its instance, for any cluster that has the instance.

    item: the task's item of an `itemsFrom` array, else None. task_definition: an ARN. Raises KeyError when the item
    lacks what the spec uses.
    """
    key = launch.key
    overrides = task_overrides(run.spec_of(key.index), run.output, key, item, run.task_count)
    environment = [*overrides["environment"], {"name": LAUNCH_VARIABLE, "value": str(key.launch)}]
    if first := int(run.tasks["first"][key.index]):
        environment.append({"name": FIRST_ATTEMPT_VARIABLE, "value": str(first)})
    environment += _rendezvous(run, key)
    override = {"name": run.container, "environment": environment}
    if overrides["command"] is not None:
        override["command"] = overrides["command"]
    tags = {**dict(run.terms.tags), RUN_TAG: run.id, STAGE_TAG: stage}
    request = {
        "taskDefinition": task_definition,
        "count": 1,
        "launchType": "EC2",
        "clientToken": client_token(key),
        "startedBy": launch.started_by,
        "group": run.group,
        "placementConstraints": [{"type": "memberOf", "expression": f"ec2InstanceId == {launch.instance_id}"}],
        "overrides": {"containerOverrides": [override]},
        "enableECSManagedTags": True,
        "tags": [{"key": name, "value": value} for name, value in sorted(tags.items())],
    }
    return {**request, "enableExecuteCommand": True} if run.takes_exec else request


def _rendezvous(run: Run, key: AttemptKey) -> list[dict[str, str]]:
    """How a member finds the others of its gang. Raises KeyError if the gang has ended."""
    if run.terms.gang is None:
        return []
    number, rank = divmod(key.index, run.gang_size)
    told = rendezvous.environment(run.gangs[number], (number, rank), run.terms.gang, run.needs.gpus)
    if run.spec.get("compat") == "aws-batch":
        told |= rendezvous.of_aws_batch(told)
    return [{"name": name, "value": value} for name, value in sorted(told.items())]


def definition_content(run: Run, region: str, deployment: AwsDeployment) -> dict[str, Any]:
    """The task definition of a spec's own container, without its family.

    The user's environment is not in it but in every task's overrides (`shards.task_overrides`): so runs of one image
    and size share a definition, and definitions may be registered only once a second (aws.md 3.1).
    """
    linux: dict[str, Any] = {"initProcessEnabled": True}  # reaps children and forwards SIGTERM
    container: dict[str, Any] = {
        "name": run.container,
        "image": run.image,
        "cpu": run.needs.cpu_units,
        "memory": run.needs.memory_mib,
        "essential": True,
        "privileged": False,
        "stopTimeout": deployment.stop_timeout_s,
        "linuxParameters": linux,
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": deployment.log_group,
                "awslogs-region": region,
                "awslogs-stream-prefix": LOG_PREFIX,
            },
        },
    }
    environment: dict[str, str] = {}
    if run.terms.needs_runner:
        container["entryPoint"] = [PROGRAM_ENTRY_POINT]
        environment["AWS_REGION"] = region  # else the runner asks us-east-1's S3: agents before 1.104 set no Region
    mappings = _port_mappings(run)
    if mappings:
        container["portMappings"] = mappings
    environment |= {f"{PORT_VARIABLE}{port.container}": str(port.container) for port in run.terms.ports}
    if run.terms.health is not None:
        container["healthCheck"] = _health_check(run.terms.health)
    if run.needs.gpus or run.terms.gpu_share_mib:
        linux["sharedMemorySize"] = run.needs.memory_mib // SHARED_MEMORY_DIVISOR
        container["resourceRequirements"] = [{"type": "GPU", **_gpu_option(run)}]
        # Images that are not made from nvidia/cuda get no driver without it (aws.md 7.1).
        environment["NVIDIA_DRIVER_CAPABILITIES"] = "utility,compute"
    if environment:
        container["environment"] = [{"name": name, "value": text} for name, text in sorted(environment.items())]
    platform = {"runtimePlatform": {"cpuArchitecture": "ARM64", "operatingSystemFamily": "LINUX"}}
    return {
        **(platform if run.architecture == ARM64 else {}),
        # The programs of a gang choose ports themselves, which a bridge could not lead to.
        "networkMode": "host" if run.terms.gang is not None else "bridge",
        "requiresCompatibilities": ["EC2"],
        "executionRoleArn": deployment.execution_role_arn,
        "taskRoleArn": deployment.task_role_arn,
        "containerDefinitions": [container],
    }


def _gpu_option(run: Run) -> dict[str, Any]:
    if not run.terms.gpu_share_mib:
        return {"value": run.terms.gpu_part or str(run.needs.gpus)}
    limit = {"maxComputePercent": run.terms.gpu_compute_percent} if run.terms.gpu_compute_percent else {}
    return {"sharingStrategy": {"nvidiaMps": {"memory": run.terms.gpu_share_mib, **limit}}}


def _health_check(health: HealthTerms) -> dict[str, Any]:
    return {
        "command": list(health.command),
        "interval": health.interval_s,
        "timeout": health.timeout_s,
        "retries": health.retries,
        "startPeriod": health.start_s,
    }


def _port_mappings(run: Run) -> list[dict[str, Any]]:
    """Host port 0: the agent chooses a free one."""
    ports = [{"containerPort": each.container, "hostPort": each.host, "protocol": TCP} for each in run.terms.ports]
    pinned = {(each.host, TCP) for each in run.terms.ports}
    held = [port for port in run.host_ports if port not in pinned]
    return ports + [{"containerPort": port, "hostPort": port, "protocol": protocol} for port, protocol in held]


class UnusableDefinition(ValueError):
    """A user's task definition that Argosy cannot run; the message is a sentence."""


def needs_of_definition(definition: dict[str, Any]) -> Resources:
    """The resources that ECS reserves on an instance for one task: task-level cpu and memory if set, otherwise the sum
    over the containers, in which `memoryReservation` wins over `memory` (aws.md 2.2). Raises UnusableDefinition."""
    containers = definition.get("containerDefinitions") or []
    cpu = int(definition.get("cpu") or sum(int(each.get("cpu") or 0) for each in containers))
    memory = int(
        definition.get("memory")
        or sum(int(each.get("memoryReservation") or each.get("memory") or 0) for each in containers)
    )
    return Resources(cpu, memory, sum(_gpus(each) for each in containers))


def takes_exec(definition: Mapping[str, Any], container: str) -> bool:
    """Whether ECS Exec can work in a task of a user's definition. RunTask refuses it without a task role, and its agent
    needs a root file system that it can write to:
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-exec.html"""
    [own] = [each for each in definition["containerDefinitions"] if each["name"] == container]
    return bool(definition.get("taskRoleArn")) and not own.get("readonlyRootFilesystem")


def architecture_of_definition(definition: dict[str, Any]) -> str:
    """As ECS's agent names it; ECS's default is x86."""
    said = (definition.get("runtimePlatform") or {}).get("cpuArchitecture")
    return ARM64 if said == "ARM64" else X86_64


def ports_of_definition(definition: dict[str, Any]) -> tuple[Port, ...]:
    """The host ports that one task holds, without those that the agent chooses. Raises UnusableDefinition for a port
    that no task can have."""
    mappings = [
        each for container in definition["containerDefinitions"] for each in container.get("portMappings") or ()
    ]
    held = {
        (int(number), str(mapping.get("protocol") or "tcp"))
        for mapping in mappings
        if (number := mapping.get("hostPort"))
    }
    for number, protocol in sorted(held):
        if number in RESERVED_PORTS:
            name = f"{definition.get('family')}:{definition.get('revision')}"
            raise UnusableDefinition(
                f"task definition {name} asks for host port {number}/{protocol}, which ECS's agent reserves"
            )
    return tuple(sorted(held))


def usable_container(definition: dict[str, Any]) -> str:
    """The name of the container that gets the overrides: the first essential one. Raises UnusableDefinition.

    The revision is pinned from here on, so this check of its access to the host is the one that counts.
    """
    name = f"{definition.get('family')}:{definition.get('revision')}"
    if definition.get("status", "ACTIVE") != "ACTIVE":
        raise UnusableDefinition(f"task definition {name} is {definition['status']}: name an active revision")
    if definition.get("networkMode") == "awsvpc":
        raise UnusableDefinition(f"task definition {name} uses network mode awsvpc: Argosy supports bridge and none")
    if definition.get("requiresCompatibilities") and "EC2" not in definition["requiresCompatibilities"]:
        raise UnusableDefinition(f"task definition {name} is not compatible with EC2")
    for way in ways_to_the_host(definition):
        raise UnusableDefinition(f"task definition {name} {way}")
    for container in definition.get("containerDefinitions") or ():
        if container.get("essential", True):
            return str(container["name"])
    raise UnusableDefinition(f"task definition {name} has no essential container")


def _gpus(container: dict[str, Any]) -> int:
    gpus = 0
    for need in container.get("resourceRequirements") or ():
        if need.get("sharingStrategy"):
            raise UnusableDefinition(
                f"container {container['name']} shares a GPU: name its image and resources.gpuShare"
            )
        if need.get("type") == "GPU":
            if not str(need.get("value", "")).isdecimal():
                raise UnusableDefinition(
                    f"container {container['name']} asks for GPU {need.get('value')!r}: give a whole number"
                )
            gpus += int(need["value"])
    return gpus
