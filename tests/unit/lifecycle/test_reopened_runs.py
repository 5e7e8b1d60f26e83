"""What does a retried run start with?"""

from __future__ import annotations

import numpy as np

from argosy.lifecycle import revival
from argosy.model.events import ResultSeen
from argosy.model.inbox import RetryRequest
from argosy.model.program_versions import ProgramVersion
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, RunStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    launched,
    state_with_instance,
    status_of,
    stored,
    submitted,
    task,
    the_run,
    told,
)


def test_a_task_that_was_given_up_for_its_losses_may_be_lost_as_often_again() -> None:
    state = state_with_instance(tasks=1)
    for attempt in range(1, 21):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, stop_code="SpotInterruption"))
    assert status_of(state) is TaskStatus.FAILED
    revival.reopen(state, RetryRequest(RUN_ID, NOW), the_run(state))
    revival.revive(state, the_run(state), POLICY)
    launched(state, number=21, attempt=21)
    told(state, task(21, "STOPPED", 3, stop_code="SpotInterruption"))
    assert (status_of(state), the_run(state).tasks["losses"][0]) == (TaskStatus.PENDING, 1)


def set_aside(state: State) -> Run:
    """The run, as it is stored, when it is not among the open ones."""
    return state.runs.pop(RUN_ID)


def tried_again(state: State, run: Run) -> None:
    revival.reopen(state, RetryRequest(RUN_ID, NOW), run)
    revival.revive(state, run, POLICY)


def test_a_live_task_of_an_unknown_attempt_gets_the_next_number_and_a_first_launch() -> None:
    state = state_with_instance(tasks=2)
    run = set_aside(state)
    run.tasks.set(0, status=TaskStatus.RUNNING, attempts=3, launch=2)
    tried_again(state, run)
    assert [run.tasks[name].tolist() for name in ("attempts", "launch")] == [[4, 0], [0, 0]]
    assert (status_of(state), status_of(state, 1)) == (TaskStatus.PENDING, TaskStatus.PENDING)


def test_a_run_whose_number_was_taken_in_the_meantime_gets_another() -> None:
    state = state_with_instance(tasks=2)
    run = set_aside(state)
    told(state, submitted("other-261121-062733-k3f9"))
    (other,) = state.runs.values()
    other.number = run.number
    tried_again(state, run)
    assert run.number != other.number
    assert state.next_run > max(run.number, other.number)


def test_every_task_of_a_run_that_is_taken_in_to_be_cancelled_is_checked() -> None:
    state = state_with_instance(tasks=3)
    run = set_aside(state)
    for index in range(3):
        run.tasks.set(index, status=TaskStatus.RUNNING)
    assert revival.adopt(state, run) is run
    run.cancelled = True
    revival.revive(state, run, POLICY)
    assert run.tasks.counts()[TaskStatus.CANCELLED] == 3


def test_the_manifest_of_the_next_end_begins_where_the_first_task_does() -> None:
    state = state_with_instance(tasks=1)
    run = set_aside(state)
    run.manifest_after = "0000/rest"
    tried_again(state, run)
    assert stored(state, {}).runs[RUN_ID].manifest_after == ""


def ended_with(*statuses: TaskStatus, halted: bool = False) -> tuple[State, Run]:
    state = state_with_instance(tasks=len(statuses))
    run = set_aside(state)
    for index, status in enumerate(statuses):
        run.tasks.set(index, status=status)
    run.status, run.tasks.halted = RunStatus.PARTIAL, halted
    return state, run


DONE, FAILED, CANCELLED, PENDING = TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.PENDING


def test_of_chosen_tasks_no_others_run_again_whatever_they_ended_as() -> None:
    """Those that a halt had left pending count as cancelled."""
    state, run = ended_with(FAILED, FAILED, DONE, CANCELLED, CANCELLED, PENDING, PENDING, halted=True)
    revival.reopen(state, RetryRequest(RUN_ID, NOW, cancelled=True, tasks=((1, 1), (3, 3), (5, 5))), run)
    revival.revive(state, run, POLICY)
    assert run.tasks["status"].tolist() == [FAILED, PENDING, DONE, PENDING, CANCELLED, PENDING, CANCELLED]
    assert not run.halted
    revival.reopen(state, RetryRequest(RUN_ID, NOW, cancelled=True), run)
    assert not run.revives, "what is to run again was said already"


def test_stretches_may_come_in_any_order_and_overlap() -> None:
    state, run = ended_with(*[FAILED] * 8)
    revival.reopen(state, RetryRequest(RUN_ID, NOW, tasks=((5, 6), (0, 3), (1, 1))), run)
    revival.revive(state, run, POLICY)
    assert [index for index, status in enumerate(run.tasks["status"]) if status == PENDING] == [0, 1, 2, 3, 5, 6]


def test_the_next_retry_is_about_all_tasks_again() -> None:
    state, run = ended_with(*[FAILED] * 3)
    revival.reopen(state, RetryRequest(RUN_ID, NOW, tasks=((0, 0),)), run)
    revival.revive(state, run, POLICY)
    run.tasks.set(0, status=FAILED)
    run.status = RunStatus.FAILED
    revival.reopen(state, RetryRequest(RUN_ID, NOW), run)
    revival.revive(state, run, POLICY)
    assert (run.chosen, run.tasks["status"].tolist()) == ([], [PENDING] * 3)


def test_a_second_retry_of_other_tasks_sets_its_budget_too() -> None:
    state, run = ended_with(FAILED, CANCELLED)
    revival.reopen(state, RetryRequest(RUN_ID, NOW), run)
    revival.reopen(state, RetryRequest(RUN_ID, NOW, failed=False, cancelled=True, budget_usd=7.5), run)
    revival.revive(state, run, POLICY)
    assert run.tasks["status"].tolist() == [PENDING, PENDING]
    assert stored(state, {}).runs[RUN_ID].terms.budget_usd == 7.5


JOBS = "s3://b/argosy/programs/jobs/"
FIRST, SECOND, THIRD = (f"{JOBS}{name}.json" for name in ("1a", "2b", "3c"))


def with_program(*statuses: TaskStatus, halted: bool = False) -> tuple[State, Run]:
    state, run = ended_with(*statuses, halted=halted)
    run.programs = [ProgramVersion(FIRST, NOW)]
    run.tasks.set_many(np.arange(len(statuses)), attempts=2)
    return state, run


def columns(run: Run) -> list[list[int]]:
    return [run.tasks[name].tolist() for name in ("program", "first")]


def test_only_retried_tasks_run_another_version_and_what_the_earlier_one_left_of_them_does_not_count() -> None:
    """Tasks that a halt had left pending are among them; one of those that are not chosen stays."""
    state, run = with_program(DONE, FAILED, CANCELLED, PENDING, FAILED, halted=True)
    request = RetryRequest(RUN_ID, NOW, cancelled=True, tasks=((1, 3),), job=SECOND)
    revival.reopen(state, request, run)
    revival.revive(state, run, POLICY)
    assert [each.job for each in run.programs] == [FIRST, SECOND]
    assert columns(run) == [[0, 1, 1, 1, 0], [0, 3, 3, 3, 0]]
    again = stored(state, {}).runs[RUN_ID]
    assert (again.programs, columns(again)) == (run.programs, columns(run))
    assert [again.spec_of(index).get("job") for index in (0, 1)] == [again.spec.get("job"), SECOND]


def test_a_retry_without_a_program_runs_the_latest_version_and_the_same_program_is_no_other_version() -> None:
    state, run = with_program(FAILED, FAILED)
    for request in (RetryRequest(RUN_ID, NOW, tasks=((0, 0),), job=SECOND), RetryRequest(RUN_ID, NOW, job=SECOND)):
        revival.reopen(state, request, run)
        revival.revive(state, run, POLICY)
        run.tasks.set_many(np.arange(2), status=FAILED)
        run.status = RunStatus.FAILED
    assert columns(run) == [[1, 1], [3, 3]]
    revival.reopen(state, RetryRequest(RUN_ID, NOW), run)
    revival.revive(state, run, POLICY)
    assert (len(run.programs), columns(run)) == (2, [[1, 1], [3, 3]])


def test_a_retry_that_is_cancelled_before_its_tasks_are_pending_changes_no_version() -> None:
    state, run = with_program(FAILED)
    revival.reopen(state, RetryRequest(RUN_ID, NOW, job=SECOND), run)
    run.cancelled = True
    revival.revive(state, run, POLICY)
    assert columns(run) == [[0], [0]]


def test_a_second_retry_with_a_program_does_not_change_the_tasks_of_the_first_one() -> None:
    state, run = with_program(FAILED, CANCELLED)
    revival.reopen(state, RetryRequest(RUN_ID, NOW, job=SECOND), run)
    revival.reopen(state, RetryRequest(RUN_ID, NOW, failed=False, cancelled=True, job=THIRD), run)
    revival.revive(state, run, POLICY)
    assert (run.tasks["status"].tolist(), run.programs[-1].job) == ([PENDING, CANCELLED], SECOND)
    assert columns(run) == [[1, 0], [3, 0]]


def test_a_run_that_an_earlier_argosy_stored_has_the_version_of_its_spec() -> None:
    run = the_run(state_with_instance(tasks=1))
    older = {name: value for name, value in RunRecord.of(run).to_json().items() if name != "programs"}
    again = RunRecord.from_json(older).to_run({**run.spec, "job": FIRST}, run.submitted_terms, run.tasks)
    assert again.programs == [ProgramVersion(FIRST, run.submitted_at)]


def test_a_part_of_an_attempt_before_the_tasks_version_is_no_result() -> None:
    state = state_with_instance(tasks=1)
    run = the_run(state)
    run.expects_result = True
    run.programs = [ProgramVersion(FIRST, NOW), ProgramVersion(SECOND, NOW)]
    run.tasks.set(0, program=1, first=2, attempts=1)
    launched(state, attempt=2)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    assert status_of(state) is TaskStatus.VERIFYING
    told(state, ResultSeen(RUN_ID, 0, 1))
    assert status_of(state) is not TaskStatus.SUCCEEDED
    run.tasks.set(0, status=TaskStatus.VERIFYING)
    told(state, ResultSeen(RUN_ID, 0, 2))
    assert (status_of(state), run.programs[1].results, run.programs[1].attempts) == (TaskStatus.SUCCEEDED, 1, 1)
