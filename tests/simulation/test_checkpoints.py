"""Programs save checkpoints and are interrupted: what each attempt resumes from, and how much is done again."""

from __future__ import annotations

import pytest

from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial


@pytest.mark.slow
def test_interrupted_programs_resume_and_repeat_an_interval_and_an_upload_at_most() -> None:
    trial = Trial(TrialPlan(5, frozenset({"interruption"}), checkpoints=1.0))
    assert trial.run().violations == []
    assert sum(each.resumed.work_s > 0 for each in trial.programs.saving)
