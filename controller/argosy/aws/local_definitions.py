"""Which fields of a task definition does local mode ignore?

All that it honours are listed, so that a field that ECS gets in future is reported as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.aws.folder_images import PROCESS

_HONOURED_OF_TASK = "family containerDefinitions cpu memory networkMode placementConstraints runtimePlatform"
_MADE_BY_ECS = (  # or only looked at when it registers or places
    "taskDefinitionArn revision status requiresAttributes compatibilities requiresCompatibilities registeredAt"
    " deregisteredAt registeredBy tags deleteRequestedAt"
)
_HONOURED_OF_CONTAINER = (
    "name image cpu memory memoryReservation essential entryPoint command environment portMappings logConfiguration"
    " stopTimeout healthCheck resourceRequirements linuxParameters"
)
TASK, CONTAINER = frozenset(f"{_HONOURED_OF_TASK} {_MADE_BY_ECS}".split()), frozenset(_HONOURED_OF_CONTAINER.split())
LINUX = frozenset({"initProcessEnabled", "sharedMemorySize"})  # processes have the machine's /dev/shm
BY_ENGINE = frozenset({"user", "readonlyRootFilesystem"})  # besides, where containers run in an engine
LINUX_BY_ENGINE = frozenset({"tmpfs"})
LOG_OPTIONS = frozenset({"awslogs-group", "awslogs-region", "awslogs-stream-prefix"})
NETWORKS = ("bridge", "default")


def ignored(definition: Mapping[str, Any], runtime: str) -> Iterator[str]:
    """Fields, such as `secrets of main`, that have a value without effect. runtime: process, podman or docker."""
    yield from _set_beside(definition, TASK)
    if definition.get("networkMode", NETWORKS[0]) not in NETWORKS:
        yield f"networkMode {definition['networkMode']}"
    engine = frozenset() if runtime == PROCESS else BY_ENGINE
    linux_engine = frozenset() if runtime == PROCESS else LINUX_BY_ENGINE
    for container in definition.get("containerDefinitions") or ():
        log, linux = container.get("logConfiguration") or {}, container.get("linuxParameters") or {}
        found = [*_set_beside(container, CONTAINER | engine)]
        found += [f"linuxParameters.{each}" for each in _set_beside(linux, LINUX | linux_engine)]
        if log and log.get("logDriver") != "awslogs":
            found.append(f"logDriver {log.get('logDriver')}")
        else:
            found += [f"logConfiguration.{each}" for each in _set_beside(log.get("options") or {}, LOG_OPTIONS)]
            found += ["logConfiguration.secretOptions"] if log.get("secretOptions") else []
        yield from (f"{each} of {container.get('name')}" for each in found)


def note_of(name: str, definition: Mapping[str, Any] | None, runtime: str) -> list[str]:
    """A sentence about all that is ignored, or none."""
    found = list(ignored(definition or {}, runtime))
    if not found:
        return []
    says = f"local mode ignores these fields of the task definition {name}, which have an effect on AWS"
    return [f"{says}: {', '.join(found)}"]


def _set_beside(fields: Mapping[str, Any], honoured: frozenset[str]) -> Iterator[str]:
    return (name for name, value in fields.items() if value and name not in honoured)
