"""The sampled mutants that no test found at first, and those that none can find. By hand, for `sampled.json`."""

from __future__ import annotations

# They change nothing observable: why.
EQUIVALENT: dict[str, str] = {
    "engine/tick.py:325.0": "a short cut: without sightings nothing has ended, and the sum below is 0",
    "engine/loop.py:54.3": "`float` reads infinity in capitals too",
    "aws/executor.py:48.3": "nobody reads the name of a type variable",
    "aws/sqs.py:24.3": "nobody reads the name of a type variable",
}

# They survived the first pass; a test finds them now.
SURVIVED_ONCE: tuple[str, ...] = (
    "lifecycle/attempts.py:185.0",
    "lifecycle/charges.py:127.0",
    "lifecycle/health.py:38.0",
    "lifecycle/hosts.py:262.0",
    "lifecycle/quarantine.py:39.0",
    "lifecycle/revival.py:124.0",
    "lifecycle/revival.py:51.0",
    "lifecycle/revival.py:80.1",
    "lifecycle/revival.py:86.0",
    "lifecycle/suspension.py:56.1",
    "scheduler/buying/budget.py:288.1",
    "scheduler/buying/budget.py:357.1",
    "scheduler/buying/capacity.py:212.0",
    "scheduler/placing/places.py:63.0",
    "scheduler/buying/reasons.py:69.0",
    "scheduler/buying/reasons.py:89.0",
    "scheduler/upkeep/upkeep.py:175.0",
    "market/cover.py:49.2",
    "market/joint_order.py:111.0",
    "engine/loop.py:100.1",
    "engine/loop.py:38.0",
    "engine/tick.py:236.0",
    "engine/tick.py:251.0",
    "engine/tick.py:274.4",
    "aws/cell_guard.py:48.6",
    "aws/preparation.py:39.0",
    "aws/wake.py:27.2",
    "aws/watchdog.py:150.4",
)
