"""Checks across several fields of a spec.

These checks read the spec as it was written, not the parsed model, so that their faults are reported together with
those of single fields. A check ignores parts that are faulty by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.model.purchases import PurchaseMode
from argosy.spec.allowed_fields import allowed_faults
from argosy.spec.dependencies import dependency_faults
from argosy.spec.faults import Fault, shown
from argosy.spec.fields import TASK_LIMIT
from argosy.spec.gangs import gang_faults
from argosy.spec.program import program_faults
from argosy.spec.services import base_faults, daemon_faults, service_faults, serving_faults
from argosy.spec.shards import parse_range

ATTEMPT_S = "attemptDurationSeconds"
ARRAY_KINDS = ("range", "size", "items", "itemsFrom")

_OF_KIND = {"service": (service_faults, base_faults), "daemon": (daemon_faults,)}


def cross_faults(data: Mapping[str, Any]) -> list[Fault]:
    """Every contradiction between fields. `data` has passed `bounds.faults`."""
    checks = [_container_faults, _gpu_faults, _group_faults, _array_faults, _capacity_faults, _timeout_faults]
    checks += [program_faults, allowed_faults, *_OF_KIND.get(str(data.get("kind")), ())]
    checks += [serving_faults] if _part(data, "container").keys() & {"health", "ports"} else []
    checks += [gang_faults] if data.get("gang") is not None else []
    checks += [dependency_faults] if "dependsOn" in data else []
    return [fault for check in checks for fault in check(data)]


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name)
    return part if isinstance(part, Mapping) else {}


def _container_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    image, definition = _part(data, "container").get("image"), data.get("taskDefinition")
    if image is None and definition is None and data.get("run") is None:
        yield Fault("container", "is required, with an image, unless run or taskDefinition is given")
    if image is not None and definition is not None:
        yield Fault("taskDefinition", "cannot be combined with container.image: give one of them")


def _gpu_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    resources = _part(data, "resources")
    shares = resources.get("gpuShare") is not None
    for name in ("gpuModel", "gpuMemoryMib"):
        if resources.get(name) is not None and not shares and resources.get("gpus") in (None, 0):
            yield Fault(f"resources.{name}", "names a kind of GPU, but resources.gpus asks for none")
    if shares and resources.get("gpus"):
        yield Fault("resources.gpuShare", "cannot be combined with resources.gpus: give one of them")


def _group_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """No instance can satisfy both for one group."""
    wanted, shunned = (_part(data, "placement").get(name) for name in ("affinity", "antiAffinity"))
    if isinstance(wanted, list) and isinstance(shunned, list):
        for number, group in enumerate(shunned):
            if group in wanted:
                path = f"placement.antiAffinity[{number}]"
                yield Fault(path, f"{shown(group)} is also in affinity: no instance could satisfy both")


def _capacity_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    capacity = _part(data, "capacity")
    purchase = capacity.get("purchase")
    if capacity.get("deadline") is not None and purchase == PurchaseMode.SPOT:
        yield Fault(
            "capacity.deadline",
            "needs on-demand instances as well: set capacity.purchase to spot-then-on-demand or on-demand",
        )
    mixed = purchase == PurchaseMode.SPOT_THEN_ON_DEMAND or (purchase is None and capacity.get("deadline") is not None)
    if capacity.get("fallback") is not None and not mixed:
        yield Fault("capacity.fallback", "is only possible with capacity.purchase spot-then-on-demand")
    if capacity.get("onCap") is not None and capacity.get("budgetUsd") is None:
        yield Fault("capacity.onCap", "is only possible with capacity.budgetUsd")


def _timeout_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    timeout = data.get("timeout")
    if isinstance(timeout, Mapping) and not timeout:
        yield Fault("timeout", "must have attemptDurationSeconds or runDurationSeconds")
    every_s, longest_s = _part(data, "checkpoint").get("everySeconds"), _part(data, "timeout").get(ATTEMPT_S)
    if isinstance(every_s, int) and isinstance(longest_s, int) and every_s >= longest_s:
        too_long = f"must be less than timeout.{ATTEMPT_S}, or no attempt reaches a checkpoint"
        yield Fault("checkpoint.everySeconds", too_long)
    if isinstance(data.get("checkpoint"), Mapping) and every_s is None and data.get("run") is None:
        yield Fault("checkpoint.everySeconds", "is required without run: only a program has the folder of checkpoints")
    if _part(data, "checkpoint").get("sizeGiB") is not None and data.get("run") is None:
        yield Fault("checkpoint.sizeGiB", "is only possible with run: only a program has the folder of checkpoints")


def _array_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    if not isinstance(data.get("array"), Mapping):
        if data.get("array") is None and str(data.get("kind")) not in _OF_KIND:
            yield Fault("array", "is required, unless kind is service or daemon")
        return
    array = _part(data, "array")
    given = [kind for kind in ARRAY_KINDS if array.get(kind) is not None]
    if len(given) != 1:
        what = "has " + " and ".join(given) if given else "has none of them"
        yield Fault("array", f"must have exactly one of {', '.join(ARRAY_KINDS)}; it {what}")
    size = array.get("shardSize")
    if size is not None and "range" not in given:
        yield Fault("array.shardSize", "is only possible with array.range")
    try:
        start, end = parse_range(array["range"])
    except (KeyError, TypeError, ValueError):
        return  # absent, or reported as a fault of the field
    yield from _shard_faults(end - start, size)


def _shard_faults(length: int, size: Any) -> Iterator[Fault]:
    whole = isinstance(size, int) and not isinstance(size, bool)
    if whole and size > length:
        yield Fault("array.shardSize", f"must be at most {length}, the length of array.range")
    elif (whole and size >= 1) or size is None:
        tasks = -(-length // (size or 1))
        if tasks > TASK_LIMIT:
            least = -(-length // TASK_LIMIT)
            yield Fault(
                "array.shardSize", f"gives {tasks} tasks; the limit is {TASK_LIMIT}, so it must be at least {least}"
            )
