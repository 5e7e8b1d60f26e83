"""Which fields of a task definition or of a spec does local mode not honour?

Of a definition, all that it honours are listed, so that a field that ECS gets in future is reported as well. Of a spec,
`tests/unit/aws/test_local_specs.py` lists every field.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.aws.folder_images import PROCESS
from argosy.model.run_terms import ARM64, X86_64

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
ARCHITECTURES = {"aarch64": ARM64, "arm64": ARM64}  # as kernels name them; of others X86_64


@dataclass(frozen=True)
class LocalNotes:
    """Of a validated spec. describe: a task definition by its name. has_gpus: tasks get GPUs of this machine."""

    describe: Callable[[str], Mapping[str, Any] | None]
    runtime: str
    has_gpus: bool

    def __call__(self, form: Mapping[str, Any]) -> Iterator[str]:
        name, machine = form.get("taskDefinition"), ARCHITECTURES.get(platform.machine(), X86_64)
        yield from note_of(name, self.describe(name), self.runtime) if name else ()
        yield from spec_notes(form, self.runtime, machine, has_gpus=self.has_gpus)


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


def spec_notes(form: Mapping[str, Any], runtime: str, machine: str, *, has_gpus: bool) -> Iterator[str]:
    """Sentences about fields that have another effect on AWS. machine: its architecture, as a spec names it."""
    needs, container = form.get("resources") or {}, form.get("container") or {}
    wanted = needs.get("architecture")
    if wanted not in (None, "any", machine):
        yield f"resources.architecture: local mode runs tasks on the {machine} of this machine, as if it were {wanted}"
    if (needs.get("gpus") or needs.get("gpuShare")) and not has_gpus:
        yield "resources.gpus: local mode simulates GPUs here: tasks get their names, and cannot compute on them"
    elif needs.get("gpuModel"):
        yield "resources.gpuModel: local mode simulates the model: tasks get the GPUs of this machine"
    held, chosen = container.get("hostPorts"), any(each.get("host") for each in container.get("ports") or ())
    if chosen or (held and runtime == PROCESS):
        name = "container.ports" if chosen else "container.hostPorts"
        yield f"{name}: the instances of local mode share this machine's ports, so one task at a time can use each"
    elif held:
        yield "container.hostPorts: local mode reserves them, and does not forward them into containers"


def _set_beside(fields: Mapping[str, Any], honoured: frozenset[str]) -> Iterator[str]:
    return (name for name, value in fields.items() if value and name not in honoured)
