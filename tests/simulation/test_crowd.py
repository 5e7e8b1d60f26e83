"""Users alone, without a failure from outside: every run ends, and no run waits behind one that cannot start.

CROWDS=200 in the environment plays 200 more seeds.
"""

from __future__ import annotations

import os

import pytest

from tests.fakes.trials import crowd
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.users.crowd import RUNS

MORE = int(os.environ.get("CROWDS", "0"))


@pytest.mark.parametrize("seed", [2, *range(1_000, 1_000 + MORE)])
def test_every_run_of_a_crowd_ends_and_the_controller_rests(seed: int) -> None:
    verdict = Trial(crowd(seed)).run()
    assert verdict.violations == []
    assert verdict.statuses.total() >= RUNS  # a service and a schedule have runs of their own


def test_runs_that_come_to_exceed_a_limit_end_and_keep_no_other_waiting() -> None:
    trial = Trial(crowd(11))
    assert trial.run().violations == []
    told = [record.status_reason for record in trial.auditor.stored.records.values()]
    assert any(
        each.startswith("a task needs an instance of $0.1637 an hour, the cap of queue prod is $0.15") for each in told
    )
