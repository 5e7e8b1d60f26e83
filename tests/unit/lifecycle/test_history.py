"""Every attempt leaves one row when it is over, and launches that never happened leave none."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.lifecycle.suspension import suspend
from argosy.model.actions import Launch, StopAttempt
from argosy.model.attempts import StopCause
from argosy.model.ended_attempts import EndedAttempt, Outcome, from_bytes
from argosy.model.events import (
    HostStateChanged,
    LaunchDisproved,
    LaunchInDoubt,
    LaunchRefused,
    ResultSeen,
)
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.stored import documents
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    begun,
    instance_id,
    launched,
    state_with_instance,
    task,
    task_arn,
    the_run,
    told,
)
from tests.fakes.aws import KEY

END = NOW + 60
SHUTDOWN = "TerminationNotice"


def noted(state: State) -> list[EndedAttempt]:
    """As the next commit appends them."""
    stored = documents.changed(state)
    bodies = [body for (partition, _), body in stored.items() if partition == documents.history_partition(RUN_ID)]
    return [row for body in bodies for row in from_bytes(body).rows()]


@pytest.mark.parametrize(
    ("stop", "cause", "outcome"),
    [
        ({"exit_code": 0}, None, Outcome.SUCCEEDED),
        ({"exit_code": 3}, None, Outcome.FAILED),
        ({"exit_code": 137}, StopCause.TIMED_OUT, Outcome.TIMED_OUT),
        ({"exit_code": 143}, StopCause.INTERRUPTED, Outcome.INTERRUPTED),
        ({"stop_code": SHUTDOWN}, None, Outcome.INTERRUPTED),
        ({"stop_code": "TaskFailedToStart"}, None, Outcome.LOST),
        ({"exit_code": 143}, StopCause.STUCK, Outcome.LOST),
        ({"reason": "CannotPullContainerError: no such image"}, None, Outcome.NOT_STARTED),
        ({"exit_code": 143}, StopCause.CANCELLED, Outcome.CANCELLED),
        ({"exit_code": 143}, StopCause.CAPPED, Outcome.CANCELLED),
    ],
)
def test_a_row_says_how_an_attempt_ended(stop: dict[str, Any], cause: StopCause | None, outcome: Outcome) -> None:
    state = state_with_instance(timeout={"attemptDurationSeconds": 60})
    key = launched(state)
    told(state, task(1, "RUNNING"))
    if cause is not None:
        begun(state, [StopAttempt(task_arn(1), CELL, key, cause, "why")])
    told(state, task(1, "STOPPED", 3, started_at=NOW + 1, stopped_at=END, **stop), now=END)
    (row,) = noted(state)
    assert row.outcome is outcome
    assert (row.index, row.attempt, row.instance, row.task_id) == (0, 1, instance_id(1), task_arn(1)[-32:])
    assert (row.started_at, row.stopped_at) == (NOW + 1, END)
    assert row.exit_code == stop.get("exit_code", -32768)
    assert bool(the_run(state).reasons[row.reason]) is (outcome is not Outcome.SUCCEEDED)


def test_rows_are_appended_under_the_version_that_their_commit_makes_and_once() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    state.version = 41
    assert (documents.history_partition(RUN_ID), "000000000042") in documents.changed(state)
    documents.committed(state)
    assert noted(state) == []


def test_a_launch_that_never_happened_was_no_attempt() -> None:
    state = state_with_instance()
    begun(state, [Launch(KEY, 1, state.started_by(1), instance_id(1), CELL)])
    told(state, LaunchRefused(KEY, "RESOURCE:CPU"))
    again = KEY._replace(launch=1)
    begun(state, [Launch(again, 2, state.started_by(2), instance_id(1), CELL)])
    told(state, LaunchInDoubt(again, "no reply"), LaunchDisproved(again))
    assert noted(state) == []


def test_a_launch_that_can_no_longer_be_resolved_was_an_attempt_and_is_lost() -> None:
    state = state_with_instance()
    begun(state, [Launch(KEY, 1, state.started_by(1), instance_id(1), CELL)])
    told(state, LaunchInDoubt(KEY, "no reply"))
    told(state, LaunchDisproved(KEY), now=NOW + POLICY.ecs_memory_s)
    (row,) = noted(state)
    assert (row.outcome, row.task_id, row.started_at) == (Outcome.LOST, "", 0.0)


def test_an_attempt_that_left_no_result_is_amended() -> None:
    state = state_with_instance(expects_result=True)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0, stopped_at=END))
    documents.committed(state)
    told(state, ResultSeen(RUN_ID, 0, 0))
    (row,) = noted(state)
    assert (row.index, row.attempt, row.outcome, row.amends) == (0, 1, Outcome.FAILED, True)
    assert the_run(state).reasons[row.reason] == "the program succeeded but wrote no result"


@pytest.mark.parametrize(
    ("cause", "outcome"), [(StopCause.STUCK, Outcome.LOST), (StopCause.INTERRUPTED, Outcome.INTERRUPTED)]
)
def test_one_that_was_stopped_before_it_wrote_its_result_is_amended_as_lost(cause: StopCause, outcome: Outcome) -> None:
    state = state_with_instance(expects_result=True)
    key = launched(state)
    begun(state, [StopAttempt(task_arn(1), CELL, key, cause, "why")])
    told(state, task(1, "STOPPED", 3, exit_code=0, stopped_at=END))
    told(state, ResultSeen(RUN_ID, 0, 0))
    assert [row.outcome for row in noted(state)] == [Outcome.SUCCEEDED, outcome]


def test_an_attempt_of_a_suspended_run_that_goes_with_its_instance_leaves_a_row() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"))
    suspend(state, RunRecord.of(the_run(state)), "it fails", NOW)
    told(state, HostStateChanged(instance_id(1), "terminated", END))
    (row,) = noted(state)
    assert (row.outcome, row.started_at, row.stopped_at) == (Outcome.INTERRUPTED, NOW, END)


def test_many_rows_count_as_what_a_commit_holds() -> None:
    state = state_with_instance()
    before = state.dirty_documents, state.dirty_bytes
    state.ended[RUN_ID] = [EndedAttempt(row, 1, Outcome.FAILED) for row in range(5_001)]
    assert (state.dirty_documents - before[0], state.dirty_bytes - before[1]) == (2, 200_040)
