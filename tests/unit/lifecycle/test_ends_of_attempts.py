"""How does an attempt end: with which exit code, stopped by which party, and with or without a result?"""

from __future__ import annotations

import pytest

from argosy.model.actions import StopAttempt
from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.events import (
    HostStateChanged,
    NotCarriedOut,
    Observed,
    ResultSeen,
)
from argosy.model.instances import InstanceStatus
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    begun,
    instance_id,
    launched,
    state_with_instance,
    status_of,
    stored,
    task,
    task_arn,
    the_run,
    told,
)


def test_exit_code_0_succeeds_at_once_when_no_result_is_expected() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"), task(1, "STOPPED", 3, exit_code=0, stopped_at=NOW + 90))
    assert status_of(state) is TaskStatus.SUCCEEDED
    assert the_run(state).tasks["seconds"][0] == 90
    assert the_run(state).tasks["committed"][0] == 1


def test_exit_code_0_waits_for_its_result_when_one_is_expected() -> None:
    state = state_with_instance(expects_result=True)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0, started_at=NOW, stopped_at=NOW + 9))
    assert status_of(state) is TaskStatus.VERIFYING
    told(state, ResultSeen(RUN_ID, 0, attempt=1, bytes=77))
    assert status_of(state) is TaskStatus.SUCCEEDED
    assert the_run(state).tasks["bytes"][0] == 77


def test_a_program_that_ends_well_but_writes_nothing_has_failed() -> None:
    state = state_with_instance(expects_result=True, retryStrategy={"attempts": 1})
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0), ResultSeen(RUN_ID, 0, attempt=0))
    assert status_of(state) is TaskStatus.FAILED
    assert "no result" in the_run(state).failures[-1].reason


@pytest.mark.parametrize(
    ("code", "words"), [(139, "SIGSEGV: a segmentation fault"), (3, "the program ended with an error")]
)
def test_what_ecs_says_of_every_ordinary_end_is_replaced_by_what_the_exit_code_says(code: int, words: str) -> None:
    for said in ("Essential container in task exited", ""):
        state = state_with_instance(retryStrategy={"attempts": 1})
        launched(state)
        told(state, task(1, "STOPPED", 3, exit_code=code, reason=said))
        assert the_run(state).failures[-1].reason == words


def silent_end(state: State, **how: object) -> tuple[TaskStatus, int, int, int]:
    """The task ends with exit code 0, the controller restarts, and no result is found: what the task's status, user
    failures and losses and the run's interruptions are then."""
    told(state, task(1, "STOPPED", 3, exit_code=0, **how))
    assert status_of(state) is TaskStatus.VERIFYING
    again = stored(state, {})
    told(again, ResultSeen(RUN_ID, 0, attempt=0))
    tasks = the_run(again).tasks
    charged = (int(tasks[name][0]) for name in ("user_failures", "losses"))
    return (status_of(again), *charged, the_run(again).interruptions)


def one_attempt() -> State:
    state = state_with_instance(expects_result=True, retryStrategy={"attempts": 1})
    launched(state)
    return told(state, task(1, "RUNNING"))


@pytest.mark.parametrize(
    ("cause", "left"),
    [
        (StopCause.NONE, (TaskStatus.FAILED, 1, 0, 0)),
        (StopCause.TIMED_OUT, (TaskStatus.FAILED, 1, 0, 0)),
        (StopCause.INTERRUPTED, (TaskStatus.PENDING, 0, 1, 1)),
        (StopCause.STUCK, (TaskStatus.PENDING, 0, 1, 0)),
        (StopCause.CANCELLED, (TaskStatus.CANCELLED, 0, 0, 0)),
        (StopCause.CAPPED, (TaskStatus.CANCELLED, 0, 0, 0)),
        (StopCause.PREEMPTED, (TaskStatus.PENDING, 0, 0, 0)),
    ],
)
def test_a_program_that_answers_sigterm_with_0_and_writes_nothing_is_charged_to_the_party_that_stopped_it(
    cause: StopCause, left: tuple[TaskStatus, int, int, int]
) -> None:
    state = one_attempt()
    begun(state, [StopAttempt(task_arn(1), CELL, AttemptKey(RUN_ID, 0, 1, 0), cause, "a reason")])
    assert silent_end(state) == left


@pytest.mark.parametrize("how", [{"stop_code": "SpotInterruption"}, {"reason": "Host EC2 (instance i-1) terminated."}])
def test_what_ends_well_without_a_result_as_its_host_ends_is_lost(how: dict[str, str]) -> None:
    assert silent_end(one_attempt(), **how) == (TaskStatus.PENDING, 0, 1, 1)


@pytest.mark.parametrize("state_then", ["shutting-down", "terminated"])
@pytest.mark.parametrize("released", [False, True])
def test_an_instance_that_is_seen_to_go_before_the_result_is_looked_up_took_the_attempt_with_it(
    state_then: str, released: bool
) -> None:
    """Unless it was released: then nothing ran there any more."""
    state = one_attempt()
    told(state, task(1, "STOPPED", 3, exit_code=0))
    if released:
        instance = state.instances[instance_id(1)]
        instance.status, instance.released_at = InstanceStatus.RELEASING, NOW
    told(state, HostStateChanged(instance_id(1), state_then, NOW), ResultSeen(RUN_ID, 0, attempt=0))
    assert status_of(state) is (TaskStatus.FAILED if released else TaskStatus.PENDING)
    assert the_run(state).interruptions == (not released)


@pytest.mark.parametrize("version", [2, 1])
def test_events_that_are_not_newer_change_nothing(version: int) -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING", 2), task(1, "STOPPED", version, exit_code=1))
    assert status_of(state) is TaskStatus.RUNNING


def test_a_running_event_after_the_stop_does_not_revive_the_attempt() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0), task(1, "RUNNING", 2))
    assert status_of(state) is TaskStatus.SUCCEEDED
    assert not state.orphans


def test_a_stop_that_comes_twice_is_counted_once() -> None:
    state = state_with_instance()
    launched(state)
    stop = task(1, "STOPPED", 3, exit_code=1)
    told(state, stop, stop)
    assert the_run(state).tasks["user_failures"][0] == 1


def test_results_that_cannot_be_looked_up_finally_count_as_missing() -> None:
    state = state_with_instance(tasks=3, expects_result=True)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    for minute in range(20):
        assert status_of(state) is TaskStatus.VERIFYING
        told(state, NotCarriedOut("no access", about=Subject(Act.VERIFY, RUN_ID)), now=NOW + 60 * minute)
    assert status_of(state) is TaskStatus.FAILED
    assert the_run(state).complete


def test_a_task_that_was_launched_a_moment_ago_is_missed_by_no_listing() -> None:
    """Listings lag. The data that the first one lacks counts from the next one on, as if that were the first."""
    state = state_with_instance()
    launched(state)
    for after_s in (10.0, POLICY.absence_s + 10):
        told(state, Observed(NOW + after_s), now=NOW + after_s)
    assert status_of(state) is TaskStatus.STARTING
    told(state, Observed(NOW + 2 * POLICY.absence_s + 10), now=NOW + 2 * POLICY.absence_s + 10)
    assert status_of(state) is TaskStatus.PENDING
