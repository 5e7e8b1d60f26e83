"""Container health by Docker's own rule, which ECS's agent follows, with the limits of ECS on its settings.

https://docs.docker.com/reference/dockerfile/#healthcheck
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from argosy.emulator.ecs.records import HEALTHY, UNHEALTHY, UNKNOWN
from argosy.emulator.operations import Refusal

JSON = dict[str, Any]


class _Limit(NamedTuple):
    least: int
    most: int
    default: int


_LIMITS = {
    "interval": _Limit(5, 300, 30),
    "timeout": _Limit(2, 60, 5),
    "retries": _Limit(1, 10, 3),
    "startPeriod": _Limit(0, 300, 0),
}


class HealthWatch:
    """The health of one container. The first run of its command comes an interval after its start."""

    def __init__(self, check: Mapping[str, Any], started_at: float) -> None:
        """check: the healthCheck of its definition."""
        numbers = {name: float(check.get(name) or limit.default) for name, limit in _LIMITS.items()}
        self.interval_s, self.timeout_s, self._retries = numbers["interval"], numbers["timeout"], numbers["retries"]
        self._counts_from = started_at + numbers["startPeriod"]
        self._failures = 0
        self.status = UNKNOWN

    def note(self, succeeded: bool, at: float) -> bool:
        """One run of the command has ended. Whether the status has changed."""
        before = self.status
        if succeeded:
            self.status, self._failures = HEALTHY, 0
        elif self.status != UNKNOWN or at >= self._counts_from:
            self._failures += 1
            if self._failures >= self._retries:
                self.status = UNHEALTHY
        return self.status != before


def check_health(container: Mapping[str, Any]) -> None:
    """Raises Refusal."""
    check = container.get("healthCheck")
    if check is None:
        return
    command = check.get("command") or []
    if len(command) < 2 or command[0] not in ("CMD", "CMD-SHELL"):
        raise Refusal("ClientException", "Invalid 'command' setting for container health check.")
    for name, limit in _LIMITS.items():
        value = check.get(name)
        if value is not None and not limit.least <= value <= limit.most:
            said = f"Invalid '{name}' setting for container health check: {value}."
            raise Refusal("ClientException", f"{said} It must be between {limit.least} and {limit.most}.")


def task_health(containers: Mapping[str, str], definitions: list[JSON]) -> str:
    """Of a task, from its essential containers that have a command. containers: status by name."""
    asked = [each["name"] for each in definitions if each.get("healthCheck") and each.get("essential", True)]
    said = [containers[name] for name in asked]
    if UNHEALTHY in said:
        return UNHEALTHY
    return HEALTHY if said and UNKNOWN not in said else UNKNOWN
