"""The task definitions of the images, from each image's task-definitions.json, by family.

On AWS the examples stack makes them from the same files, so `taskDefinition: tensorflow-4-gpu` means the same here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from argosy.local.containers.images import GPU_SUFFIX, source_of
from argosy.local.containers.runtime import Runtime
from argosy.local.deployment import Names

FILE = "task-definitions.json"
CONTAINER = "main"  # the name that the controller's overrides expect


def definitions(
    images_root: Path, names: Names, stop_timeout_s: int, *, gpu_flavour: bool = False
) -> Iterator[dict[str, Any]]:
    """RegisterTaskDefinition requests. gpu_flavour: those with GPUs name that of their image, as on AWS."""
    for path in sorted(images_root.glob(f"*/{FILE}")):
        for family, described in json.loads(path.read_text(encoding="utf-8")).items():
            image = described["image"]
            flavoured = image + GPU_SUFFIX
            if gpu_flavour and described["gpus"] and source_of(images_root, flavoured):
                image = flavoured
            yield _request(family, {**described, "image": image}, names, stop_timeout_s)


def register(ecs: Any, images: Runtime, names: Names, stop_timeout_s: int) -> None:
    for request in definitions(images.root, names, stop_timeout_s, gpu_flavour=images.has_gpus):
        ecs.register_task_definition(**request)


def _request(family: str, described: Mapping[str, Any], names: Names, stop_timeout_s: int) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": described["image"],
        "cpu": described["cpu"],
        "memory": described["memory"],
        "essential": True,
        "stopTimeout": stop_timeout_s,
        "environment": [{"name": name, "value": value} for name, value in described["environment"].items()],
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": names.log_group,
                "awslogs-region": names.region,
                "awslogs-stream-prefix": "argosy",
            },
        },
    }
    if described["gpus"]:
        container["resourceRequirements"] = [{"type": "GPU", "value": str(described["gpus"])}]
    if "sharedMemory" in described:
        container["linuxParameters"] = {"sharedMemorySize": described["sharedMemory"]}
    return {
        "family": family,
        "networkMode": "bridge",
        "requiresCompatibilities": ["EC2"],
        "containerDefinitions": [container],
    }
