"""Does the auditor see a definition that goes too early, and one that stays?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from tests.builders import RUN_ID
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import TrialFacts, TrialResults
from tests.harness.simulation.audit.launches import DefinitionChecker
from tests.harness.simulation.world.regions import Regions

FAMILY = "argosy-0a1b2c3d4e5f"


def checked(**facts: Any) -> tuple[DefinitionChecker, str]:
    """A checker of a world with a definition of ours."""
    made = world()
    container = {"name": "main", "image": "busybox", "cpu": 256, "memory": 256}
    arn = made.ecs.register_task_definition(family=FAMILY, containerDefinitions=[container])["taskDefinition"]
    return DefinitionChecker(TrialFacts(Regions(made), {}, Policy(), **facts)), arn["taskDefinitionArn"]


def found_when_deregistered(status: RunStatus, pinned: bool = True, **facts: Any) -> list[str]:
    checker, arn = checked(**facts)
    record = replace(RunRecord.of_unreadable(RUN_ID), status=status, task_definition=arn if pinned else "another")
    checker.facts.stored.records[RUN_ID] = record
    [check] = checker.effects().values()
    check({}, {"taskDefinition": {"taskDefinitionArn": arn}})
    return [violation.invariant for violation in checker.facts.violations]


def test_a_definition_that_goes_under_an_open_run_is_seen() -> None:
    assert found_when_deregistered(RunStatus.RUNNING, one_controller=True) == ["definitions"]
    assert found_when_deregistered(RunStatus.RUNNING) == []
    assert found_when_deregistered(RunStatus.RUNNING, pinned=False, one_controller=True) == []
    assert found_when_deregistered(RunStatus.SUCCEEDED, one_controller=True) == []


def test_a_definition_that_is_left_at_rest_is_seen_where_nothing_went_wrong() -> None:
    found = {}
    for calm in (True, False):
        checker, arn = checked(nothing_goes_wrong=calm)
        checker.at_rest(TrialResults({}, None, 0.0))  # type: ignore[arg-type]
        found[calm] = [violation.names for violation in checker.facts.violations]
    assert found == {True: [(arn,)], False: []}
