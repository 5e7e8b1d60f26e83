"""The EventBridge messages that Argosy listens to, and the fact that each one states.

One table leads from (source, detail-type) to a parser. The stacks and local mode make their EventBridge rules from the
same table, so that rules and parsers cannot drift apart (DESIGN section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from argosy.messages.ecs import UNREADABLE, container_instance_seen, epoch_s, shown, storable, task_seen
from argosy.messages.fleet_faults import OBSTACLES, shortage
from argosy.messages.health import impairment
from argosy.model.arns import cell_of, name_of
from argosy.model.events import (
    ContainerInstanceSeen,
    Event,
    HostStateChanged,
    InterruptionWarned,
    PoolShort,
    RebalanceAdvised,
    TaskSeen,
)
from argosy.model.host_care import HostHealthChanged

MAX_NAME = 128  # characters of a Region or an id
CAPACITY_INTERRUPTED = "EC2 Capacity Reservation Instance Interruption Warning"  # its owner takes it back
CAPACITY_INTERRUPTED_BEFORE = "EC2 Interruptible Capacity Reservation Instance Interruption Warning"
"""The name in an earlier text of AWS's page."""


@dataclass(frozen=True, slots=True)
class MessageKind:
    """One kind of message: the name of its rule, and its parser. also: other names of the same message."""

    rule: str
    source: str
    detail_type: str
    parse: Callable[[Mapping[str, Any]], Event | None]
    also: tuple[str, ...] = ()

    def pattern(self, cluster_arns: list[Any] | None = None) -> dict[str, Any]:
        """The EventBridge event pattern. cluster_arns: only ECS messages of these clusters (ARNs or tokens) match."""
        pattern: dict[str, Any] = {"source": [self.source], "detail-type": [self.detail_type, *self.also]}
        if self.source == "aws.ecs" and cluster_arns:
            pattern["detail"] = {"clusterArn": cluster_arns}
        return pattern


def _sent_at(message: Mapping[str, Any]) -> float:
    """When the message was sent, as epoch seconds; 0 if its time is missing or unreadable, since even then a warning
    counts."""
    with suppress(*UNREADABLE):
        return epoch_s(message.get("time"))
    return 0.0


def _name(value: Any) -> str:
    """A Region or an id. Raises ValueError for a value that cannot be one."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME:
        raise ValueError(f"not a name: {shown(value)}")
    return storable(value)


def _task(message: Mapping[str, Any]) -> TaskSeen:
    return task_seen(message["detail"])


def _container_instance(message: Mapping[str, Any]) -> ContainerInstanceSeen:
    """The cell is the Region in the ARN: the message may carry the Region of the bus that forwarded it."""
    cell = cell_of(str(message["detail"]["containerInstanceArn"]))
    return container_instance_seen(message["detail"], _name(cell or message.get("region")))


def _health(message: Mapping[str, Any]) -> HostHealthChanged | None:
    """A host that is not an EC2 instance is not ours."""
    detail = message["detail"]
    host = detail.get("ec2InstanceId")
    if not host:
        return None
    said = impairment(detail.get("healthChecks") or ()) if detail.get("overallStatus") == "IMPAIRED" else ""
    return HostHealthChanged(_name(host), said, _sent_at(message))


def _interruption(message: Mapping[str, Any]) -> InterruptionWarned:
    return InterruptionWarned(_name(message["detail"]["instance-id"]), _sent_at(message))


def _rebalance(message: Mapping[str, Any]) -> RebalanceAdvised:
    return RebalanceAdvised(_name(message["detail"]["instance-id"]), _sent_at(message))


def _host_state(message: Mapping[str, Any]) -> HostStateChanged:
    detail = message["detail"]
    return HostStateChanged(_name(detail["instance-id"]), _name(detail["state"]), _sent_at(message))


def _fleet_obstacle(message: Mapping[str, Any]) -> PoolShort | None:
    """The event names the fleet; the lifecycle has the fleet's pool."""
    detail = message["detail"]
    sub_type = str(detail.get("sub-type", ""))
    fleet = next((name_of(arn) for arn in message.get("resources", []) if "fleet/" in arn), "")
    if not fleet or sub_type not in OBSTACLES:
        return None
    return shortage(_name(fleet), sub_type, str(detail.get("description") or ""))


MESSAGE_KINDS = (
    MessageKind("task-state", "aws.ecs", "ECS Task State Change", _task),
    MessageKind("container-instance-state", "aws.ecs", "ECS Container Instance State Change", _container_instance),
    MessageKind("spot-interruption", "aws.ec2", "EC2 Spot Instance Interruption Warning", _interruption),
    MessageKind("rebalance", "aws.ec2", "EC2 Instance Rebalance Recommendation", _rebalance),
    MessageKind("instance-state", "aws.ec2", "EC2 Instance State-change Notification", _host_state),
    MessageKind("fleet-error", "aws.ec2fleet", "EC2 Fleet Error", _fleet_obstacle),
    MessageKind("fleet-information", "aws.ec2fleet", "EC2 Fleet Information", _fleet_obstacle),
    MessageKind("container-instance-health", "aws.ecs", "ECS Container Instance Health Change", _health),
    MessageKind(
        "capacity-interruption", "aws.ec2", CAPACITY_INTERRUPTED, _interruption, also=(CAPACITY_INTERRUPTED_BEFORE,)
    ),
)
RULE_PATTERNS: tuple[tuple[str, dict[str, Any]], ...] = tuple((kind.rule, kind.pattern()) for kind in MESSAGE_KINDS)


class PoisonMessage(ValueError):
    """A message that cannot be read; it is set aside and counted."""


def to_event(message: Mapping[str, Any] | None) -> Event | None:
    """The fact that a message states; None for a kind of message that Argosy does not use. Raises PoisonMessage."""
    if message is None or not isinstance(message.get("detail"), Mapping):
        raise PoisonMessage("not an EventBridge event")
    source, name = message.get("source"), message.get("detail-type")
    kind = next(
        (each for each in MESSAGE_KINDS if each.source == source and name in (each.detail_type, *each.also)), None
    )
    if kind is None:
        return None
    try:
        return kind.parse(message)
    except UNREADABLE as fault:
        raise PoisonMessage(f"{kind.detail_type}: {fault!r}") from fault
