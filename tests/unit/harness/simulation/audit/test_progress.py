"""Does the auditor see a task that fails without a reason, and the objects that a manifest has to name?"""

from __future__ import annotations

import pytest

from argosy.model.policy import Policy
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.facts import TrialResults
from tests.harness.simulation.audit.progress import TaskRow, objects_left, unfounded_failure
from tests.harness.simulation.world.s3 import StoredObject

POLICY = Policy(max_losses=20, max_start_failures=3)


@pytest.mark.parametrize(
    ("row", "given_up"),
    [
        (TaskRow(TaskStatus.FAILED, 2, 0, 0), False),  # its attempts are used up
        (TaskRow(TaskStatus.FAILED, 0, 3, 0), False),  # it could not be started repeatedly
        (TaskRow(TaskStatus.FAILED, 0, 0, 0), True),  # its run was given up
        (TaskRow(TaskStatus.SUCCEEDED, 0, 0, 1), False),
    ],
)
def test_an_end_with_a_reason_is_no_violation(row: TaskRow, given_up: bool) -> None:
    assert not unfounded_failure(row, 2, POLICY, given_up)


def test_a_manifest_has_to_name_the_part_and_the_files_of_the_committed_attempt() -> None:
    names = ["parts/part-0000001.csv", "attempts/0000001/2/b/c", "attempts/0000001/2/a", "attempts/0000001/1/a"]
    keys = {("results", f"run/{name}"): StoredObject(b"") for name in [*names, "spec.json", "attempts/0000002/2/a"]}
    left = objects_left("s3://results/run/", TrialResults(keys, None, 0.0))  # type: ignore[arg-type]
    assert left(1, 2) == [f"run/{name}" for name in (names[0], names[2], names[1])]
    assert left(1, 3) == ["run/" + names[0]]
    assert left(1, 0) == left(0, 1) == []


def test_a_task_that_fails_with_attempts_left_is_one() -> None:
    sentence = unfounded_failure(TaskRow(TaskStatus.FAILED, 1, 2, 0), 2, POLICY, given_up=False)
    assert sentence == "failed after 1 user attempts of 2 and 2 losses"
