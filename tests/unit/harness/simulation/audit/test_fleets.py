"""Does the auditor see that a fleet's target exceeds the order?"""

from __future__ import annotations

from typing import Any

from argosy.emulator.ec2.records import Ec2Fleet
from argosy.model.policy import Policy
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.audit.fleets import FleetChecker
from tests.harness.simulation.audit.stored_state import StoredState
from tests.harness.simulation.world.regions import Regions

POOL = "c5.large/us-east-1a"


def stored(count: int) -> StoredState:
    """A store with that many instances of the pool, and one with a warning."""
    state = StoredState()
    fields: dict[str, Any] = {"instance_type": "c5.large", "zone": "us-east-1a", "owned": True, "status": "ACTIVE"}
    for number in range(count + 1):
        fields |= {"interrupted_at": 0.0 if number < count else 1.0, "absent_since": 0.0}
        state.instances[f"i-{number}"] = dict(fields)
    return state


def a_fleet(members: int) -> tuple[Ec2Fleet, FleetChecker]:
    """With its instances, and a checker that has seen its target."""
    made = world()
    name = made.add_fleet("c5.large", "us-east-1a", spot=members, **{"argosy:pool": POOL})
    made.run_for(60)
    fleet, checker = made.ec2.ledger.fleets[name], FleetChecker(TrialFacts(Regions(made), {}, Policy()))
    assert len(fleet.members) == members
    assert checker.unordered_raise(StoredState(), fleet) == ""
    return fleet, checker


def test_an_order_is_no_violation_nor_is_a_raise_that_launches_nothing() -> None:
    fleet, checker = a_fleet(2)
    for target in (1, 2, 5):
        fleet.spot_target = target
        assert checker.unordered_raise(stored(2), fleet) == ""


def test_more_than_the_old_target_for_what_is_believed_to_live_is_one() -> None:
    fleet, checker = a_fleet(0)
    fleet.spot_target = 4
    sentence = checker.unordered_raise(stored(4), fleet)
    assert sentence == "raised from 0 to 4 with 0 members, though 4 are known to live"
    fleet, checker = a_fleet(2)
    fleet.spot_target = 5
    assert checker.unordered_raise(stored(3), fleet)


def raised_after_teardown(seconds: float, stands_still_s: float = 0.0) -> list[str]:
    """What is found when a fleet is raised so long after the teardown."""
    made = world()
    name = made.add_fleet("c5.large", "us-east-1a", spot=1, **{"argosy:stage": "main"})
    made.run_for(60)
    facts = TrialFacts(Regions(made), {}, Policy(), stands_still_s=stands_still_s)
    facts.torn_down, facts.torn_down_at = True, made.now - seconds
    FleetChecker(facts).effects()["ec2", "modify_fleet"]({"FleetId": name}, {})
    return [found.invariant for found in facts.violations]


def test_a_raise_after_teardown_is_a_violation_unless_its_sender_may_have_been_paused() -> None:
    assert raised_after_teardown(0.0) == ["kill"]
    assert raised_after_teardown(59.0, stands_still_s=60.0) == []
    assert raised_after_teardown(61.0, stands_still_s=60.0) == ["kill"]
