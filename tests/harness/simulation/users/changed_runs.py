"""What do the users of a trial change of their runs while these are open?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.harness.simulation.users.shared_queues import NAMES
from tests.harness.simulation.world.world import share

MOST_CHANGES = 4  # of a run
CONCURRENT, INSTANCES = (1, 2, 3, None), (1, 2, None)
BUDGETS, HOURLY = (0.3, 3.0), (0.7, 4.0)  # of what the spec says: below what is spent it is refused


def changes_of(
    seed: int, number: int, spec: Mapping[str, Any], *, has_queues: bool
) -> list[tuple[float, dict[str, Any]]]:
    """When a user asks for what, of the run with this number: a share of the phase of faults, and the changes."""
    count = int((1 + MOST_CHANGES) * share(seed, "changes", number))
    return [
        (share(seed, "changed at", number, each), _change(seed, (number, each), spec, has_queues))
        for each in range(count)
    ]


def _change(seed: int, which: tuple[int, int], spec: Mapping[str, Any], has_queues: bool) -> dict[str, Any]:
    """One field or several."""
    capacity = spec.get("capacity", {})
    mixes = capacity.get("purchase", "spot") != "spot" or "deadline" in capacity
    drawn = {
        "priority": int(200 * share(seed, "priority", *which)) - 100,
        "maxConcurrentTasks": _one_of(CONCURRENT, share(seed, "tasks", *which)),
        "maxInstances": _one_of(INSTANCES, share(seed, "instances", *which)),
    }
    if has_queues:
        drawn["queue"] = _one_of(NAMES, share(seed, "queue", *which))
    if "budgetUsd" in capacity:
        drawn["budgetUsd"] = capacity["budgetUsd"] * _between(BUDGETS, share(seed, "budget", *which))
    if "maxHourlyCost" in capacity:
        drawn["maxHourlyCost"] = capacity["maxHourlyCost"] * _between(HOURLY, share(seed, "hourly", *which))
    if mixes:
        drawn["deadline"] = _one_of(("10m", "1h", None), share(seed, "deadline", *which))
    chosen = [name for name in drawn if share(seed, "field", *which, name) < 0.5]
    return {name: drawn[name] for name in chosen or ("priority",)}


def _one_of(values: tuple[Any, ...], drawn: float) -> Any:
    return values[int(len(values) * drawn)]


def _between(ends: tuple[float, float], drawn: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * drawn
