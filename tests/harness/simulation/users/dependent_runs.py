"""Which runs of a trial wait for others, or for a time?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.harness.simulation.faults import Faults
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import share

MOST_WAIT_MIN = 30
LATER, ONE_TO_ONE = 0.2, 0.5  # shares of those that wait: for a time only; of the others, task by task


def with_dependencies(jobs: Sequence[SimulatedJob], faults: Faults, seed: int) -> list[SimulatedJob]:
    """Some of them wait for one or two that were submitted before."""
    found: list[SimulatedJob] = []
    for number, job in enumerate(jobs):
        found.append(_waiting(job, found, seed, number) if faults.strikes("dependency") else job)
    return found


def _waiting(job: SimulatedJob, before: Sequence[SimulatedJob], seed: int, number: int) -> SimulatedJob:
    if not before or share(seed, "later", number) < LATER:
        minutes = 1 + int(MOST_WAIT_MIN * share(seed, "not before", number))
        return replace(job, spec={**job.spec, "notBefore": f"{minutes}m"})
    wanted: dict[str, dict[str, Any]] = {}
    tasks = job.tasks
    for choice in range(1 + int(2 * share(seed, "dependencies", number))):
        other = before[int(len(before) * share(seed, "which", number, choice))]
        on = "end" if share(seed, "on", number, choice) < 0.4 else "success"
        one_to_one = share(seed, "task by task", number, choice) < ONE_TO_ONE
        if one_to_one and (not wanted or other.tasks == tasks):
            tasks = other.tasks
            wanted[other.run_id] = {"run": other.run_id, "type": "N_TO_N", "on": on}
        else:
            wanted[other.run_id] = {"run": other.run_id, "type": "ALL", "on": on}
    spec = {**job.spec, "array": {"size": tasks}, "dependsOn": list(wanted.values())}
    return replace(job, spec=spec, tasks=tasks)
