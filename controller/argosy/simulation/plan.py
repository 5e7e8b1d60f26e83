"""What is a trial made of? What its user asked for, and what its seed decides.

The seed decides how long the faults last, how often controllers work and what is submitted. Trials are small and vary
much: some are dense (a tick every other second), some sparse (one a minute, as the schedule has it). The number of
ticks stays about the same, because ticks are what a trial costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from argosy.model.policy import Policy
from argosy.simulation.faults import ALL, Faults
from argosy.simulation.workload import CANARY, SimulatedJob

SHORTEST_S, LONGEST_S = 120.0, 1_500.0  # of the phase of faults
FEWEST_STEPS, MOST_STEPS = 8, 26  # in it
MOST_CONTROLLERS = 8
WITH_BUDGET = 0.2  # share of runs
WITH_HOURLY_CAP = 0.1  # the same; some caps are below every instance
ABSENT_S = 3 * 3600.0  # longer than ECS remembers stopped tasks


TYPES = ("c5.xlarge", "g4dn.xlarge")
TEST_POLICY = Policy(linger_s=60.0)


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """What is asked of a trial. `tasks`, `controllers` and `faulty_s` 0, and no `jobs`: as the seed decides."""

    seed: int
    kinds: frozenset[str] = ALL
    tasks: int = 0
    instances: int = 6
    controllers: int = 0
    jobs: tuple[SimulatedJob, ...] = ()
    script: Mapping[int, str] = field(default_factory=dict)
    """Number of a call -> the fault that it meets."""
    strict: bool = False
    """Whether the shapes of all requests and replies are checked."""
    rate_limits: bool = True
    """Whether AWS limits the rate of calls."""
    every_kind: bool = False
    """Whether all `kinds` are on, rather than a random part of them."""
    words: tuple[str, ...] = ()
    """Of the command line that no other member stands for."""
    policy: Policy = TEST_POLICY
    types: tuple[str, ...] = TYPES
    faulty_s: float = 0.0
    """How long faults strike."""
    limit_s: float = 4 * 3600.0
    """How long everything may take to come to its end once the faults have ended."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What the seed decides about the course of a trial; times in seconds."""

    faulty_s: float
    pace_s: float
    """Between two steps, on average."""
    controllers: int
    current: int
    """Those of this version, if some may be of the next one; 0 = there is no next version."""
    absent_at: float
    """From when no controller works, counted from the start; infinite = never."""
    absent_s: float

    @classmethod
    def drawn(cls, faults: Faults, plan: TrialPlan) -> Outline:
        length = plan.faulty_s or SHORTEST_S * math.exp(faults.between(0, math.log(LONGEST_S / SHORTEST_S)))
        steps = faults.between(FEWEST_STEPS, MOST_STEPS)
        many = 1 + int(faults.between(0, 2))
        if plan.controllers:
            many = plan.controllers
        elif faults.strikes("overlap"):
            many = int(faults.between(2, MOST_CONTROLLERS + 1))
        current = min(many, 1 + int(faults.between(0, many))) if faults.on("two-versions") else 0
        absent = faults.between(0.2, 0.8) * length if faults.strikes("absence") else math.inf
        return cls(length, length / steps, many, current, absent, faults.between(0.1, 1.0) * ABSENT_S)


def drawn_jobs(faults: Faults, seed: int, tasks: int) -> list[SimulatedJob]:
    """One or two runs of the shapes that users submit. tasks: of each, 0 = as the seed says."""
    return [_drawn_job(faults, seed, number, tasks) for number in range(1 + int(faults.between(0, 2)))]


def _drawn_job(faults: Faults, seed: int, number: int, given: int) -> SimulatedJob:
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
    # Not drawn from `faults`, so that trials without a budget stay what they were.
    if (luck := crc32(f"budget/{seed}/{number}".encode()) / 2**32) < WITH_BUDGET:
        spec["capacity"] = {"budgetUsd": round(0.005 + luck, 4), "onCap": "finish" if luck < 0.05 else "drain"}
    if (luck := crc32(f"hourly/{seed}/{number}".encode()) / 2**32) < WITH_HOURLY_CAP:
        spec["capacity"] = {**spec.get("capacity", {}), "maxHourlyCost": round(0.02 + 0.25 * luck / WITH_HOURLY_CAP, 4)}
    return SimulatedJob(
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
