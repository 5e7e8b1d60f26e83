"""Elastic Load Balancing's answers about the targets of its target groups.
It covers Argosy's calls, as botocore describes them: an instance may be registered with several ports, and only while
it runs; deregistering an unregistered target is not a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.emulator.operations import EmulatedService, Refusal, operation

JSON = dict[str, Any]
Target = tuple[str, int]  # instance, port
NOT_REGISTERED = {"State": "unused", "Reason": "Target.NotRegistered"}
GROUP_PORT = 80  # for a target without one


def anything_runs(instance_id: str) -> bool:
    """True: an instance runs unless something says otherwise."""
    return True


class TargetGroupsModel(EmulatedService):
    """Target groups for instances, made by the account's owner. Every registered target is healthy.

    runs: whether the instance with this id runs.
    """

    def __init__(self, runs: Callable[[str], bool] = anything_runs) -> None:
        super().__init__()
        self._runs = runs
        self.targets: dict[str, set[Target]] = {}
        """By the ARN of the group."""

    def add_group(self, arn: str) -> None:
        """Like its owner."""
        self.targets.setdefault(arn, set())

    @operation
    def register_targets(self, request: JSON) -> JSON:
        """All of them or none. Registered targets stay registered."""
        group, asked = self._group(request), _targets(request)
        ended = sorted({instance for instance, _ in asked if not self._runs(instance)})
        if ended:
            raise Refusal("InvalidTarget", f"The following targets are not in a running state: {', '.join(ended)}")
        group.update(asked)
        return {}

    @operation
    def deregister_targets(self, request: JSON) -> JSON:
        """An unregistered target is not a fault."""
        self._group(request).difference_update(_targets(request))
        return {}

    @operation
    def describe_target_health(self, request: JSON) -> JSON:
        """Of the named ones, or of all registered ones."""
        group = self._group(request)
        asked = _targets(request) if request.get("Targets") else group
        return {"TargetHealthDescriptions": [_health(target, target in group) for target in sorted(asked)]}

    def _group(self, request: JSON) -> set[Target]:
        arn = request["TargetGroupArn"]
        if arn not in self.targets:
            raise Refusal("TargetGroupNotFound", f"Target groups '{arn}' not found")
        return self.targets[arn]


def _targets(request: JSON) -> set[Target]:
    return {(each["Id"], each.get("Port", GROUP_PORT)) for each in request["Targets"]}


def _health(target: Target, is_registered: bool) -> JSON:
    instance, port = target
    health = {"State": "healthy"} if is_registered else NOT_REGISTERED
    return {"Target": {"Id": instance, "Port": port}, "HealthCheckPort": str(port), "TargetHealth": health}
