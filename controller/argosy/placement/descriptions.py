"""Rows of a supply from ECS's own descriptions of container instances and tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from argosy.placement.query_nodes import instant
from argosy.placement.supply import InstanceRow

_RESOURCES: Final = ("CPU", "MEMORY", "GPU")


def rows_of(instances: Iterable[Mapping[str, Any]], tasks: Iterable[Mapping[str, Any]] = ()) -> list[InstanceRow]:
    """Rows from DescribeContainerInstances' `containerInstances`, and DescribeTasks' `tasks` for groups and startedBy.

    ValueError names the place of the invalid part, such as `containerInstances[3].registeredAt`.
    """
    groups: dict[str, Counter[str]] = {}
    started: dict[str, set[str]] = {}
    for task in tasks:
        if not isinstance(task, Mapping):
            raise ValueError("tasks: each must be an object")
        if task.get("lastStatus") == "STOPPED":
            continue
        arn = str(task.get("containerInstanceArn"))
        groups.setdefault(arn, Counter())[str(task.get("group", ""))] += 1
        started.setdefault(arn, set()).update(filter(None, [str(task.get("startedBy") or "")]))
    return [_row(f"containerInstances[{i}]", item, groups, started) for i, item in enumerate(instances)]


def _row(
    path: str, item: Mapping[str, Any], groups: Mapping[str, Counter[str]], started: Mapping[str, set[str]]
) -> InstanceRow:
    if not isinstance(item, Mapping):
        raise ValueError(f"{path}: must be an object")
    arn = str(item.get("containerInstanceArn", ""))
    instance_id = str(item.get("ec2InstanceId") or arn.rpartition("/")[2])
    if not instance_id:
        raise ValueError(f"{path}: has neither ec2InstanceId nor containerInstanceArn")
    free = _amounts(path, item, "remainingResources")
    total = _amounts(path, item, "registeredResources")
    return InstanceRow(
        instance_id,
        *free,
        *total,
        attributes=_attributes(path, item),
        used_host_ports=_ports(path, item),
        status=str(item.get("status", "ACTIVE")),
        agent_connected=item.get("agentConnected", True) is True,
        agent_version=str(_mapping(path, item, "versionInfo").get("agentVersion", "")),
        registered_at=_instant(path, item.get("registeredAt")),
        running_tasks=_whole(f"{path}.runningTasksCount", item.get("runningTasksCount", 0)),
        running_by_group=groups.get(arn, {}),
        started_by=frozenset(started.get(arn, ())),
    )


def _attributes(path: str, item: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for number, attribute in enumerate(_list(path, item, "attributes")):
        name = attribute.get("name") if isinstance(attribute, Mapping) else None
        if not isinstance(name, str):
            raise ValueError(f"{path}.attributes[{number}]: must be an object with a name")
        found[name] = str(attribute.get("value") or "")
    return found


def _amounts(path: str, item: Mapping[str, Any], key: str) -> tuple[int, int, int]:
    """cpu units, MiB, GPUs. A list without an entry means none of it."""
    found = dict.fromkeys(_RESOURCES, 0)
    for number, resource in enumerate(_list(path, item, key)):
        where = f"{path}.{key}[{number}]"
        if not isinstance(resource, Mapping):
            raise ValueError(f"{where}: must be an object")
        name = str(resource.get("name"))
        if name == "GPU":
            found[name] = len(_list(where, resource, "stringSetValue"))
        elif name in found:
            found[name] = _whole(f"{where}.integerValue", resource.get("integerValue", 0))
    return found["CPU"], found["MEMORY"], found["GPU"]


def _ports(path: str, item: Mapping[str, Any]) -> frozenset[tuple[int, str]]:
    """ECS lists the ports in use under `remainingResources`."""
    protocols = {"PORTS": "tcp", "PORTS_UDP": "udp"}
    return frozenset(
        (int(port), protocols[str(resource.get("name"))])
        for resource in _list(path, item, "remainingResources")
        if str(resource.get("name")) in protocols
        for port in resource.get("stringSetValue", ())
        if str(port).isdecimal()
    )


def _instant(path: str, value: Any) -> float:
    if isinstance(value, datetime):
        return value.timestamp()
    if value is None:
        return 0.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = instant(str(value))
    if found is None:
        raise ValueError(f"{path}.registeredAt: {str(value)[:40]!r} is not a time")
    return found


def _whole(path: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{path}: {str(value)[:40]!r} is not a whole number")
    return value


def _list(path: str, item: Mapping[str, Any], key: str) -> list[Any]:
    value = item.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{path}.{key}: must be a list")
    return value


def _mapping(path: str, item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = item.get(key, {})
    if not isinstance(value, Mapping):
        raise ValueError(f"{path}.{key}: must be an object")
    return value
