"""Does the auditor see the release of an instance that is to be kept, and only that?"""

from __future__ import annotations

from typing import Any

from argosy.model.policy import Policy
from argosy.model.pools import Floor
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.floors import FloorChecker
from tests.harness.simulation.world.regions import Regions

SOUND: dict[str, Any] = {
    "instance_type": "c5.large", "owned": True, "agent_connected": True, "interrupted_at": 0.0, "rebalance_at": 0.0,
    "draining_since": 0.0,
    "cordon": "", "absent_since": 0.0, "stopped_at": 0.0,
}  # fmt: skip


def let_go(kept: int, **facts_: Any) -> list[str]:
    """The findings if a commit releases the only instance, with that many to keep."""
    facts = TrialFacts(Regions(world()), {}, Policy(), **facts_)
    checker, stored = FloorChecker(facts), facts.stored
    stored.root = {"floor": Floor(kept).to_json()}
    for version, status in enumerate(("ACTIVE", "RELEASING")):
        stored.instances = {"i-1": {**SOUND, "status": status}}
        stored.version = version + 1
        checker.committed(Commit(version, {}, [], frozenset()))
    return [found.invariant for found in facts.violations]


def test_an_instance_that_is_to_be_kept_is_not_let_go() -> None:
    assert let_go(1) == ["F1"]
    assert let_go(0) == []


def test_from_the_kill_switch_on_no_floor_holds() -> None:
    assert let_go(1, is_tearing_down=True) == []
