"""When is a task tried again, and against which budget does an end count?"""

from __future__ import annotations

import pytest

from argosy.lifecycle import revival
from argosy.model.actions import StopAttempt
from argosy.model.attempts import StopCause
from argosy.model.events import (
    InterruptionWarned,
)
from argosy.model.inbox import RetryRequest
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    begun,
    instance_id,
    launched,
    state_with_instance,
    status_of,
    task,
    task_arn,
    the_run,
    told,
)


def test_a_user_failure_is_retried_after_a_back_off_until_the_attempts_are_used_up() -> None:
    state = state_with_instance()
    for attempt in (1, 2, 3):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, exit_code=1))
        if attempt < 3:
            assert status_of(state) is TaskStatus.PENDING
            assert the_run(state).tasks["not_before"][0] == NOW + 2 ** (attempt - 1)
    assert status_of(state) is TaskStatus.FAILED
    assert the_run(state).tasks["attempts"][0] == 3


def test_an_exit_rule_ends_the_task_at_once() -> None:
    rules = {"attempts": 3, "evaluateOnExit": [{"onExitCode": "6*", "action": "EXIT"}]}
    state = state_with_instance(retryStrategy=rules)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=64))
    assert status_of(state) is TaskStatus.FAILED


def test_a_failure_that_no_rule_matches_is_retried() -> None:
    rules = {"attempts": 3, "evaluateOnExit": [{"onExitCode": "64", "action": "EXIT"}]}
    state = state_with_instance(retryStrategy=rules)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=1))
    assert status_of(state) is TaskStatus.PENDING


def test_the_first_matching_rule_decides() -> None:
    rules = {
        "attempts": 3,
        "evaluateOnExit": [
            {"onExitCode": "1", "onReason": "*keep*", "action": "RETRY"},
            {"onExitCode": "1", "action": "EXIT"},
        ],
    }
    state = state_with_instance(retryStrategy=rules)
    launched(state, index=0, number=1)
    launched(state, index=1, number=2)
    told(state, task(1, "STOPPED", 3, exit_code=1, container_reason="please keep trying"))
    told(state, task(2, "STOPPED", 3, exit_code=1, reason="no"))
    assert (status_of(state, 0), status_of(state, 1)) == (TaskStatus.PENDING, TaskStatus.FAILED)


@pytest.mark.parametrize(
    "how",
    [
        {"stop_code": "SpotInterruption"},
        {"stop_code": "TerminationNotice", "reason": "Host EC2 (instance i-1) terminated."},
        {"reason": "Host EC2 (instance i-1) stopped."},
        {"exit_code": None, "stop_code": "TaskFailedToStart"},
    ],
)
def test_losses_to_infrastructure_use_up_no_user_attempt(how: dict[str, object]) -> None:
    state = state_with_instance(retryStrategy={"attempts": 1})
    for attempt in (1, 2, 3):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, **how))
    assert status_of(state) is TaskStatus.PENDING
    assert the_run(state).tasks["losses"][0] == 3
    assert the_run(state).tasks["user_failures"][0] == 0
    assert the_run(state).interruptions == (0 if how.get("stop_code") == "TaskFailedToStart" else 3)


def test_a_task_stopped_for_an_interruption_is_redone_even_if_it_exits_143() -> None:
    state = state_with_instance(retryStrategy={"attempts": 1})
    key = launched(state)
    told(state, task(1, "RUNNING"), InterruptionWarned(instance_id(1), NOW))
    begun(state, [StopAttempt(task_arn(1), "us-east-1", key, StopCause.INTERRUPTED, "going")])
    told(state, task(1, "STOPPED", 3, exit_code=143, stop_code="UserInitiated"))
    assert status_of(state) is TaskStatus.PENDING


def test_a_task_that_is_lost_again_and_again_is_given_up() -> None:
    state = state_with_instance()
    for attempt in range(1, 21):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, stop_code="SpotInterruption"))
    assert status_of(state) is TaskStatus.FAILED
    assert "20 losses" in the_run(state).failures[-1].reason


def test_an_image_that_cannot_be_pulled_is_given_up_after_three_tries() -> None:
    state = state_with_instance(tasks=1)
    for attempt in (1, 2, 3):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, reason="CannotPullContainerError: no such image"))
    assert status_of(state) is TaskStatus.FAILED


def test_an_attempt_over_its_time_is_charged_to_the_user() -> None:
    state = state_with_instance(retryStrategy={"attempts": 1}, timeout={"attemptDurationSeconds": 60})
    key = launched(state)
    begun(state, [StopAttempt(task_arn(1), "us-east-1", key, StopCause.TIMED_OUT, "too long")])
    told(state, task(1, "STOPPED", 3, exit_code=137))
    assert status_of(state) is TaskStatus.FAILED
    assert "longer than 60 s" in the_run(state).failures[-1].reason


def test_a_run_whose_first_tasks_fail_in_the_same_way_stops_and_says_so() -> None:
    state = state_with_instance(tasks=50, retryStrategy={"attempts": 1})
    for index in range(5):
        launched(state, index=index, number=index + 1)
        told(state, task(index + 1, "STOPPED", 3, exit_code=2, reason="no such flag"))
    assert "failed alike (exit code 2): no such flag" in the_run(state).status_reason
    assert status_of(state, 49) is TaskStatus.CANCELLED
    assert the_run(state).final_status is RunStatus.FAILED


def failing_alike(state: State, count: int, first: int = 0) -> None:
    for index in range(first, first + count):
        launched(state, index=index, number=index + 1)
        told(state, task(index + 1, "STOPPED", 3, exit_code=2, reason="no such flag"))


def test_a_spec_says_how_many_failures_alike_stop_its_run_and_the_reason_names_the_switch() -> None:
    state = state_with_instance(tasks=50, retryStrategy={"attempts": 1, "stopAfterAlike": 7})
    failing_alike(state, 6)
    assert status_of(state, 49) is TaskStatus.PENDING
    failing_alike(state, 1, first=6)
    assert "retryStrategy.stopAfterAlike" in the_run(state).status_reason
    assert status_of(state, 49) is TaskStatus.CANCELLED


def test_a_spec_may_say_that_failures_alike_never_stop_its_run() -> None:
    state = state_with_instance(tasks=50, retryStrategy={"attempts": 1, "stopAfterAlike": "never"})
    failing_alike(state, 20)
    assert status_of(state, 49) is TaskStatus.PENDING


def test_a_retry_of_the_tasks_that_were_never_tried_counts_its_own_failures() -> None:
    state = state_with_instance(tasks=50, retryStrategy={"attempts": 1})
    failing_alike(state, 5)
    run = the_run(state)
    run.status = run.final_status
    revival.reopen(state, RetryRequest(RUN_ID, NOW, failed=False, cancelled=True), run)
    revival.revive(state, run, POLICY)
    run.task_definition = "prepared"
    failing_alike(state, 4, first=5)
    assert status_of(state, 49) is TaskStatus.PENDING
    failing_alike(state, 1, first=9)
    assert status_of(state, 49) is TaskStatus.CANCELLED


def test_different_failures_do_not_stop_the_run() -> None:
    state = state_with_instance(tasks=50, retryStrategy={"attempts": 1})
    for index in range(5):
        launched(state, index=index, number=index + 1)
        told(state, task(index + 1, "STOPPED", 3, exit_code=2 + index % 2))
    assert status_of(state, 49) is TaskStatus.PENDING


def test_the_two_kinds_of_reason_are_matched_apart() -> None:
    rules = {
        "attempts": 3,
        "evaluateOnExit": [
            {"onStatusReason": "OutOf*", "action": "RETRY"},
            {"onReason": "OutOf*", "action": "EXIT"},
        ],
    }
    state = state_with_instance(retryStrategy=rules)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=137, container_reason="OutOfMemoryError: killed"))
    assert status_of(state) is TaskStatus.FAILED


@pytest.mark.parametrize(
    "reason",
    ["ResourceInitializationError: no log group", "CannotStartContainerError: no file", "CannotCreate: x"],
)
def test_a_container_that_cannot_be_started_is_given_up_after_three_tries(reason: str) -> None:
    state = state_with_instance(tasks=1)
    for attempt in (1, 2, 3):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, reason=reason, stop_code="TaskFailedToStart"))
    assert status_of(state) is TaskStatus.FAILED
    assert the_run(state).interruptions == 0


def test_a_registry_that_asks_to_go_slower_costs_patience_and_no_task() -> None:
    """Twenty times in a row; the third failure to start for another reason gives a task up (reliability.md row 49)."""
    state = state_with_instance(tasks=1)
    reason = "CannotPullContainerError: toomanyrequests: Rate exceeded"
    now, pauses = NOW, []
    for number in range(1, POLICY.max_losses):
        launched(state, number=number, attempt=number, now=now)
        told(state, task(number, "STOPPED", 3, reason=reason, stop_code="TaskFailedToStart"), now=now)
        run = state.runs[RUN_ID]
        assert run.tasks["status"][0] == TaskStatus.PENDING
        pauses.append(float(run.tasks["not_before"][0]) - now)
        now += 1000
    assert pauses[:6] == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0]
    assert max(pauses) == 320.0
    assert run.tasks["user_failures"][0] == 0
    assert state.instances[instance_id(1)].strikes == 0  # it is no instance's fault


PROGRAM = {"run": ["python", "main.py"], "container": {"image": "argosy/python"}}


def test_what_the_runner_calls_a_wrong_request_is_not_repeated() -> None:
    state = state_with_instance(**PROGRAM)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=64))
    assert status_of(state) is TaskStatus.FAILED
    assert "log" in the_run(state).failures[-1].reason


def test_a_rule_of_the_spec_comes_before_the_runners() -> None:
    rules = {"attempts": 3, "evaluateOnExit": [{"onExitCode": "*", "action": "RETRY"}]}
    state = state_with_instance(**PROGRAM, retryStrategy=rules)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=64))
    assert status_of(state) is TaskStatus.PENDING


def test_the_exit_codes_of_the_runner_are_the_programs_own_where_there_is_no_runner() -> None:
    for code in (64, 75):
        state = state_with_instance()
        launched(state)
        told(state, task(1, "STOPPED", 3, exit_code=code))
        assert status_of(state) is TaskStatus.PENDING
        assert the_run(state).tasks["user_failures"][0] == 1


def test_s3_that_fails_the_runner_uses_up_no_attempt_of_the_user_and_is_given_up_in_the_end() -> None:
    state = state_with_instance(**PROGRAM, retryStrategy={"attempts": 1})
    for attempt in range(1, POLICY.max_start_failures + 1):
        assert status_of(state) is TaskStatus.PENDING
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, exit_code=75))
        assert the_run(state).tasks["user_failures"][0] == 0
    assert status_of(state) is TaskStatus.FAILED
    assert "S3" in the_run(state).failures[-1].reason
