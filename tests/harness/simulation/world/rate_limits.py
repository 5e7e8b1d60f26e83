"""AWS's throttling: one token bucket for each family of calls, on a clock that is passed in."""

from __future__ import annotations

from collections.abc import Callable

_READS = frozenset({"describe_tasks", "list_tasks", "describe_container_instances", "list_container_instances"})
FAMILIES: dict[str, tuple[float, float, frozenset[str]]] = {
    # family: burst, refill per second, operations (reliability.md section 1, fact 6; aws.md 3)
    "launches": (100, 40, frozenset({"run_task", "start_task", "stop_task"})),
    "reads": (100, 20, _READS),
    "definitions": (20, 1, frozenset({"register_task_definition", "deregister_task_definition"})),
    "fleets": (50, 5, frozenset({"create_fleet", "modify_fleet", "terminate_instances"})),
}  # fmt: skip


class Buckets:
    """Token buckets of one account and region, shared by all callers."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._held = {family: (burst, now()) for family, (burst, _, _) in FAMILIES.items()}
        self._family = {name: family for family, (_, _, names) in FAMILIES.items() for name in names}
        self.refused = 0

    def take(self, operation: str) -> bool:
        """A token for the call, if its family has one left."""
        family = self._family.get(operation)
        if family is None:
            return True
        burst, rate_per_s, _ = FAMILIES[family]
        tokens, filled_at = self._held[family]
        tokens = min(burst, tokens + (self._now() - filled_at) * rate_per_s)
        granted = tokens >= 1
        self._held[family] = (tokens - granted, self._now())
        self.refused += not granted
        return granted
