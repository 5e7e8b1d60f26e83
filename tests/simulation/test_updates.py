"""Users change their runs while these are open: nothing is begun above the new limits, whatever goes wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TEST_POLICY, TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.world.workload import SimulatedJob

RUNS, TASKS = 3, 20
FAULTS = "crash,reply-lost,effect-lost,interruption,two-versions,overlap"


def job(number: int) -> SimulatedJob:
    spec = {
        "version": 1,
        "name": "changed",
        "container": {"image": "argosy/digits", "command": ["work"]},
        "resources": {"vcpus": 1, "memory": 1024},
        "array": {"size": TASKS},
        "capacity": {"budgetUsd": 0.6} if number == 1 else {},
    }
    return SimulatedJob(f"changed-270115-0800{number:02d}-0000", spec, TASKS, 60.0)


def trial(seed: int, kinds: str = "") -> Trial:
    plan = TrialPlan(seed, kinds_of(kinds or "queue"), instances=4, jobs=tuple(map(job, range(RUNS))), updates=1.0)
    return Trial(replace(plan, every_kind=not kinds, faulty_s=900.0, types=("c5.xlarge",), policy=TEST_POLICY))


def trials_find_nothing(seeds: range) -> int:
    """For planted bugs: raises AssertionError at the first violation. How many intents of changed runs were judged."""
    judged = 0
    for seed in seeds:
        each = trial(seed)
        assert each.run().violations == []
        judged += each.auditor.updates.judged
    return judged


@pytest.mark.slow
def test_nothing_is_begun_above_what_a_run_may_have_by_now() -> None:
    assert trials_find_nothing(range(1, 2)) > 20


@pytest.mark.slow
def test_so_it_is_where_calls_and_controllers_fail() -> None:
    assert trial(1, FAULTS).run().violations == []
