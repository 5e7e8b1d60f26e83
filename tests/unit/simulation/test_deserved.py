"""The auditor's question whether a failure is deserved, and whether anything is tried for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.tasks import TaskStatus
from argosy.simulation import deserved
from tests.builders import RUN_ID

WORKING = replace(RunRecord.of_unreadable(RUN_ID), halted=False)
POLICY = Policy(max_losses=20, max_start_failures=3)


@pytest.mark.parametrize(
    ("record", "row"),
    [
        (WORKING, (TaskStatus.FAILED, 2, 0, 0)),  # its attempts are used up
        (WORKING, (TaskStatus.FAILED, 0, 3, 0)),  # it could not be started again and again
        (replace(WORKING, halted=True), (TaskStatus.FAILED, 1, 0, 0)),  # the whole run was given up
        (WORKING, (TaskStatus.SUCCEEDED, 0, 0, 1)),
    ],
)
def test_an_end_with_a_reason_is_no_violation(record: RunRecord, row: tuple[int, ...]) -> None:
    assert not deserved.failure(record, row, 2, POLICY)


def test_a_task_that_fails_with_attempts_left_is_one() -> None:
    sentence = deserved.failure(WORKING, (TaskStatus.FAILED, 1, 2, 0), 2, POLICY)
    assert sentence == "failed after 1 user attempts of 2 and 2 losses"


def test_an_attempt_that_is_launched_over_and_over_is_one() -> None:
    assert not deserved.launches(deserved.MOST_LAUNCHES)
    assert "in vain" in deserved.launches(deserved.MOST_LAUNCHES + 1)
