"""The messages that cannot wait for the controller's next minute.

All messages go into its queue (`eventbridge`). While there is nothing to do, no controller reads it (decision 39). So
separate rules call the function for messages whose delay would affect a service's users. The function ignores the
message in the call: the queue is the only way in. The stacks, local mode and the simulation take their rules from this
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.messages.eventbridge import CAPACITY_INTERRUPTED, CAPACITY_INTERRUPTED_BEFORE
from argosy.model.run_terms import SERVICE_GROUP

JSON = dict[str, Any]
ENDS = ["shutting-down", "stopped", "stopping", "terminated"]  # of EC2's states of an instance


@dataclass(frozen=True, slots=True)
class UrgentKind:
    """One kind of message: the name of its rule, and which of these messages. detail: names -> allowed values, in the
    form of event patterns. also: other names of the same message."""

    rule: str
    source: str
    detail_type: str
    detail: Mapping[str, list[Any]] = field(default_factory=dict)
    also: tuple[str, ...] = ()

    def pattern(self, cluster_arns: list[Any] | None = None) -> JSON:
        """The EventBridge event pattern. cluster_arns: only ECS messages of these clusters (ARNs or tokens) match."""
        detail = dict(self.detail)
        if self.source == "aws.ecs" and cluster_arns:
            detail["clusterArn"] = cluster_arns
        pattern: JSON = {"source": [self.source], "detail-type": [self.detail_type, *self.also]}
        return {**pattern, "detail": detail} if detail else pattern

    def matches(self, message: Mapping[str, Any]) -> bool:
        """As EventBridge matches it."""
        names = self.detail_type, *self.also
        named = message.get("source") == self.source and message.get("detail-type") in names
        said = message.get("detail") or {}
        return named and all(_allows(allowed, said.get(name)) for name, allowed in self.detail.items())


URGENT_KINDS = (
    # Each end of a batch's task would be a needless call: a controller is at work while there are any.
    UrgentKind(
        "urgent-ends-of-tasks",
        "aws.ecs",
        "ECS Task State Change",
        {"lastStatus": ["STOPPED"], "group": [{"prefix": SERVICE_GROUP}]},
    ),
    UrgentKind("urgent-interruptions", "aws.ec2", "EC2 Spot Instance Interruption Warning"),
    UrgentKind("urgent-capacity-interruptions", "aws.ec2", CAPACITY_INTERRUPTED, also=(CAPACITY_INTERRUPTED_BEFORE,)),
    UrgentKind(
        "urgent-impairments", "aws.ecs", "ECS Container Instance Health Change", {"overallStatus": ["IMPAIRED"]}
    ),
    UrgentKind("urgent-ends-of-instances", "aws.ec2", "EC2 Instance State-change Notification", {"state": ENDS}),
)


_BY_MESSAGE: dict[Any, list[UrgentKind]] = {}
for _kind in URGENT_KINDS:
    for _name in (_kind.detail_type, *_kind.also):
        _BY_MESSAGE.setdefault((_kind.source, _name), []).append(_kind)


def rule_of(message: Mapping[str, Any]) -> str:
    """The name of the rule that the message matches; "" = it can wait."""
    kinds = _BY_MESSAGE.get((message.get("source"), message.get("detail-type")), ())
    return next((kind.rule for kind in kinds if kind.matches(message)), "")


def _allows(allowed: list[Any], said: object) -> bool:
    """Whether the value is allowed, or one of its values if it is a list."""
    values = said if isinstance(said, list) else [said]
    return any(
        isinstance(value, str) and value.startswith(each["prefix"]) if isinstance(each, dict) else value == each
        for each in allowed
        for value in values
    )
