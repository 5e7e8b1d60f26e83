"""The smallest trial: two tasks, two instances, one controller, no fault."""

from __future__ import annotations

from dataclasses import replace

from argosy.model.policy import Policy
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.users.crowd import CROWD
from tests.harness.simulation.world.workload import SimulatedJob

SMALL_JOB = SimulatedJob(
    "small-270115-080000-aaaa",
    {
        "version": 1,
        "name": "small",
        "container": {"image": "argosy/digits", "command": ["work", "${part}"]},
        "resources": {"vcpus": 1, "memory": 512, "gpus": 0},
        "array": {"size": 2},
        "retryStrategy": {"attempts": 1},
    },
    2,
    longest_s=30.0,
)


LATE_JOB = replace(SMALL_JOB, run_id="late-270115-080000-bbbb", submitted_after_s=3000.0)


SMALL = TrialPlan(0, frozenset(), jobs=(SMALL_JOB,), instances=2, controllers=1)
WARM = replace(SMALL, jobs=(SMALL_JOB, LATE_JOB), policy=Policy(linger_s=3600.0))
"""The second run is submitted when the instances of the first have idled for most of an hour."""


def crowd(seed: int) -> TrialPlan:
    """Users who exceed limits, and nothing that fails from outside."""
    return TrialPlan(seed, CROWD, crowd=1.0, every_kind=True, faulty_s=900.0, controllers=1)
