"""What does Elastic Load Balancing answer about the targets of its target groups? As far as it is asked by Argosy."""

from __future__ import annotations

from typing import Any

from argosy.emulator.operations import EmulatedService, Refusal, operation

JSON = dict[str, Any]


class TargetGroupsModel(EmulatedService):
    """Target groups for instances, which somebody has made. Whoever is registered is healthy."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: dict[str, set[tuple[str, int]]] = {}
        """By the ARN of the group: instance and port."""

    def add_group(self, arn: str) -> None:
        """As its owner does."""
        self.targets.setdefault(arn, set())

    @operation
    def register_targets(self, request: JSON) -> JSON:
        """What is registered already stays so."""
        self._group(request).update(_targets(request))
        return {}

    @operation
    def deregister_targets(self, request: JSON) -> JSON:
        """What is not registered is no fault."""
        self._group(request).difference_update(_targets(request))
        return {}

    @operation
    def describe_target_health(self, request: JSON) -> JSON:
        """Those that are registered."""
        found = [
            {"Target": {"Id": name, "Port": port}, "HealthCheckPort": str(port), "TargetHealth": {"State": "healthy"}}
            for name, port in sorted(self._group(request))
        ]
        return {"TargetHealthDescriptions": found}

    def _group(self, request: JSON) -> set[tuple[str, int]]:
        arn = request["TargetGroupArn"]
        if arn not in self.targets:
            raise Refusal("TargetGroupNotFound", f"Target groups '{arn}' not found")
        return self.targets[arn]


def _targets(request: JSON) -> set[tuple[str, int]]:
    return {(each["Id"], each["Port"]) for each in request["Targets"]}
