"""A failure is booked on the user once its instance is known not to have been going down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.lifecycle.apply import pass_time
from argosy.lifecycle.suspension import bare_record, resume, suspend
from argosy.model.actions import LookUpHosts, StopAttempt, VerifyResult
from argosy.model.attempts import StopCause
from argosy.model.events import Event, HostStateChanged, InterruptionWarned, RebalanceAdvised, ResultSeen
from argosy.model.instances import InstanceStatus
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from tests.builders import (
    CELL,
    NOW,
    RUN_ID,
    begun,
    container_instance,
    host,
    instance_id,
    launched,
    moment_of,
    state_with_instance,
    stored,
    task,
    task_arn,
    told,
)

POLICY = Policy()
SOON = NOW + POLICY.fate_s
CODES = [143, 137, 1]


def ended(exit_code: int = 143, **how: object) -> State:
    """The only attempt of the run's first task has failed, and it may fail once."""
    state = state_with_instance(retryStrategy={"attempts": 1})
    launched(state)
    return told(state, task(1, "RUNNING"), task(1, "STOPPED", 3, exit_code=exit_code, **how), policy=POLICY)


def later(state: State, now: float, policy: Policy = POLICY) -> tuple[TaskStatus, int, int]:
    """What has become of the task by then: its status, user failures and losses."""
    pass_time(state, now, policy)
    (run,) = state.runs.values()
    return TaskStatus(run.tasks["status"][0]), int(run.tasks["user_failures"][0]), int(run.tasks["losses"][0])


@pytest.mark.parametrize("code", CODES)
def test_a_failure_whose_instance_turns_out_to_go_down_is_charged_to_no_user_whatever_its_exit_code(code: int) -> None:
    state = ended(code)
    assert later(state, NOW + 5) == (TaskStatus.RUNNING, 0, 0)
    told(state, HostStateChanged(instance_id(1), "shutting-down", NOW + 6), policy=POLICY)
    assert later(state, NOW + 6) == (TaskStatus.PENDING, 0, 1)
    assert not state.open_ends


@pytest.mark.parametrize("code", CODES)
def test_a_failure_on_an_instance_that_runs_on_is_the_users(code: int) -> None:
    state = ended(code)
    told(state, host(1, at=SOON), now=SOON + 1, policy=POLICY)
    assert later(state, SOON + 1) == (TaskStatus.FAILED, 1, 0)


def test_that_the_instance_ran_a_moment_after_the_failure_proves_nothing() -> None:
    state = ended()
    told(state, host(1, at=NOW + 1), host(1), now=NOW + 2, policy=POLICY)
    assert later(state, SOON + 1) == (TaskStatus.RUNNING, 0, 0)


def test_without_an_answer_of_ec2_it_is_the_users_in_the_end() -> None:
    state = ended()
    assert later(state, NOW + POLICY.fate_patience_s - 1) == (TaskStatus.RUNNING, 0, 0)
    assert later(state, NOW + POLICY.fate_patience_s) == (TaskStatus.FAILED, 1, 0)


def test_memory_that_ran_out_is_the_users_at_once_even_on_an_instance_that_goes() -> None:
    assert later(ended(137, reason="OutOfMemoryError: Container killed"), NOW) == (TaskStatus.FAILED, 1, 0)
    state = state_with_instance(retryStrategy={"attempts": 1})
    launched(state)
    told(state, InterruptionWarned(instance_id(1), NOW), policy=POLICY)
    told(state, task(1, "STOPPED", 3, exit_code=137, reason="OutOfMemoryError: Container killed"), policy=POLICY)
    assert later(state, NOW) == (TaskStatus.FAILED, 1, 0)


@pytest.mark.parametrize("code", CODES)
def test_any_other_failure_on_a_warned_instance_is_charged_to_no_user_at_once(code: int) -> None:
    state = state_with_instance(retryStrategy={"attempts": 1})
    launched(state)
    told(state, InterruptionWarned(instance_id(1), NOW), task(1, "STOPPED", 3, exit_code=code), policy=POLICY)
    assert later(state, NOW) == (TaskStatus.PENDING, 0, 1)


def test_what_we_stopped_for_its_time_is_the_users_at_once() -> None:
    state = state_with_instance(retryStrategy={"attempts": 1})
    key = launched(state)
    begun(state, [StopAttempt(task_arn(1), CELL, key, StopCause.TIMED_OUT, "too long")])
    told(state, task(1, "STOPPED", 3, exit_code=143), policy=POLICY)
    assert later(state, NOW) == (TaskStatus.FAILED, 1, 0)


def test_what_had_ended_before_we_stopped_it_for_its_time_waits_like_any_other_end() -> None:
    """The event of its end was lost. The operating system had shut down under it, perhaps."""
    state = state_with_instance(retryStrategy={"attempts": 1})
    key = launched(state)
    begun(state, [StopAttempt(task_arn(1), CELL, key, StopCause.TIMED_OUT, "too long")])
    told(state, task(1, "STOPPED", 3, exit_code=143, stop_code="EssentialContainerExited"), policy=POLICY)
    told(state, HostStateChanged(instance_id(1), "shutting-down", NOW + 6), policy=POLICY)
    assert later(state, NOW + 6) == (TaskStatus.PENDING, 0, 1)


def test_ec2_is_asked_for_just_this_instance_once_its_answer_can_prove_something() -> None:
    state = ended()

    def asked(now: float) -> list[object]:
        return [action for action in decide(moment_of(state, now, POLICY)) if isinstance(action, LookUpHosts)]

    assert asked(SOON - 1) == []
    assert asked(SOON) == [LookUpHosts(CELL, (instance_id(1),))]
    del state.instances[instance_id(1)]
    assert asked(SOON) == []
    assert later(state, SOON) == (TaskStatus.FAILED, 1, 0)


def test_a_restarted_controller_applies_the_event_again_and_a_newer_one_replaces_it() -> None:
    state = ended()
    state.open_ends.failures.clear()  # as a load leaves it
    told(state, task(1, "STOPPED", 3, exit_code=143), now=NOW + 60, policy=POLICY)
    told(state, task(1, "STOPPED", 4, exit_code=143, reason="more is known"), now=NOW + 61, policy=POLICY)
    told(state, task(1, "STOPPED", 3, exit_code=143), now=NOW + 62, policy=POLICY)
    (open_end,) = state.open_ends.failures.values()
    assert (open_end.heard_at, open_end.seen.version) == (NOW + 60, 4)


def test_failures_are_booked_as_far_as_the_commit_has_room_for_them() -> None:
    state = ended()
    full = replace(POLICY, max_settling_documents=0)
    assert later(state, NOW + POLICY.fate_patience_s, full) == (TaskStatus.RUNNING, 0, 0)


def silent(result: int = 0) -> State:
    """The only attempt of the run's first task has ended with exit code 0, and it may fail once. result: the attempt
    whose result is found; 0 = none."""
    state = state_with_instance(expects_result=True, retryStrategy={"attempts": 1})
    launched(state)
    told(state, task(1, "RUNNING"), task(1, "STOPPED", 3, exit_code=0), policy=POLICY)
    return told(state, ResultSeen(RUN_ID, 0, result), policy=POLICY)


def looked_up(state: State, now: float = NOW) -> list[int]:
    """The indexes of the tasks whose results are looked up."""
    return [each.index for each in decide(moment_of(state, now, POLICY)) if isinstance(each, VerifyResult)]


def test_a_missing_result_whose_instance_turns_out_to_go_down_is_charged_to_no_user() -> None:
    state = silent()
    assert later(state, NOW + 5) == (TaskStatus.VERIFYING, 0, 0)
    told(state, HostStateChanged(instance_id(1), "shutting-down", NOW + 6), policy=POLICY)
    assert later(state, NOW + 6) == (TaskStatus.PENDING, 0, 1)
    assert state.runs[RUN_ID].interruptions == 1
    assert not state.open_ends


def test_a_missing_result_on_an_instance_that_runs_on_is_the_users() -> None:
    state = silent()
    told(state, host(1, at=NOW + 1), now=NOW + 2, policy=POLICY)
    assert later(state, SOON) == (TaskStatus.VERIFYING, 0, 0)
    told(state, host(1, at=SOON), now=SOON + 1, policy=POLICY)
    assert later(state, SOON + 1) == (TaskStatus.FAILED, 1, 0)
    assert not state.open_ends
    assert not state.open_ends.ran_at


def test_a_missing_result_of_which_ec2_says_nothing_is_the_users_in_the_end() -> None:
    state = silent()
    assert later(state, NOW + POLICY.fate_patience_s - 1) == (TaskStatus.VERIFYING, 0, 0)
    assert later(state, NOW + POLICY.fate_patience_s) == (TaskStatus.FAILED, 1, 0)


def test_a_missing_result_on_an_instance_that_is_not_known_any_more_is_the_users_at_once() -> None:
    state = silent()
    del state.instances[instance_id(1)]
    assert later(state, NOW) == (TaskStatus.FAILED, 1, 0)


def test_a_present_result_and_an_unexpected_one_wait_for_nothing() -> None:
    assert later(silent(result=1), NOW) == (TaskStatus.SUCCEEDED, 0, 0)
    state = state_with_instance()
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0), policy=POLICY)
    assert later(state, NOW) == (TaskStatus.SUCCEEDED, 0, 0)
    assert not state.open_ends


def test_while_it_waits_its_instance_is_asked_about_and_its_result_is_not() -> None:
    state = silent()
    launched(state, 1, 2)
    told(state, task(2, "STOPPED", 3, exit_code=0), policy=POLICY)
    assert looked_up(state) == [1]
    asked = [each for each in decide(moment_of(state, SOON, POLICY)) if isinstance(each, LookUpHosts)]
    assert asked == [LookUpHosts(CELL, (instance_id(1),))]


def test_a_restarted_controller_looks_the_result_up_and_waits_again() -> None:
    again = stored(silent(), {})
    assert looked_up(again) == [0]
    told(again, ResultSeen(RUN_ID, 0, 0), now=NOW + 60, policy=POLICY)
    told(again, host(1, at=SOON + 59), now=SOON + 59, policy=POLICY)
    assert later(again, SOON + 59) == (TaskStatus.VERIFYING, 0, 0)
    told(again, host(1, at=SOON + 60), now=SOON + 60, policy=POLICY)
    assert later(again, SOON + 60) == (TaskStatus.FAILED, 1, 0)


def test_what_has_become_of_the_task_meanwhile_stays() -> None:
    state = silent()
    told(state, ResultSeen(RUN_ID, 0, 1), policy=POLICY)
    assert later(state, NOW + POLICY.fate_patience_s) == (TaskStatus.SUCCEEDED, 0, 0)
    state = silent()
    state.runs[RUN_ID].tasks.set(0, attempts=2)  # retried in the meantime, and its second attempt has ended as well
    assert later(state, NOW + POLICY.fate_patience_s) == (TaskStatus.VERIFYING, 0, 0)
    assert looked_up(state) == [0]


def test_a_missing_result_of_a_suspended_run_is_looked_up_again_once_the_run_is_resumed() -> None:
    state = silent()
    run = state.runs[RUN_ID]
    suspend(state, bare_record(run), "a fault", NOW)
    pass_time(state, SOON, POLICY)
    assert not state.open_ends
    resume(state, run)
    assert looked_up(state, SOON) == [0]


def test_missing_results_are_booked_as_far_as_the_commit_has_room_for_them() -> None:
    state = silent()
    full = replace(POLICY, max_settling_documents=0)
    assert later(state, NOW + POLICY.fate_patience_s, full) == (TaskStatus.VERIFYING, 0, 0)


@pytest.mark.parametrize(
    "news", [container_instance(1, version=2, status="DRAINING"), RebalanceAdvised(instance_id(1), NOW)]
)
def test_a_missing_result_is_charged_to_no_user_if_its_instance_was_being_released_for_a_warning(news: Event) -> None:
    """An agent drains its instance when it sees an interruption, and a draining instance is released as soon as it is
    idle."""
    state = state_with_instance(expects_result=True, retryStrategy={"attempts": 1})
    launched(state)
    told(state, task(1, "RUNNING"), news, task(1, "STOPPED", 3, exit_code=0), policy=POLICY)
    instance = state.instances[instance_id(1)]
    instance.status, instance.released_at = InstanceStatus.RELEASING, NOW
    told(state, ResultSeen(RUN_ID, 0, 0), policy=POLICY)
    assert later(state, NOW) == (TaskStatus.PENDING, 0, 1)
