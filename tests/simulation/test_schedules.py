"""A schedule fires exactly once per time, whatever becomes of the deliveries, of the api and of the controllers."""

from __future__ import annotations

import pytest

from tests.harness.simulation.campaign import run_trial
from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TrialPlan

DEATHS = kinds_of("crash,reply-lost,effect-lost,server-error,time-out,store-outage")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_each_time_has_one_verdict_and_at_most_one_run(seed: int) -> None:
    verdict = run_trial(TrialPlan(seed, DEATHS, schedules=1.0, faulty_s=900.0))
    assert verdict.violations == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 102))
def test_so_it_is_with_every_fault_in_the_mix(seed: int) -> None:
    verdict = run_trial(TrialPlan(seed, schedules=1.0))
    assert verdict.violations == []


def trials_find_nothing(seeds: range) -> None:
    """For planted bugs: raises AssertionError at the first violation."""
    for seed in seeds:
        assert run_trial(TrialPlan(seed, DEATHS, schedules=1.0, faulty_s=900.0)).violations == []
