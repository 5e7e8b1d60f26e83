"""Users alone, without a failure from outside: every run ends, and no run waits behind one that cannot start.

CROWDS=200 in the environment plays 200 more seeds.
"""

from __future__ import annotations

import os
from functools import cache

import pytest

from tests.fakes.trials import crowd
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.users.crowd import RUNS

SEED = 11
MORE = int(os.environ.get("CROWDS", "0"))


@cache
def ended(seed: int) -> Trial:
    trial = Trial(crowd(seed))
    verdict = trial.run()
    assert verdict.violations == []
    assert verdict.statuses.total() >= RUNS  # a service and a schedule have runs of their own
    return trial


@pytest.mark.parametrize("seed", [SEED, *range(1_000, 1_000 + MORE)])
def test_every_run_of_a_crowd_ends_and_the_controller_rests(seed: int) -> None:
    assert ended(seed)


def test_runs_that_come_to_exceed_a_limit_end_with_the_reason() -> None:
    told = [record.status_reason for record in ended(SEED).auditor.stored.records.values()]
    assert any(
        each.startswith("a task needs an instance of $0.1637 an hour, the cap of queue prod is $0.15") for each in told
    )
