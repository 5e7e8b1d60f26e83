"""Programs save checkpoints and are interrupted: what each attempt resumes from, and how much is done again."""

from __future__ import annotations

import pytest

from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial


@pytest.mark.slow
def test_interrupted_programs_resume_and_repeat_an_interval_and_an_upload_at_most() -> None:
    """Some of them share GPUs, and several controllers work at once."""
    kinds = frozenset({"interruption", "overlap", "retry"})
    trial = Trial(TrialPlan(11, kinds, every_kind=True, checkpoints=1.0, gpu_shares=1.0))
    assert trial.run().violations == []
    assert trial.outline.controllers > 1
    resumed = [trial.jobs[each.key.run_id].spec for each in trial.programs.saving if each.resumed.work_s]
    assert any("gpuShare" in spec["resources"] for spec in resumed)
