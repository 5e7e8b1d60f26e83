"""Does the auditor see work in a closed cell, and instances left there?"""

from __future__ import annotations

import pytest

from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.policy import Policy
from tests.fakes.worlds import world
from tests.harness.simulation.audit.cells import FREED_S, UNDER_WAY_S, CellChecker
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt
from tests.harness.simulation.world.regions import Regions

REGION = "us-east-1"


def closed_for(seconds: float, stands_still_s: float = 0.0) -> tuple[TrialFacts, CellChecker, str]:
    """A cell of one instance, closed so long ago, and its fleet."""
    made = world()
    fleet = made.add_fleet("c5.large", "us-east-1a", spot=1, **{"argosy:stage": "main"})
    made.run_for(60)
    facts = TrialFacts(Regions(made), {}, Policy(), stands_still_s=stands_still_s)
    facts.closed[REGION] = made.now - seconds
    return facts, CellChecker(facts), fleet


def raised(facts: TrialFacts, checker: CellChecker, fleet: str, target: int) -> list[str]:
    facts.regions.fleet(fleet).spot_target = target
    checker.effects()["ec2", "modify_fleet"]({"FleetId": fleet}, {})
    return [found.invariant for found in facts.violations]


def test_a_fleet_that_is_raised_in_a_closed_cell_is_a_violation_unless_it_was_under_way() -> None:
    assert raised(*closed_for(UNDER_WAY_S - 1), 2) == []
    assert raised(*closed_for(UNDER_WAY_S + 1), 2) == ["closed"]
    assert raised(*closed_for(UNDER_WAY_S + 1), 1) == []  # which launches nothing
    assert raised(*closed_for(UNDER_WAY_S + 1, stands_still_s=60.0), 2) == []


def test_so_is_work_that_is_placed_there() -> None:
    facts, checker, _ = closed_for(UNDER_WAY_S + 1)
    facts.stored.instances["i-1"] = {"cell": REGION}
    intent = StoredAttempt(AttemptKey("run", 0, 1, 0), "i-1", AttemptStatus.INTENT, "")
    checker.committed(Commit(0, {}, [intent], frozenset()))
    assert [found.invariant for found in facts.violations] == ["closed"]


@pytest.mark.parametrize(("seconds", "expected"), [(FREED_S - 1, []), (FREED_S + 1, ["closed"])])
def test_instances_that_outlive_the_watchdogs_are_a_violation(seconds: float, expected: list[str]) -> None:
    facts, checker, _ = closed_for(seconds)
    checker.time_passed()
    assert [found.invariant for found in facts.violations] == expected
