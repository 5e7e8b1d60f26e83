"""The smallest trial: two tasks, two instances, one controller, no fault."""

from __future__ import annotations

from argosy.simulation.plan import TrialPlan
from argosy.simulation.workload import SimulatedJob

SMALL_JOB = SimulatedJob(
    "small-270115-080000-aaaa",
    {
        "version": 1,
        "name": "small",
        "container": {"image": "argosy/digits", "command": ["work"]},
        "resources": {"vcpus": 1, "memory": 512, "gpus": 0},
        "array": {"size": 2},
        "retryStrategy": {"attempts": 1},
    },
    2,
    expects_result=True,
    longest_s=30.0,
)


SMALL = TrialPlan(0, frozenset(), jobs=(SMALL_JOB,), instances=2, controllers=1)
