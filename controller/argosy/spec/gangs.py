"""Gangs in a spec: groups of tasks that run together, each on its own instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field

from argosy.gangs.rendezvous import NAMES, TORCHRUN
from argosy.spec.faults import Fault
from argosy.spec.fields import TASK_LIMIT, Strict

SMALLEST, LARGEST = 2, 64
START_S = 600

_ONE_EACH = "each member of a gang has its own instance"
_PARTLY = "it could stop or start a part of a gang"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "container.hostPorts": "members share their instance's network: listen on any port",
        "resources.gpuShare": "a member has whole GPUs, or none",
        "placement.strategy": "a gang goes to the instances of one zone that have most room",
        "placement.softConstraints": "a gang goes to the instances of one zone that have most room",
        "placement.maxTasksPerInstance": _ONE_EACH,
        "placement.affinity": _ONE_EACH,
        "placement.antiAffinity": _ONE_EACH,
        "capacity.deadline": _PARTLY,
        "capacity.fallback": _PARTLY,
        "capacity.budgetUsd": _PARTLY,
        "capacity.onCap": _PARTLY,
        "capacity.maxHourlyCost": _PARTLY,
        "preemptible": _PARTLY,
    }
)
"""By path, the fields that cannot stand with a gang, and why."""


class GangSpec(Strict):
    """Tasks that start, run and restart together, each on its own instance of one zone."""

    size: int = Field(ge=SMALLEST, le=LARGEST, description="Members of a gang. The array counts gangs.")
    processes: Literal["one", "gpu"] = Field(
        default="one",
        description="Processes of a member, for torchrun and RANK: one, or one for each of its GPUs. Default one.",
    )
    start_within_seconds: int = Field(
        default=START_S,
        ge=60,
        le=3600,
        description="If not all members run after this time, all are stopped and started again. Default 600.",
    )


def gang_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """The fields that cannot stand with a gang, and sizes that do not fit."""
    gang = data["gang"]
    for path, why in REFUSED.items():
        if _value(data, path) is not None:
            yield Fault(path, f"cannot be combined with gang: {why}")
    if _value(data, "capacity.purchase") == "spot-then-on-demand":
        yield Fault("capacity.purchase", "cannot be combined with gang: choose spot or on-demand")
    given = _value(data, "container.environment")
    names = (
        given if isinstance(given, Mapping) else [each.get("name") for each in given or () if isinstance(each, Mapping)]
    )
    for name in names:
        if name in NAMES or str(name).startswith(TORCHRUN):
            yield Fault("container.environment", f"has {name}, which each member of a gang gets with its own value")
    for number, each in enumerate(data.get("dependsOn") or ()):
        if isinstance(each, Mapping) and each.get("type") == "N_TO_N":
            yield Fault(f"dependsOn[{number}].type", "cannot be N_TO_N with gang: a gang waits for a run as a whole")
    if isinstance(gang, Mapping) and isinstance(gang.get("size"), int):
        yield from _size_faults(data, gang)


def _size_faults(data: Mapping[str, Any], gang: Mapping[str, Any]) -> Iterator[Fault]:
    size, gpus = gang["size"], _value(data, "resources.gpus")
    for path in ("capacity.maxInstances", "placement.maxConcurrentTasks"):
        most = _value(data, path)
        if isinstance(most, int) and most < size:
            yield Fault(path, f"is {most}, and a gang has {size} members: it must be at least {size}")
    if isinstance(gpus, float) and gpus != int(gpus):
        yield Fault("resources.gpus", "cannot be a part of a GPU with gang: a member has whole GPUs, or none")
    if gang.get("processes") == "gpu" and not gpus:
        yield Fault("gang.processes", "is gpu, but resources.gpus asks for none")
    gangs = _value(data, "array.size")
    items = _value(data, "array.items")
    gangs = len(items) if isinstance(items, list) else gangs
    if isinstance(gangs, int) and gangs * size > TASK_LIMIT:
        yield Fault("gang.size", f"gives {gangs * size} tasks with {gangs} gangs; the limit is {TASK_LIMIT}")


def _value(data: Mapping[str, Any], path: str) -> Any:
    part: Any = data
    for name in path.split("."):
        part = part.get(name) if isinstance(part, Mapping) else None
    return part
