"""What does the trial of a seed look like? How long the faults last, how often controllers work, what is submitted.

Small trials in great variety: some are dense (a tick every other second), some sparse (the schedule's minute), and the
number of ticks stays about the same, for ticks are what a trial costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from argosy.simulation.faults import Faults
from argosy.simulation.job import CANARY, Job

SHORTEST_S, LONGEST_S = 120.0, 1_500.0  # of the phase of faults
FEWEST_STEPS, MOST_STEPS = 8, 26  # in it
MOST_CONTROLLERS = 8
WITH_BUDGET = 0.2  # share of runs
ABSENT_S = 3 * 3600.0  # longer than ECS remembers stopped tasks


@dataclass(frozen=True, slots=True)
class Shape:
    """The outline of a trial; times in seconds."""

    faulty_s: float
    pace_s: float  # between two steps, on average
    controllers: int
    former: int  # of them, of this version while the others are of the next; 0 = all are of this one
    absent_at: float  # from when no controller works, counted from the start; infinite = never
    absent_s: float

    @classmethod
    def drawn(cls, faults: Faults, faulty_s: float, controllers: int) -> Shape:
        """faulty_s, controllers: as given, 0 = as the seed says."""
        length = faulty_s or SHORTEST_S * math.exp(faults.between(0, math.log(LONGEST_S / SHORTEST_S)))
        steps = faults.between(FEWEST_STEPS, MOST_STEPS)
        few = 1 + int(faults.between(0, 2))
        many = controllers or (int(faults.between(2, MOST_CONTROLLERS + 1)) if faults.strikes("overlap") else few)
        former = 1 + int(faults.between(0, many)) if faults.on("two-versions") else 0
        absent = faults.between(0.2, 0.8) * length if faults.strikes("absence") else math.inf
        return cls(length, length / steps, many, min(former, many), absent, faults.between(0.1, 1.0) * ABSENT_S)


def drawn_jobs(faults: Faults, seed: int, tasks: int) -> list[Job]:
    """One or two runs of the shapes that users submit. tasks: of each, 0 = as the seed says."""
    return [_drawn_job(faults, seed, number, tasks) for number in range(1 + int(faults.between(0, 2)))]


def _drawn_job(faults: Faults, seed: int, number: int, given: int) -> Job:
    draw = faults.between
    gpus = 1 if draw(0, 1) < 0.3 else 0
    tasks = given or 2 + int(draw(0, 8))
    spec: dict[str, Any] = {
        "version": 1,
        "name": f"trial{number}",
        "container": {"image": "argosy/digits", "command": ["work"], "environment": {"TOKEN": CANARY}},
        "resources": {"vcpus": 1 + int(draw(0, 2)), "memory": 1024, "gpus": gpus},
        "array": {"size": tasks},
        "retryStrategy": {"attempts": 1 + int(draw(0, 3))},
    }
    hanging = draw(0, 0.1)
    if hanging > 0.05:
        spec["timeout"] = {"attemptDurationSeconds": 300}
    # Chance of its own, so that trials without a budget are what they were.
    if (luck := crc32(f"budget/{seed}/{number}".encode()) / 2**32) < WITH_BUDGET:
        spec["capacity"] = {"budgetUsd": round(0.005 + luck, 4), "onCap": "finish" if luck < 0.05 else "drain"}
    return Job(
        f"trial{number}-270115-08000{number}-{seed % 10000:04d}",
        spec,
        tasks,
        expects_result=draw(0, 1) < 0.5,
        longest_s=draw(40, 240),
        failing=max(0.0, draw(-0.2, 0.3)),
        hanging=hanging if hanging > 0.05 else 0.0,
        deaf=draw(0, 0.2),
        unpullable=max(0.0, draw(-0.2, 0.1)),
        silent=max(0.0, draw(-0.1, 0.1)),
    )
