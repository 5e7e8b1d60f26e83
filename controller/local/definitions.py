"""Which task definitions come with the images? Those of each image's task-definitions.json, by family.

On AWS the examples stack makes them from the same files, so `taskDefinition: tensorflow-4-gpu` means the same here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from controller.local.deployment import Names

FILE = "task-definitions.json"
CONTAINER = "main"  # the name that the controller's overrides expect


def definitions(images_root: Path, names: Names, stop_timeout_s: int) -> Iterator[dict[str, Any]]:
    """RegisterTaskDefinition requests."""
    for path in sorted(images_root.glob(f"*/{FILE}")):
        for family, described in json.loads(path.read_text(encoding="utf-8")).items():
            yield _request(family, described, names, stop_timeout_s)


def register(ecs: Any, images_root: Path, names: Names, stop_timeout_s: int) -> None:
    for request in definitions(images_root, names, stop_timeout_s):
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
    return {
        "family": family,
        "networkMode": "bridge",
        "requiresCompatibilities": ["EC2"],
        "containerDefinitions": [container],
    }
