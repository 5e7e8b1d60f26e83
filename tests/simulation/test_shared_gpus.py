"""Users share GPUs, of which ECS picks any with room: no GPU is overfilled, whatever goes wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.harness.simulate import SHARED_GPUS
from tests.harness.simulation.faults import ALL
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.users.gpu_sharers import share_gpus


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ["gpu-reset", "sick-gpu", "no-gpu-sharing"])
def test_nothing_is_lost_where_gpus_and_agents_fail(kinds: str) -> None:
    seen = Counter[str]()
    for seed in (3, 27):
        verdict = Trial(TrialPlan(seed, frozenset({kinds}), gpu_shares=1.0)).run()
        assert verdict.violations == []
        seen += verdict.seen
    assert seen[kinds]


def test_a_seed_without_shared_gpus_stays_the_same() -> None:
    seed = next(seed for seed in range(99) if not share_gpus(TrialPlan(seed, gpu_shares=SHARED_GPUS)))
    trials = [Trial(TrialPlan(seed, ALL, gpu_shares=chance)) for chance in (0.0, SHARED_GPUS)]
    assert trials[0].jobs == trials[1].jobs
    assert trials[0].plan.types == trials[1].plan.types
    assert trials[0].outline == trials[1].outline
