"""Does any instance type of the deployment hold one task? If not, the faults say what the types have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from argosy.catalogue.lookup import load_catalogue
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources, said_vcpus
from argosy.model.run_terms import X86_64
from argosy.spec.faults import Fault, shown
from argosy.spec.fields import ALL_GPUS
from argosy.spec.models import ResourcesSpec

NO_DISKS: Mapping[str, int] = MappingProxyType({})


def shape_faults(
    resources: Any, shapes: Mapping[str, Resources], disks_gib: Mapping[str, int] = NO_DISKS
) -> Iterator[Fault]:
    """Whether a task fits on an empty instance of any type; if not, what the largest type has."""
    try:
        needs = _needs(resources or {})
        shapes, faults = _for_image(resources or {}, shapes)
        shapes, more = _with_gpus(resources or {}, shapes)
        shapes, no_share = _with_share(resources or {}, shapes)
        shapes, no_disk = _with_disk(resources or {}, shapes, disks_gib)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return  # reported as a fault of the field
    yield from (*faults, *more, *no_share, *no_disk)
    if not shapes:
        return
    too_much = [axis for axis in Resources._fields if getattr(needs, axis) > _most(shapes, axis)[0]]
    for axis in too_much:
        most, name = _most(shapes, axis)
        largest = f"the largest instance type of this deployment, {name}, has {amount_of(axis, most)} for tasks"
        asked = amount_of(axis, getattr(needs, axis))
        yield Fault(_FIELDS[axis], f"asks for {asked}, but {largest if most else _NO_TYPE}")
    if not too_much and not any(needs.fits_in(shape) for shape in shapes.values()):
        yield Fault("resources", "no instance type of this deployment has all of this at once")


def with_all_gpus(data: Any, shapes: Mapping[str, Resources]) -> tuple[Any, list[Fault]]:
    """The spec with a number of GPUs in place of ALL, and a fault where no number is meant: that of the types that hold
    the rest of a task."""
    resources = data.get("resources") if isinstance(data, Mapping) else None
    if not isinstance(resources, Mapping) or resources.get("gpus") != ALL_GPUS:
        return data, []
    one = {**resources, "gpus": 1}
    if resources.get("gpuShare") is not None:
        return {**data, "resources": one}, []  # reported as a fault of the two fields together
    try:
        left, others = _with_gpus(one, _for_image(one, shapes)[0])
        found = {name: shape for name, shape in left.items() if _needs(one).fits_in(shape)}
    except (TypeError, ValueError, AttributeError, OverflowError):
        return {**data, "resources": one}, []  # reported as a fault of the other field
    types = {shape.gpus: name for name, shape in sorted(found.items(), reverse=True)}
    if len(types) == 1:
        return {**data, "resources": {**one, "gpus": min(types)}}, []
    has = ", ".join(f"{amount_of('gpus', count)} ({types[count]})" for count in sorted(types))
    several = f"ALL needs instance types with one number of GPUs, but this deployment's have {has}: give a number, or"
    several += " choose among them by gpuModel, gpuMemoryMib, vcpus or memory"
    none = "no instance type of this deployment has GPUs for such a task"
    return {**data, "resources": one}, [] if others else [Fault("resources.gpus", several if types else none)]


def _needs(resources: Mapping[str, Any]) -> Resources:
    """Of a part of a spec that may have faults elsewhere."""
    usual = ResourcesSpec()
    vcpus = float(resources.get("vcpus", usual.vcpus))
    memory, gpus = resources.get("memory", usual.memory), resources.get("gpus", usual.gpus)
    return Resources(round(vcpus * CPU_UNITS_PER_VCPU), int(memory), math.ceil(gpus))


def _for_image(
    resources: Mapping[str, Any], shapes: Mapping[str, Resources]
) -> tuple[Mapping[str, Resources], list[Fault]]:
    """The shapes of the types that run the image's architecture, and the faults."""
    architecture = resources.get("architecture") or X86_64
    catalogue = load_catalogue()
    found = {
        name: shape for name, shape in shapes.items() if name not in catalogue or catalogue[name].runs(architecture)
    }
    if found or not shapes:
        return found, []
    sentence = f"no instance type of this deployment is {architecture}"
    return {}, [Fault("resources.architecture", sentence + ("" if resources.get("architecture") else ", the default"))]


def _with_disk(
    resources: Mapping[str, Any], shapes: Mapping[str, Resources], disks_gib: Mapping[str, int]
) -> tuple[Mapping[str, Resources], list[Fault]]:
    """The shapes of the types whose volumes leave a task enough, and the faults. Raises TypeError."""
    asked = resources.get("diskGiB") or 0
    found = {name: shape for name, shape in shapes.items() if asked <= disks_gib.get(name, asked)}
    if found or not shapes:
        return found, []
    most = max(disks_gib[name] for name in shapes)
    return {}, [
        Fault(
            "resources.diskGiB", f"asks for {asked} GiB, but volumes leave tasks {most} GiB at most (setting diskGiB)"
        )
    ]


def _with_gpus(
    resources: Mapping[str, Any], shapes: Mapping[str, Resources]
) -> tuple[Mapping[str, Resources], list[Fault]]:
    """The shapes of the types with the requested model and memory of GPUs, and the faults.

    Raises TypeError for values of another type than the fields'.
    """
    model, memory_mib = resources.get("gpuModel"), resources.get("gpuMemoryMib") or 0
    shapes, fault = _of_parts(resources.get("gpus") or 0, shapes)
    if fault is not None:
        return {}, [fault]
    if model is None and not memory_mib:
        return shapes, []
    known = {name: load_catalogue()[name] for name in shapes if name in load_catalogue()}
    models = sorted({kind.gpu_model for kind in known.values() if kind.gpu_model is not None})
    if model is not None and model not in models:
        has = f"it has {', '.join(models)}" if models else "it has no GPUs"
        return {}, [Fault("resources.gpuModel", f"no instance type of this deployment has {shown(model)} GPUs: {has}")]
    found = {name: shapes[name] for name, kind in known.items() if kind.has_gpus(model, memory_mib)}
    if found:
        return found, []
    most = max((kind.gpu_memory_mib for kind in known.values() if model in (None, kind.gpu_model)), default=0)
    sentence = f"asks for {memory_mib} MiB a GPU, but this deployment's {model or 'largest'} GPUs have {most} MiB"
    return {}, [Fault("resources.gpuMemoryMib", sentence if most else _NO_TYPE)]


def _of_parts(gpus: float, shapes: Mapping[str, Resources]) -> tuple[Mapping[str, Resources], Fault | None]:
    """The shapes without those of types with another part of a GPU, and a fault. Raises TypeError."""
    parts = {name: load_catalogue()[name].gpu_part if name in load_catalogue() else "" for name in shapes}
    if not gpus:
        return shapes, None
    wanted = f"{gpus:g}" if gpus < 1 else ""
    found = {name: shape for name, shape in shapes.items() if not shape.gpus or parts[name] == wanted}
    if any(shape.gpus for shape in found.values()) or not any(shape.gpus for shape in shapes.values()):
        return found, None
    there = ", ".join(sorted({part for part in parts.values() if part})) or "whole GPUs only"
    asked = f"asks for {wanted} of a GPU" if wanted else "asks for whole GPUs"
    return {}, Fault("resources.gpus", f"{asked}, but the instance types of this deployment have {there}")


def _with_share(
    resources: Mapping[str, Any], shapes: Mapping[str, Resources]
) -> tuple[Mapping[str, Resources], list[Fault]]:
    """The shapes of the types with GPUs of which a task may have the requested part, and the faults."""
    asked = (resources.get("gpuShare") or {}).get("memoryMib") or 0
    if not asked or not shapes:
        return shapes, []
    offered = {name: load_catalogue()[name].shared_gpu_mib for name in shapes if name in load_catalogue()}
    most = max(offered.values(), default=0)
    if asked <= most:
        return {name: shapes[name] for name, mib in offered.items() if asked <= mib}, []
    sentence = f"asks for {asked} MiB of a GPU, but this deployment's GPUs have {most} MiB at most to share"
    kinds = [load_catalogue()[name] for name in offered if load_catalogue()[name].gpus]
    models = sorted({f"parts of {kind.gpu_model}" if kind.gpu_part else str(kind.gpu_model) for kind in kinds})
    none = "no instance type of this deployment shares GPUs"
    none += f": its GPUs are {', '.join(models)}, which cannot be shared" if models else ""
    return {}, [Fault("resources.gpuShare", sentence if most else none)]


_FIELDS = {"cpu_units": "resources.vcpus", "memory_mib": "resources.memory", "gpus": "resources.gpus"}
_NO_TYPE = "no instance type of this deployment has any"


def _most(shapes: Mapping[str, Resources], axis: str) -> tuple[int, str]:
    """The largest amount and the first type that has it."""
    name = max(shapes, key=lambda each: int(getattr(shapes[each], axis)))
    return getattr(shapes[name], axis), name


def amount_of(axis: str, amount: int) -> str:
    if axis == "cpu_units":
        return said_vcpus(amount)
    if axis == "memory_mib":
        return f"{amount} MiB"
    return f"{amount} GPU{'' if amount == 1 else 's'}"
