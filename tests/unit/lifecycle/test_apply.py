"""The only mutator: the effect of facts on runs, from their submission to their end."""

from __future__ import annotations

import pytest

from argosy.model.actions import Launch, StopAttempt
from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.events import (
    LaunchDisproved,
    LaunchInDoubt,
    ManifestPartWritten,
    NotCarriedOut,
    ResultSeen,
    RunCancelled,
    RunClosed,
    TasksCancelled,
)
from argosy.model.inbox import CancelRequest, CancelTasksRequest
from argosy.model.run_record import RunRecord
from argosy.model.runs import ManifestBound, RunStatus
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.stored.documents import decode, encode
from argosy.model.tasks import TaskStatus
from argosy.scheduler.upkeep import upkeep
from tests.builders import (
    NOW,
    RUN_ID,
    begun,
    instance_id,
    launched,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    status_of,
    submitted,
    task,
    task_arn,
    the_run,
    told,
)


def test_a_submitted_run_waits_for_its_definition_and_then_may_be_placed() -> None:
    state = state_with(submitted())
    assert the_run(state).status is RunStatus.SUBMITTED
    assert not the_run(state).ready
    told(state, prepared())
    assert the_run(state).ready
    assert the_run(state).status is RunStatus.PROVISIONING


def test_a_submission_that_comes_twice_changes_nothing() -> None:
    state = state_with_instance()
    launched(state)
    told(state, submitted())
    assert status_of(state) is TaskStatus.STARTING


def test_an_accepted_launch_starts_the_task_and_a_running_event_runs_it() -> None:
    state = state_with_instance()
    launched(state)
    assert status_of(state) is TaskStatus.STARTING
    told(state, task(1, "RUNNING"))
    assert status_of(state) is TaskStatus.RUNNING
    assert the_run(state).status is RunStatus.RUNNING


def test_cancelling_cancels_what_waits_and_lets_what_runs_be_stopped() -> None:
    state = state_with_instance(tasks=3)
    key = launched(state)
    told(state, task(1, "RUNNING"), RunCancelled(CancelRequest(RUN_ID, NOW, "mistake")))
    assert (status_of(state, 0), status_of(state, 1)) == (TaskStatus.RUNNING, TaskStatus.CANCELLED)
    begun(state, [StopAttempt(task_arn(1), "us-east-1", key, StopCause.CANCELLED, "cancelled")])
    told(state, task(1, "STOPPED", 3, exit_code=143), RunClosed(RUN_ID))
    assert the_run(state).status is RunStatus.CANCELLED
    assert the_run(state).status_reason == "cancelled: mistake"


def intended(state: State) -> AttemptKey:
    """The launch of task 0, of whose outcome nothing is known."""
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    return key


def test_tasks_that_are_cancelled_end_alone_and_the_run_goes_on() -> None:
    state = state_with_instance(tasks=4)
    launched(state)
    told(state, task(1, "RUNNING"), TasksCancelled(CancelTasksRequest(RUN_ID, NOW, ((0, 0), (2, 2), (9, 12)))))
    assert [status_of(state, index).name for index in range(4)] == ["RUNNING", "PENDING", "CANCELLED", "PENDING"]
    (stop,) = upkeep.stops(moment_of(state, NOW))
    assert (stop.key.index, stop.cause, stop.reason) == (0, StopCause.CANCELLED, "argosy: the task was cancelled")
    begun(state, [stop])
    told(state, task(1, "STOPPED", 3, exit_code=143, reason=stop.reason))
    run = the_run(state)
    assert [run.reasons[run.tasks["reason"][index]] for index in (0, 2)] == [stop.reason, "the task was cancelled"]
    assert (status_of(state), run.halted, run.complete) == (TaskStatus.CANCELLED, False, False)


def test_a_task_whose_launch_is_in_doubt_or_unsent_does_not_start_again_once_it_is_cancelled() -> None:
    cancels = TasksCancelled(CancelTasksRequest(RUN_ID, NOW, ((0, 3),)))
    state = state_with_instance(tasks=4)
    key = intended(state)
    told(state, LaunchInDoubt(key, "no reply"), cancels, LaunchDisproved(key))
    assert {status_of(state, index) for index in range(4)} == {TaskStatus.CANCELLED}
    state = state_with_instance(tasks=4)
    key = intended(state)
    told(state, cancels)
    assert (status_of(state), state.row_of(key)) == (TaskStatus.CANCELLED, None)


@pytest.mark.parametrize(("written", "status"), [(1, TaskStatus.SUCCEEDED), (0, TaskStatus.CANCELLED)])
def test_a_task_whose_result_is_being_looked_up_as_it_is_cancelled_keeps_it_or_ends(
    written: int, status: TaskStatus
) -> None:
    state = state_with_instance(tasks=2, expects_result=True)
    launched(state)
    told(state, task(1, "RUNNING"), task(1, "STOPPED", 3, exit_code=0))
    told(state, TasksCancelled(CancelTasksRequest(RUN_ID, NOW, ((0, 0),))), ResultSeen(RUN_ID, 0, attempt=written))
    assert status_of(state) is status


def test_a_task_that_is_cancelled_twice_or_after_its_end_stays_as_it_is() -> None:
    cancels = TasksCancelled(CancelTasksRequest(RUN_ID, NOW, ((0, 0),)))
    state = state_with_instance(tasks=2)
    key = launched(state)
    told(state, task(1, "RUNNING"), cancels, cancels)
    row = state.row_of(key)
    assert row is not None
    assert state.attempts["stop_cause"][row] == StopCause.CANCELLED.value
    told(state, task(1, "STOPPED", 3, exit_code=143), cancels)
    assert status_of(state) is TaskStatus.CANCELLED


def test_a_million_pending_tasks_are_cancelled_without_touching_a_row() -> None:
    state = state_with(submitted(tasks=1_000_000), prepared())
    the_run(state).tasks.committed()
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "")))
    assert the_run(state).complete
    assert not the_run(state).tasks.dirty
    assert the_run(state).tasks.counts()[TaskStatus.CANCELLED] == 1_000_000


def test_a_run_that_cannot_be_closed_is_tried_again_after_growing_pauses_and_given_up_in_the_end() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    refused = NotCarriedOut("run could not be closed: AccessDenied", about=Subject(Act.CLOSE, RUN_ID))
    told(state, refused)
    assert not state.may_try(Act.CLOSE, RUN_ID, NOW)
    assert state.may_try(Act.CLOSE, RUN_ID, NOW + 1)
    assert "AccessDenied" in the_run(state).waiting
    told(state, *[refused] * 100)
    assert state.setbacks[Subject(Act.CLOSE, RUN_ID)].count == 1  # all of one round
    for minute in range(1, 19):
        told(state, refused, now=NOW + 60 * minute)
    assert the_run(state).status is not RunStatus.FAILED
    told(state, refused, now=NOW + 60 * 19)
    assert the_run(state).status is RunStatus.FAILED
    assert the_run(state).status_reason == "not closed: run could not be closed: AccessDenied"


def part_written(first: int, end: int, retries: int = 0, run_id: str = RUN_ID) -> ManifestPartWritten:
    return ManifestPartWritten(run_id, retries, ManifestBound(first), ManifestBound(end))


def test_parts_of_the_manifest_count_once_in_order_and_for_the_present_try_only() -> None:
    state = state_with(submitted(tasks=30), prepared(), RunCancelled(CancelRequest(RUN_ID, NOW, "enough")))
    run = the_run(state)
    for event in (
        part_written(10, 20),  # not yet
        part_written(0, 10, retries=1),  # of another try
        part_written(0, 10),
        part_written(0, 10),  # once more
        part_written(10, 25),
        part_written(0, 10, run_id="nobody-261121-062733-k3f9"),
    ):
        told(state, event)
    assert (run.manifest_bounds, run.manifest_to) == ([(10, 0), (25, 0)], (25, 0))
    assert run.waiting == "its results are being listed: 25 of 30 tasks"
    told(state, RunClosed(RUN_ID))
    told(state, part_written(25, 30))
    assert run.manifest_bounds == [(10, 0), (25, 0)]


def test_a_part_that_ends_within_a_task_says_where_the_next_one_begins_and_one_without_objects_only_that() -> None:
    state = state_with(submitted(tasks=30), prepared(), RunCancelled(CancelRequest(RUN_ID, NOW, "enough")))
    run, within = the_run(state), ManifestBound(10, 20_000)
    told(state, part_written(0, 10), ManifestPartWritten(RUN_ID, 0, ManifestBound(10), within, "attempts/a"))
    assert run.waiting == "its results are being listed: 10 of 30 tasks, and 20,000 objects of the next one"
    assert (run.manifest_to, run.manifest_after) == (within, "attempts/a")
    told(state, ManifestPartWritten(RUN_ID, 0, within, within, "attempts/b"))
    assert (run.manifest_bounds, run.manifest_after) == ([(10, 0), within], "attempts/b")
    assert RunRecord.from_json(decode(encode(RunRecord.of(run).to_json()))) == RunRecord.of(run)
    told(state, ManifestPartWritten(RUN_ID, 0, within, ManifestBound(30)))
    assert (run.manifest_to, run.manifest_after) == ((30, 0), "")
