"""Gangs in trials: they start, stop and restart as one."""

from __future__ import annotations

import pytest

from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial

KINDS = frozenset({"interruption", "host-loss", "reply-lost", "overlap", "retry"})


@pytest.mark.slow
def test_gangs_start_and_restart_as_one_under_several_controllers() -> None:
    trial = Trial(TrialPlan(7, KINDS, every_kind=True, gangs=1.0))
    assert trial.run().violations == []
    assert trial.auditor.gangs.restarted > 1
    assert trial.outline.controllers > 1
