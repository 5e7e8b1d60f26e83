"""Runs on a simulated AWS whose controllers record what they do, and the shelf where that lies."""

from __future__ import annotations

from argosy.simulation.plan import TrialPlan
from argosy.simulation.recorded import RecordedTrial
from argosy.simulation.trial import RECORDED, Trial


def recorded(seed: int, kinds: frozenset[str] = frozenset(), **plan: object) -> RecordedTrial:
    """What a trial that ends well leaves; seed: a multiple of RECORDED."""
    assert seed % RECORDED == 0
    trial = Trial(TrialPlan(seed, kinds, **plan))  # type: ignore[arg-type]
    verdict = trial.run()
    assert verdict.ok, verdict.violations[0]
    assert trial.recorded is not None
    return trial.recorded
