"""Where would ECS put a task? Resources, then constraints, then strategies; ties go to the instance registered first.

That order and the first-order rules are documented; ties and the default without a strategy (random, according to
users) are not (aws.md 6).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from zlib import crc32

from argosy.emulator.ecs.records import ContainerInstance
from argosy.emulator.operations import Refusal

JSON = dict[str, Any]
Key = Callable[[ContainerInstance], Any]

MAX_CONSTRAINTS = 10
MAX_STRATEGY_RULES = 5
MAX_EXPRESSION_CHARS = 2_000
# The pin of each of our launches is resolved by a look-up instead of a scan over 5,000 instances.
_PIN = re.compile(r"\s*ec2InstanceId\s*==\s*(['\"]?)(i-[0-9a-f]+)\1\s*")


def checked_constraints(constraints: Iterable[JSON]) -> tuple[list[str], bool]:
    """The memberOf expressions, and whether instances must be distinct. Raises Refusal."""
    expressions, distinct, count = [], False, 0
    for constraint in constraints:
        count += 1
        kind, expression = constraint.get("type"), constraint.get("expression")
        if kind == "distinctInstance" and not expression:
            distinct = True
        elif kind == "memberOf" and expression:
            check_expression(expression)
            expressions.append(expression)
        else:
            raise Refusal("InvalidParameterException", f"Invalid placement constraint of type {kind!r}.")
    if count > MAX_CONSTRAINTS:
        raise Refusal("InvalidParameterException", f"At most {MAX_CONSTRAINTS} placement constraints are allowed.")
    return expressions, distinct


def check_expression(expression: str) -> None:
    """Raises Refusal for anything but a cluster query."""
    from argosy.placement.query import QuerySyntaxError, parse

    if len(expression) > MAX_EXPRESSION_CHARS:
        raise Refusal("InvalidParameterException", "Placement constraint expression is too long.")
    if pinned_to(expression):
        return
    try:
        parse(expression)
    except QuerySyntaxError as error:
        raise Refusal("InvalidParameterException", f"Invalid expression {expression!r}: {error}") from error


def pinned_to(expression: str) -> str | None:
    """The EC2 instance id, if the expression is the plain `ec2InstanceId == i-...`."""
    pin = _PIN.fullmatch(expression)
    return pin[2] if pin else None


def checked_strategy(strategy: Sequence[JSON]) -> list[tuple[str, str]]:
    """(type, field) of each rule. Raises Refusal."""
    if len(strategy) > MAX_STRATEGY_RULES:
        raise Refusal("InvalidParameterException", f"At most {MAX_STRATEGY_RULES} strategy rules are allowed.")
    return [_checked_rule(rule.get("type"), str(rule.get("field") or "")) for rule in strategy]


def _checked_rule(kind: str | None, field: str) -> tuple[str, str]:
    valid = {
        "random": not field,
        "binpack": field.lower() in ("cpu", "memory"),
        "spread": field in ("instanceId", "host") or field.startswith("attribute:"),
    }
    if kind is None or not valid.get(kind):
        raise Refusal("InvalidParameterException", f"Invalid placement strategy {kind!r} with field {field!r}.")
    return kind, field


def matches(expression: str, instances: Sequence[ContainerInstance]) -> list[ContainerInstance]:
    """The instances that a cluster query accepts, in their order. Raises Refusal for anything else."""
    check_expression(expression)
    pin = pinned_to(expression)
    if pin is not None:
        return [instance for instance in instances if instance.ec2_instance_id == pin]
    from argosy.placement.query import matching, parse

    mask = matching(parse(expression), _supply(instances))
    return [instance for instance, chosen in zip(instances, mask, strict=True) if chosen]


def ranking(instances: Sequence[ContainerInstance], strategy: Sequence[tuple[str, str]], group: str, salt: str) -> Key:
    """Sorts the best candidate first. Spread counts the group's tasks over all `instances` that share a value."""
    rules = [_rule(kind, field, instances, group, salt) for kind, field in strategy or [("random", "")]]
    return lambda instance: (*(rule(instance) for rule in rules), instance.ordinal)


def has_member(instance: ContainerInstance, group: str) -> bool:
    """Whether a live task of the group is on the instance (distinctInstance)."""
    return any(task.group == group for task in instance.tasks.values())


def _rule(kind: str, field: str, instances: Sequence[ContainerInstance], group: str, salt: str) -> Key:
    if kind == "binpack":  # least remaining that still fits
        cpu = field.lower() == "cpu"
        return lambda instance: instance.free_cpu_units if cpu else instance.free_memory_mib
    if kind == "spread":
        members = _members(instances, field, group)
        return lambda instance: members[_spread_value(instance, field)]
    return lambda instance: crc32(f"{salt}/{instance.arn}".encode())


def _members(instances: Sequence[ContainerInstance], field: str, group: str) -> dict[str | None, int]:
    counts: dict[str | None, int] = {}
    for instance in instances:
        value = _spread_value(instance, field)
        counts[value] = counts.get(value, 0) + sum(task.group == group for task in instance.tasks.values())
    return counts


def _spread_value(instance: ContainerInstance, field: str) -> str | None:
    return instance.attributes.get(field.removeprefix("attribute:")) if ":" in field else instance.arn


def _supply(instances: Sequence[ContainerInstance]) -> Any:
    """Rows need unique ids: if two records share an EC2 instance (an agent lost its ARN), the older has it."""
    from argosy.placement.supply import Supply

    ids: dict[str, str] = {}
    for instance in instances:
        ids.setdefault(instance.ec2_instance_id or instance.arn, instance.arn)
    return Supply.of(
        [
            _row(each, each.ec2_instance_id if ids.get(each.ec2_instance_id) == each.arn else each.arn)
            for each in instances
        ]
    )


def _row(instance: ContainerInstance, row_id: str) -> Any:
    from argosy.placement.supply import InstanceRow

    groups: dict[str, int] = {}
    for task in instance.tasks.values():
        groups[task.group] = groups.get(task.group, 0) + 1
    return InstanceRow(
        id=row_id,
        cpu_units=instance.free_cpu_units,
        memory_mib=instance.free_memory_mib,
        gpus=len(instance.free_gpu_ids),
        total_cpu_units=instance.cpu_units,
        total_memory_mib=instance.memory_mib,
        total_gpus=len(instance.gpus),
        attributes={name: value or "" for name, value in instance.attributes.items()},
        status=instance.status,
        agent_connected=instance.agent_connected,
        agent_version=str(instance.version_info.get("agentVersion") or ""),
        registered_at=instance.registered_at,
        running_tasks=len(instance.tasks),
        running_by_group=groups,
        started_by=frozenset(task.started_by for task in instance.tasks.values() if task.started_by),
    )
