"""Which attempts does the auditor miss in a history, and which need no row?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.lifecycle.suspension import CANCELLED, GIVEN_UP
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import Commit, TrialFacts, TrialResults
from tests.harness.simulation.audit.history import HistoryChecker
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.regions import Regions

RUN_ID = "victim-261121-062733-aaaa"
CLOSED = {"status": RunStatus.CANCELLED, "attempts": 3}
REOPENED = {"status": RunStatus.SUBMITTED, "attempts": 3}


def violations(*records: dict[str, Any]) -> list[str]:
    """For a run whose record was stored in these forms, one after the other, without any row."""
    facts = TrialFacts(Regions(world()), {}, Policy())
    checker = HistoryChecker(facts)
    for values in records:
        facts.stored.records[RUN_ID] = replace(RunRecord.of_unreadable(RUN_ID), **{"status_reason": "", **values})
        checker.committed(Commit(0, {}, [], frozenset()))
    checker.at_rest(TrialResults({}, Bill(), 0.0))
    return [each.invariant for each in facts.violations]


def test_attempts_without_a_row_are_a_violation() -> None:
    assert violations(CLOSED) == violations(CLOSED, REOPENED, CLOSED) == ["H3"]


@pytest.mark.parametrize("reason", [CANCELLED, GIVEN_UP.format("has failed")])
def test_those_alive_when_their_run_was_closed_unwatched_need_none_not_even_once_it_is_retried(reason: str) -> None:
    unwatched = {**CLOSED, "status_reason": f"{reason}; a fault"}
    assert violations(unwatched) == violations(unwatched, REOPENED, CLOSED) == []


def test_those_of_the_retry_do() -> None:
    unwatched = {**CLOSED, "status_reason": CANCELLED}
    assert violations(unwatched, REOPENED, {**CLOSED, "attempts": 4}) == ["H3"]
