"""Is this RunTask or StartTask well-formed? Everything AWS refuses before it searches for a place."""

from __future__ import annotations

import json
import re
from typing import Any

from argosy.emulator.ecs.definition_checks import check_gpus
from argosy.emulator.ecs.definitions import find_definition
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import TaskDefinition
from argosy.emulator.ecs.resources import gpu_count, gpu_sharing
from argosy.emulator.operations import Refusal

JSON = dict[str, Any]

MAX_COUNT = 10
MAX_OVERRIDES_CHARS = 8_192  # JSON punctuation included [model]
MAX_GROUP_CHARS = 255
RUN_STARTED_BY_CHARS = 128
START_STARTED_BY_CHARS = 36  # the model contradicts itself; each operation gets its own documented limit (aws.md 2.1)
_TOKEN = re.compile(r"[!-~]{1,64}")  # ASCII 33-126


def checked_count(request: JSON) -> int:
    """1..10. Raises Refusal."""
    count = int(request.get("count") or (1 if request.get("count") is None else 0))
    if not 1 <= count <= MAX_COUNT:
        raise Refusal("InvalidParameterException", f"Count must be between 1 and {MAX_COUNT}.")
    return count


def checked_definition(ledger: EcsLedger, request: JSON) -> TaskDefinition:
    """The ACTIVE definition the request names. Raises Refusal."""
    definition = find_definition(ledger, request["taskDefinition"])
    if definition is None:
        raise Refusal("InvalidParameterException", "TaskDefinition not found.")
    if definition.status != "ACTIVE":
        raise Refusal("InvalidParameterException", "TaskDefinition is inactive")
    return definition


def check_request(request: JSON, definition: TaskDefinition, started_by_chars: int) -> None:
    """The shared part of both operations. Raises Refusal."""
    started_by = request.get("startedBy")
    if started_by is not None and not re.fullmatch(rf"[A-Za-z0-9_/-]{{0,{started_by_chars}}}", started_by):
        raise Refusal(
            "InvalidParameterException",
            f"startedBy must have at most {started_by_chars} letters, numbers, hyphens, slashes and underscores.",
        )
    group = request.get("group")
    if group is not None and (len(group) > MAX_GROUP_CHARS or group.startswith("service:")):
        raise Refusal("InvalidParameterException", f"Invalid group {group[:60]!r}.")
    if request.get("enableExecuteCommand") and not definition.body.get("taskRoleArn"):
        why = "The task couldn't be run because a valid taskRoleArn is not being used."
        raise Refusal("InvalidParameterException", why)
    if request.get("referenceId"):
        raise Refusal("InvalidParameterException", "The reference id is reserved for AWS use.")
    awsvpc = definition.body.get("networkMode") == "awsvpc"
    if awsvpc and not request.get("networkConfiguration"):
        raise Refusal(
            "InvalidParameterException",
            "Network Configuration must be provided when networkMode 'awsvpc' is specified.",
        )
    if request.get("networkConfiguration") and not awsvpc:
        raise Refusal(
            "InvalidParameterException",
            "Network Configuration is not valid for the given networkMode of this task definition.",
        )
    _check_overrides(request.get("overrides") or {}, definition)


def check_placement_mode(request: JSON) -> None:
    """EC2 only: Fargate and capacity providers are beyond this model. Raises Refusal."""
    if request.get("capacityProviderStrategy"):
        message = "The specified capacity provider was not found."
        if request.get("launchType"):
            message = "Specifying both a launch type and capacity provider strategy is not supported."
        raise Refusal("InvalidParameterException", message)
    if (request.get("launchType") or "EC2") != "EC2":
        raise Refusal("InvalidParameterException", f"Launch type {request['launchType']} is not available here.")


def checked_token(request: JSON) -> str | None:
    """The clientToken. Raises Refusal."""
    token: str | None = request.get("clientToken")
    if token is not None and not _TOKEN.fullmatch(token):
        raise Refusal("InvalidParameterException", "clientToken must have 1 to 64 characters in the range 33-126.")
    return token


def fingerprint(request: JSON) -> JSON:
    """Equal for requests that count as the same under a client token."""
    return {key: value for key, value in request.items() if key != "clientToken"}


def _check_overrides(overrides: JSON, definition: TaskDefinition) -> None:
    if len(json.dumps(overrides, separators=(",", ":"), ensure_ascii=False)) > MAX_OVERRIDES_CHARS:
        raise Refusal("InvalidParameterException", f"Container Overrides length must be at most {MAX_OVERRIDES_CHARS}")
    containers = {each["name"]: each for each in definition.containers}
    for override in overrides.get("containerOverrides") or ():
        name = override.get("name")
        if name not in containers:
            raise Refusal(
                "InvalidParameterException",
                f"Override for container named {name} is not a container in the TaskDefinition.",
            )
        check_gpus(override)
        # Whether an override may add a GPU need is not documented (aws.md 2.2): fail closed.
        if (gpu_count(override) and not gpu_count(containers[name])) or gpu_sharing(override):
            raise Refusal("InvalidParameterException", f"Container {name} has no GPU requirement to override.")
