"""Does the auditor see a task that fails without a reason?"""

from __future__ import annotations

import pytest

from argosy.model.policy import Policy
from argosy.model.tasks import TaskStatus
from argosy.simulation.audit.progress import TaskRow, unfounded_failure

POLICY = Policy(max_losses=20, max_start_failures=3)


@pytest.mark.parametrize(
    ("row", "given_up"),
    [
        (TaskRow(TaskStatus.FAILED, 2, 0, 0), False),  # its attempts are used up
        (TaskRow(TaskStatus.FAILED, 0, 3, 0), False),  # it could not be started again and again
        (TaskRow(TaskStatus.FAILED, 0, 0, 0), True),  # its run was given up
        (TaskRow(TaskStatus.SUCCEEDED, 0, 0, 1), False),
    ],
)
def test_an_end_with_a_reason_is_no_violation(row: TaskRow, given_up: bool) -> None:
    assert not unfounded_failure(row, 2, POLICY, given_up)


def test_a_task_that_fails_with_attempts_left_is_one() -> None:
    sentence = unfounded_failure(TaskRow(TaskStatus.FAILED, 1, 2, 0), 2, POLICY, given_up=False)
    assert sentence == "failed after 1 user attempts of 2 and 2 losses"
