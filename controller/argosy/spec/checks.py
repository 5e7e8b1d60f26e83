"""What must several fields of a spec agree on?

These checks read the spec as it was written, not the parsed model: so they find their faults beside those of single
fields, and every one of them says nothing about parts that are not what they should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.spec import shards
from argosy.spec.faults import Fault, path_text, shown
from argosy.spec.fields import TASK_LIMIT

ARRAY_KINDS = ("range", "size", "items", "itemsFrom")


def cross_faults(data: Mapping[str, Any]) -> list[Fault]:
    """What several fields must agree on. `data` has passed `spec_bounds`."""
    checks = (_container_faults, _group_faults, _array_faults, _capacity_faults, _timeout_faults, _template_faults)
    return [fault for check in checks for fault in check(data)]


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name)
    return part if isinstance(part, Mapping) else {}


def _container_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    image, definition = _part(data, "container").get("image"), data.get("taskDefinition")
    if image is None and definition is None:
        yield Fault("container", "is required with an image, unless there is a taskDefinition")
    if image is not None and definition is not None:
        yield Fault("taskDefinition", "cannot be combined with container.image: give one of them")
    if definition is not None and data.get("resources") is not None:
        yield Fault("resources", "cannot be combined with taskDefinition, which says itself what a task takes")
    if definition is not None and _part(data, "container").get("hostPorts") is not None:
        yield Fault("container.hostPorts", "cannot be combined with taskDefinition, which has its own port mappings")


def _group_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """No instance can satisfy both for one group."""
    wanted, shunned = (_part(data, "placement").get(name) for name in ("affinity", "antiAffinity"))
    if isinstance(wanted, list) and isinstance(shunned, list):
        for number, group in enumerate(shunned):
            if group in wanted:
                path = f"placement.antiAffinity[{number}]"
                yield Fault(path, f"{shown(group)} is in affinity too: no instance could satisfy both")


def _capacity_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    capacity = _part(data, "capacity")
    purchase = capacity.get("purchase")
    if capacity.get("deadline") is not None and purchase == "spot":
        yield Fault(
            "capacity.deadline",
            "cannot be kept with spot alone: make capacity.purchase spot-then-on-demand or on-demand",
        )
    mixed = purchase == "spot-then-on-demand" or (purchase is None and capacity.get("deadline") is not None)
    if capacity.get("fallback") is not None and not mixed:
        yield Fault("capacity.fallback", "is only possible with capacity.purchase spot-then-on-demand")
    if capacity.get("onCap") is not None and capacity.get("budgetUsd") is None:
        yield Fault("capacity.onCap", "is only possible with capacity.budgetUsd")


def _timeout_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    timeout = data.get("timeout")
    if isinstance(timeout, Mapping) and not timeout:
        yield Fault("timeout", "must have attemptDurationSeconds or runDurationSeconds")


def _array_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    if not isinstance(data.get("array"), Mapping):
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
        start, end = shards.parse_range(array["range"])
    except (KeyError, TypeError, ValueError):
        return  # absent, or a fault of its own
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
                "array.shardSize", f"gives {tasks} tasks, the limit is {TASK_LIMIT}: it must be at least {least}"
            )


def templates(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, text) of every place where `${...}` is substituted."""
    container = _part(data, "container")
    command, environment = container.get("command"), container.get("environment")
    if isinstance(command, list):
        for number, text in enumerate(command):
            if isinstance(text, str):
                yield f"container.command[{number}]", text
    if isinstance(environment, Mapping):
        for name, text in environment.items():
            if isinstance(text, str):
                yield path_text(("container", "environment", name)), text
    elif isinstance(environment, list):
        for number, entry in enumerate(environment):
            if isinstance(entry, Mapping) and isinstance(entry.get("value"), str):
                yield f"container.environment[{number}].value", entry["value"]


def _template_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    array = _part(data, "array")
    for path, text in templates(data):
        for name in shards.names_used(text):
            message = _name_fault(name, array)
            if message:
                yield Fault(path, message)
    if isinstance(array.get("items"), list):
        yield from item_faults(array["items"], keys_used(data))


def _name_fault(name: str | None, array: Mapping[str, Any]) -> str | None:
    if name is None:
        return "has a ${ that is never closed; write $${ for a literal ${"
    if name not in shards.VARIABLES and not shards.ITEM_KEY.fullmatch(name):
        known = ", ".join(shards.VARIABLES)
        return f"unknown substitution ${{{shown(name)}}}; known: {known}, item.KEY; write $${{ for a literal ${{"
    if name in ("range", "start", "end") and array and array.get("range") is None:
        return f"${{{name}}} is only possible with array.range"
    if name.split(".")[0] == "item" and array and array.get("items") is None and array.get("itemsFrom") is None:
        return f"${{{name}}} is only possible with array.items or array.itemsFrom"
    return None


def keys_used(data: Mapping[str, Any]) -> dict[str, str]:
    """KEY -> path of the first place that says `${item.KEY}`."""
    keys: dict[str, str] = {}
    for path, text in templates(data):
        for name in shards.names_used(text):
            key = shards.ITEM_KEY.fullmatch(name or "")
            if key:
                keys.setdefault(key[1], path)
    return keys


def item_faults(items: list[Any], keys: Mapping[str, str], where: str = "array.items") -> Iterator[Fault]:
    """Items that lack a key which the templates use."""
    for number, item in enumerate(items if keys else ()):
        for key, path in keys.items():
            if not isinstance(item, Mapping):
                yield Fault(f"{where}[{number}]", f"must be a mapping with {key}, which {path} uses")
            elif key not in item:
                yield Fault(f"{where}[{number}]", f"has no {key}, which {path} uses")
