"""Would ECS register this task definition? Limits, defaults and the attributes it will require of an instance."""

from __future__ import annotations

import json
import re
from typing import Any

from argosy.emulator.ecs.container_health import check_health
from argosy.emulator.ecs.records import GPU_SHARING
from argosy.emulator.ecs.resources import cpu_units, gpu_count, gpu_sharing, memory_mib
from argosy.emulator.operations import Refusal

JSON = dict[str, Any]

MAX_BYTES = 64 * 1024
MAX_CONTAINERS = 10
MAX_CONSTRAINTS = 10
_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
_GPUS = re.compile(r"[1-9][0-9]{0,2}|0\.(125|25|5)")


def checked_body(request: JSON) -> JSON:
    """The answer of DescribeTaskDefinition for this registration. Raises Refusal."""
    _check_name(request["family"], "family")
    size = len(json.dumps(request, separators=(",", ":"), default=str))
    if size > MAX_BYTES:
        raise Refusal("ClientException", f"Actual length: '{size}'. Max allowed length is '{MAX_BYTES}' bytes.")
    containers = _checked_containers(request)
    body = {key: value for key, value in request.items() if key not in ("family", "tags")}
    if request.get("cpu"):
        cpu_units(request["cpu"])
    for constraint in request.get("placementConstraints") or ():
        _check_constraint(constraint)
    return {
        "volumes": [],
        "placementConstraints": [],
        **body,
        "containerDefinitions": [_with_defaults(each) for each in containers],
        "compatibilities": ["EC2"] if any(map(gpu_sharing, containers)) else ["EXTERNAL", "EC2"],
        "requiresAttributes": [{"name": name} for name in _required_attributes(request)],
    }


def _checked_containers(request: JSON) -> list[JSON]:
    containers: list[JSON] = request["containerDefinitions"]
    if not 1 <= len(containers) <= MAX_CONTAINERS:
        raise Refusal("ClientException", f"A task definition must have 1 to {MAX_CONTAINERS} container definitions.")
    if not any(each.get("essential", True) for each in containers):
        raise Refusal("ClientException", "Invalid 'containerDefinitions' setting: at least one must be essential.")
    task_memory = memory_mib(request["memory"]) if request.get("memory") else None
    names = [str(each.get("name") or "") for each in containers]
    if len(set(names)) < len(names):
        raise Refusal("ClientException", "Container names must be unique within a task definition.")
    for each in containers:
        _check_container(each, task_memory)
    if any(map(gpu_sharing, containers)) and any(map(gpu_count, containers)):
        raise Refusal("ClientException", "All containers in a task that request GPUs must use the same option.")
    return containers


def _check_container(container: JSON, task_memory: int | None) -> None:
    name = str(container.get("name") or "")
    _check_name(name, "name")
    if not container.get("image"):
        raise Refusal("ClientException", "Container.image should not be null or empty.")
    hard, soft = container.get("memory"), container.get("memoryReservation")
    if hard is None and soft is None and task_memory is None:
        raise Refusal(
            "ClientException",
            f"Invalid setting for container '{name}'. "
            "At least one of 'memory' or 'memoryReservation' must be specified.",
        )
    if hard is not None and hard < 6:
        raise Refusal("ClientException", f"Invalid setting for container '{name}'. 'memory' must be at least 6 MiB.")
    if hard is not None and soft is not None and soft > hard:
        raise Refusal(
            "ClientException", f"Invalid setting for container '{name}'. 'memoryReservation' must not exceed 'memory'."
        )
    check_gpus(container)
    check_health(container)


def check_gpus(container: JSON) -> None:
    """Whole GPUs, a part of one, or a share of one by nvidiaMps: "ALL" is beyond this model (aws.md 7.1). Raises
    Refusal."""
    for each in container.get("resourceRequirements") or ():
        value, sharing = each.get("value"), each.get("sharingStrategy")
        if sharing is not None and (value is not None or each["type"] != "GPU"):
            raise Refusal("ClientException", "Specify either value or sharingStrategy for a resource requirement.")
        if each["type"] == "GPU" and sharing is None and not _GPUS.fullmatch(value or ""):
            raise Refusal("ClientException", f"GPU resource requirement {value!r} must be a positive integer.")


def _check_constraint(constraint: JSON) -> None:
    if constraint.get("type") != "memberOf" or not constraint.get("expression"):
        raise Refusal(
            "ClientException", "Placement constraints of a task definition must be memberOf with an expression."
        )


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise Refusal(
            "ClientException",
            f"Invalid '{what}': only letters, numbers, hyphens and underscores, at most 255, are allowed.",
        )


def _with_defaults(container: JSON) -> JSON:
    """ECS fills these in when they are not given."""
    lists: JSON = {"portMappings": [], "environment": [], "mountPoints": [], "volumesFrom": [], "systemControls": []}
    return {"cpu": 0, "essential": True, **lists, **container}


def _required_attributes(request: JSON) -> list[str]:
    """The capabilities that matter here; real ECS lists many more."""
    containers = request["containerDefinitions"]
    drivers = {(each.get("logConfiguration") or {}).get("logDriver") for each in containers} - {None}
    names = {f"com.amazonaws.ecs.capability.logging-driver.{driver}" for driver in drivers}
    if any(map(gpu_sharing, containers)):
        names.add(GPU_SHARING)
    if request.get("taskRoleArn"):
        names.add("com.amazonaws.ecs.capability.task-iam-role")
    if request.get("executionRoleArn") and "awslogs" in drivers:
        names.add("ecs.capability.execution-role-awslogs")
    return sorted(names)
