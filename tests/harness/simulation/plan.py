"""The plan of a trial: its caller's options, and the choices of its seed.

The seed decides the duration of the faults, the frequency of controllers and the submitted runs. Trials are small and
vary a lot: some are dense (a tick every other second), some sparse (one a minute, like the schedule). The number of
ticks stays about the same, because the cost of a trial is its ticks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.model.policy import Policy
from tests.harness.simulation.faults import ALL, Faults
from tests.harness.simulation.world.workload import SimulatedJob

SHORTEST_S, LONGEST_S = 120.0, 1_500.0  # duration of the phase of faults
FEWEST_STEPS, MOST_STEPS = 8, 26  # in it
MOST_CONTROLLERS = 8
ABSENT_S = 3 * 3600.0  # longer than ECS remembers stopped tasks


TYPES = ("c5.xlarge", "g4dn.xlarge")
TEST_POLICY = Policy(linger_s=60.0)


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """The request for a trial. `tasks`, `controllers` and `faulty_s` 0, and no `jobs`: the seed decides."""

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
    """Options of the command line that no other member stands for."""
    policy: Policy = TEST_POLICY
    types: tuple[str, ...] = TYPES
    faulty_s: float = 0.0
    """How long faults strike."""
    schedules: float = 0.0
    """The chance that it has a schedule."""
    updates: float = 0.0
    """The chance that its users change open runs."""
    members: float = 0.0
    """The chance that users come through entrances of queues, and that one of them proves nothing."""
    crowd: float = 0.0
    """The chance that its users are a crowd: fourteen runs under limits that some of their tasks exceed."""
    gpu_shares: float = 0.0
    """The chance that users share GPUs, of one or several on an instance."""
    checkpoints: float = 0.0
    """The chance that programs save checkpoints and resume."""
    gangs: float = 0.0
    """The chance that some runs have gangs."""
    limit_s: float = 4 * 3600.0
    """How long everything may take to end once the faults have ended."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The seed's choices for a trial; times in seconds."""

    faulty_s: float
    pace_s: float
    """Between two steps, on average."""
    controllers: int
    current: int
    """Controllers of this version, if some may be of the next one; 0 = there is no next version."""
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
