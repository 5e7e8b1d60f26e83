"""Does the auditor see an attempt that is launched repeatedly, or placed where no work may go?"""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.policy import Policy
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.launches import MOST_LAUNCHES, LaunchChecker
from tests.harness.simulation.audit.stored_state import StoredAttempt
from tests.harness.simulation.world.regions import Regions

SOUND: dict[str, Any] = {"interrupted_at": 0.0, "rebalance_at": 0.0, "cordon": "", "status": "ACTIVE", "owned": True}


def violations_of(launch: int, **instance: Any) -> list[str]:
    """For an intent with this launch number, on an instance that is healthy except for these members."""
    facts = TrialFacts(Regions(world()), {}, Policy())
    facts.stored.instances["i-1"] = SOUND | instance
    intent = StoredAttempt(AttemptKey("run", 0, 1, launch), "i-1", AttemptStatus.INTENT, "")
    LaunchChecker(facts).committed(Commit(0, {}, [intent], frozenset()))
    return [found.invariant for found in facts.violations]


def test_an_attempt_that_is_launched_over_and_over_is_a_violation() -> None:
    assert violations_of(MOST_LAUNCHES) == []
    assert violations_of(MOST_LAUNCHES + 1) == ["liveness"]


@pytest.mark.parametrize(
    ("instance", "invariant"),
    [({"interrupted_at": 1.0}, "R12"), ({"cordon": "sick"}, "R12"), ({"owned": False}, "I10")],
)
def test_work_is_not_placed_on_an_instance_that_takes_none(instance: dict[str, Any], invariant: str) -> None:
    assert violations_of(0, **instance) == [invariant]
