"""The only mutator: what facts and intents do to runs, tasks, attempts and instances."""

from __future__ import annotations

import pytest

from argosy.model import documents
from argosy.model.actions import Launch, StopAttempt
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.documents import decode, encode
from argosy.model.events import (
    ControllerStarted,
    HostStateChanged,
    InterruptionWarned,
    LaunchAccepted,
    LaunchDisproved,
    LaunchInDoubt,
    LaunchRefused,
    ManifestPartWritten,
    NotCarriedOut,
    Observed,
    ResultSeen,
    RunCancelled,
    RunClosed,
    RunNotPrepared,
)
from argosy.model.inbox import CancelRequest
from argosy.model.instances import InstanceStatus
from argosy.model.run_record import RunRecord
from argosy.model.runs import ManifestBound, RunStatus
from argosy.model.setbacks import Subject, What
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    begun,
    container_instance,
    host,
    instance_id,
    launched,
    prepared,
    state_with,
    state_with_instance,
    stored,
    submitted,
    task,
    task_arn,
    told,
)


def the_run(state: State):
    return state.runs[RUN_ID]


def status(state: State, index: int = 0) -> TaskStatus:
    return TaskStatus(int(the_run(state).tasks.statuses()[index]))


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
    assert status(state) is TaskStatus.STARTING


def test_a_run_whose_definition_is_refused_for_good_fails_and_says_why() -> None:
    state = state_with(submitted(tasks=2), RunNotPrepared(RUN_ID, "image argosy/nothing is unknown", final=True))
    assert the_run(state).complete
    told(state, RunClosed(RUN_ID))
    assert the_run(state).status is RunStatus.FAILED
    assert the_run(state).status_reason == "image argosy/nothing is unknown"


def test_a_preparation_that_fails_for_the_moment_is_tried_again_later() -> None:
    state = state_with(submitted(), RunNotPrepared(RUN_ID, "throttled", final=False))
    assert not the_run(state).complete
    assert the_run(state).prepare_after > NOW


def test_an_accepted_launch_starts_the_task_and_a_running_event_runs_it() -> None:
    state = state_with_instance()
    launched(state)
    assert status(state) is TaskStatus.STARTING
    told(state, task(1, "RUNNING"))
    assert status(state) is TaskStatus.RUNNING
    assert the_run(state).status is RunStatus.RUNNING


def test_exit_code_0_succeeds_at_once_when_no_result_is_expected() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"), task(1, "STOPPED", 3, exit_code=0, stopped_at=NOW + 90))
    assert status(state) is TaskStatus.SUCCEEDED
    assert the_run(state).tasks["seconds"][0] == 90
    assert the_run(state).tasks["committed"][0] == 1


def test_exit_code_0_waits_for_its_result_when_one_is_expected() -> None:
    state = state_with_instance(expects_result=True)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0, started_at=NOW, stopped_at=NOW + 9))
    assert status(state) is TaskStatus.VERIFYING
    told(state, ResultSeen(RUN_ID, 0, attempt=1, bytes=77))
    assert status(state) is TaskStatus.SUCCEEDED
    assert the_run(state).tasks["bytes"][0] == 77


def test_a_program_that_ends_well_but_writes_nothing_has_failed() -> None:
    state = state_with_instance(expects_result=True, retryStrategy={"attempts": 1})
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0), ResultSeen(RUN_ID, 0, attempt=0))
    assert status(state) is TaskStatus.FAILED
    assert "no result" in the_run(state).failures[-1].reason


def silent_end(state: State, **how: object) -> tuple[TaskStatus, int, int, int]:
    """The task ends with exit code 0, the controller starts anew, and no result is found: what the task's status, user
    failures and losses and the run's interruptions are then."""
    told(state, task(1, "STOPPED", 3, exit_code=0, **how))
    assert status(state) is TaskStatus.VERIFYING
    again = stored(state, {})
    told(again, ResultSeen(RUN_ID, 0, attempt=0))
    tasks = the_run(again).tasks
    charged = (int(tasks[name][0]) for name in ("user_failures", "losses"))
    return (status(again), *charged, the_run(again).interruptions)


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
    ],
)
def test_a_program_that_answers_sigterm_with_0_and_writes_nothing_is_charged_to_who_stopped_it(
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
    assert status(state) is (TaskStatus.FAILED if released else TaskStatus.PENDING)
    assert the_run(state).interruptions == (not released)


@pytest.mark.parametrize("version", [2, 1])
def test_events_that_are_not_newer_change_nothing(version: int) -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING", 2), task(1, "STOPPED", version, exit_code=1))
    assert status(state) is TaskStatus.RUNNING


def test_a_running_event_after_the_stop_does_not_revive_the_attempt() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0), task(1, "RUNNING", 2))
    assert status(state) is TaskStatus.SUCCEEDED
    assert not state.orphans


def test_a_stop_that_comes_twice_is_counted_once() -> None:
    state = state_with_instance()
    launched(state)
    stop = task(1, "STOPPED", 3, exit_code=1)
    told(state, stop, stop)
    assert the_run(state).tasks["user_failures"][0] == 1


def test_a_user_failure_is_retried_after_a_back_off_until_the_attempts_are_used_up() -> None:
    state = state_with_instance()
    for attempt in (1, 2, 3):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, exit_code=1))
        if attempt < 3:
            assert status(state) is TaskStatus.PENDING
            assert the_run(state).tasks["not_before"][0] == NOW + 2 ** (attempt - 1)
    assert status(state) is TaskStatus.FAILED
    assert the_run(state).tasks["attempts"][0] == 3


def test_an_exit_rule_ends_the_task_at_once() -> None:
    rules = {"attempts": 3, "evaluateOnExit": [{"onExitCode": "6*", "action": "EXIT"}]}
    state = state_with_instance(retryStrategy=rules)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=64))
    assert status(state) is TaskStatus.FAILED


def test_a_failure_that_no_rule_matches_is_retried() -> None:
    rules = {"attempts": 3, "evaluateOnExit": [{"onExitCode": "64", "action": "EXIT"}]}
    state = state_with_instance(retryStrategy=rules)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=1))
    assert status(state) is TaskStatus.PENDING


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
    assert (status(state, 0), status(state, 1)) == (TaskStatus.PENDING, TaskStatus.FAILED)


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
    assert status(state) is TaskStatus.PENDING
    assert the_run(state).tasks["losses"][0] == 3
    assert the_run(state).tasks["user_failures"][0] == 0
    assert the_run(state).interruptions == (0 if how.get("stop_code") == "TaskFailedToStart" else 3)


def test_a_task_stopped_for_an_interruption_is_redone_even_if_it_exits_143() -> None:
    state = state_with_instance(retryStrategy={"attempts": 1})
    key = launched(state)
    told(state, task(1, "RUNNING"), InterruptionWarned(instance_id(1), NOW))
    begun(state, [StopAttempt(task_arn(1), "us-east-1", key, StopCause.INTERRUPTED, "going")])
    told(state, task(1, "STOPPED", 3, exit_code=143, stop_code="UserInitiated"))
    assert status(state) is TaskStatus.PENDING


def test_a_task_that_is_lost_again_and_again_is_given_up() -> None:
    state = state_with_instance()
    for attempt in range(1, 21):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, stop_code="SpotInterruption"))
    assert status(state) is TaskStatus.FAILED
    assert "20 losses" in the_run(state).failures[-1].reason


def test_an_image_that_cannot_be_pulled_is_given_up_after_three_tries() -> None:
    state = state_with_instance(tasks=1)
    for attempt in (1, 2, 3):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, reason="CannotPullContainerError: no such image"))
    assert status(state) is TaskStatus.FAILED


def test_an_attempt_over_its_time_is_charged_to_the_user() -> None:
    state = state_with_instance(retryStrategy={"attempts": 1}, timeout={"attemptDurationSeconds": 60})
    key = launched(state)
    begun(state, [StopAttempt(task_arn(1), "us-east-1", key, StopCause.TIMED_OUT, "too long")])
    told(state, task(1, "STOPPED", 3, exit_code=137))
    assert status(state) is TaskStatus.FAILED
    assert "longer than 60 s" in the_run(state).failures[-1].reason


def test_a_run_whose_first_tasks_fail_alike_stops_and_says_so() -> None:
    state = state_with_instance(tasks=50, retryStrategy={"attempts": 1})
    for index in range(5):
        launched(state, index=index, number=index + 1)
        told(state, task(index + 1, "STOPPED", 3, exit_code=2, reason="no such flag"))
    assert "failed alike (exit code 2): no such flag" in the_run(state).status_reason
    assert status(state, 49) is TaskStatus.CANCELLED
    assert the_run(state).final_status is RunStatus.FAILED


def test_different_failures_do_not_stop_the_run() -> None:
    state = state_with_instance(tasks=50, retryStrategy={"attempts": 1})
    for index in range(5):
        launched(state, index=index, number=index + 1)
        told(state, task(index + 1, "STOPPED", 3, exit_code=2 + index % 2))
    assert status(state, 49) is TaskStatus.PENDING


def test_a_refused_launch_gets_a_new_launch_number_for_the_same_attempt() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, LaunchRefused(key, "RESOURCE:CPU"))
    run = the_run(state)
    assert (status(state), run.tasks["launch"][0], run.tasks["attempts"][0]) == (TaskStatus.PENDING, 1, 0)
    assert run.attempts == 0
    assert state.observed_at == 0.0


def test_a_refusal_for_good_stops_the_run() -> None:
    state = state_with_instance(tasks=3)
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, LaunchRefused(key, "InvalidParameterException", "no such container", final=True))
    assert the_run(state).complete
    assert "no such container" in the_run(state).status_reason


def denied_at(state: State, launch: int, now: float) -> None:
    """The run's first task is launched and denied."""
    key = AttemptKey(RUN_ID, 0, 1, launch)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")], now)
    told(state, LaunchRefused(key, "AccessDeniedException", "iam:PassRole", denied=True), now=now)


def test_a_run_that_is_denied_says_so_is_asked_again_and_is_given_up_after_a_quarter_of_an_hour() -> None:
    state = state_with_instance(tasks=3)
    observed_at = state.observed_at
    denied_at(state, 0, NOW)
    assert the_run(state).waiting == "no task can be started: AccessDeniedException: iam:PassRole"
    assert not state.may_try(What.LAUNCH, RUN_ID, NOW)
    assert state.observed_at == observed_at, "nothing is wrong with our picture"
    assert not state.instances[instance_id(1)].refusals
    items: documents.Documents = {}
    for minute in range(1, 15):
        denied_at(state, minute, NOW + 60 * minute)
        assert not the_run(state).halted
        state = stored(state, items)
    denied_at(state, 15, NOW + POLICY.refusal_patience_s)
    assert the_run(state).complete
    assert "iam:PassRole" in the_run(state).status_reason


def test_a_refusal_after_a_quarter_of_an_hour_of_overload_is_the_first_one() -> None:
    state = state_with_instance(tasks=3)
    overload = NotCarriedOut("ServiceUnavailable", about=Subject(What.LAUNCH, RUN_ID), passing=True)
    for minute in range(120):
        told(state, overload, now=NOW + 60 * minute)
    denied_at(state, 0, NOW + 60 * 120)
    assert not the_run(state).halted
    told(state, overload, now=NOW + 60 * 121)
    denied_at(state, 1, NOW + 60 * 136)
    assert not the_run(state).halted, "another answer lay between the two"


@pytest.mark.parametrize("apart_s", [1200.0, 7200.0])
def test_two_refusals_far_apart_without_a_launch_between_end_no_run(apart_s: float) -> None:
    state = state_with_instance(tasks=3)
    denied_at(state, 0, NOW)
    denied_at(state, 1, NOW + apart_s)
    assert not the_run(state).halted


def test_a_launch_that_is_accepted_in_between_shows_that_the_refusals_passed() -> None:
    state = state_with_instance(tasks=3)
    denied_at(state, 0, NOW)
    launched(state, index=1, now=NOW + 60)
    denied_at(state, 1, NOW + POLICY.refusal_patience_s + 60)
    assert not the_run(state).halted


@pytest.mark.parametrize(("passing", "patience_s"), [(False, 900.0), (True, 3600.0)])
def test_a_preparation_is_tried_for_a_quarter_of_an_hour_or_an_hour_without_any_answer(
    passing: bool, patience_s: float
) -> None:
    state = state_with(submitted())
    for minute in range(int(patience_s) // 60 + 1):
        assert not the_run(state).halted
        told(state, RunNotPrepared(RUN_ID, "not now", final=False, passing=passing), now=NOW + 60 * minute)
        assert the_run(state).waiting == "not now"
    assert the_run(state).halted


def test_a_preparation_that_waits_for_its_turn_is_tried_again_soon_and_for_ever() -> None:
    state = state_with(submitted())
    queued = RunNotPrepared(RUN_ID, "waits for its turn", final=False, queued=True)
    for minute in range(300):
        told(state, queued, now=NOW + 60 * minute)
        assert the_run(state).waiting == "waits for its turn"
        assert NOW + 60 * minute < the_run(state).prepare_after <= NOW + 60 * minute + 10
    assert not state.setbacks
    told(state, RunNotPrepared(RUN_ID, "AccessDenied", final=False), now=NOW + 60 * 300)
    assert not the_run(state).halted


@pytest.mark.parametrize("passing", [False, True])
def test_two_bad_answers_hours_apart_end_no_preparation(passing: bool) -> None:
    state = state_with(submitted())
    for at in (NOW, NOW + 7200):
        told(state, RunNotPrepared(RUN_ID, "not now", final=False, passing=passing), now=at)
    assert not the_run(state).halted


def test_a_refusal_of_a_run_that_is_gone_changes_nothing() -> None:
    state = state_with_instance()
    told(state, LaunchRefused(AttemptKey("gone-261121-062733-aaaa", 0, 1, 0), "AccessDenied", denied=True))
    assert not state.setbacks


def test_a_new_controller_takes_the_intents_of_the_old_one_as_in_doubt_and_a_late_event_settles_them() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, ControllerStarted())
    row = state.row_of(key)
    assert row is not None
    assert state.attempts["status"][row] == AttemptStatus.IN_DOUBT
    told(state, task(7, "RUNNING", key=key))
    assert status(state) is TaskStatus.RUNNING
    assert the_run(state).attempts == 1


def test_doubt_that_is_disproved_frees_the_task_under_a_new_launch_number() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, LaunchInDoubt(key, "no reply"), LaunchDisproved(key))
    assert status(state) is TaskStatus.PENDING
    assert the_run(state).tasks["launch"][0] == 1


def test_disproving_a_launch_that_is_known_to_run_changes_nothing() -> None:
    state = state_with_instance()
    key = launched(state)
    told(state, LaunchDisproved(key))
    assert status(state) is TaskStatus.STARTING


def test_a_second_copy_of_an_attempt_is_an_orphan_once_a_sweep_shows_it() -> None:
    state = state_with_instance()
    key = launched(state, number=1)
    copy = task(2, "RUNNING", key=key, started_by="argosy-testtest-1")
    told(state, Observed(NOW + 5, tasks=(task(1, "RUNNING"), copy)))
    assert list(state.orphans) == [task_arn(2)]


def test_tasks_of_other_people_are_left_alone() -> None:
    state = state_with_instance()
    told(state, Observed(NOW, tasks=(task(9, "RUNNING", started_by="somebody"),)))
    assert not state.orphans


def test_cancelling_cancels_what_waits_and_lets_what_runs_be_stopped() -> None:
    state = state_with_instance(tasks=3)
    key = launched(state)
    told(state, task(1, "RUNNING"), RunCancelled(CancelRequest(RUN_ID, NOW, "mistake")))
    assert (status(state, 0), status(state, 1)) == (TaskStatus.RUNNING, TaskStatus.CANCELLED)
    begun(state, [StopAttempt(task_arn(1), "us-east-1", key, StopCause.CANCELLED, "cancelled")])
    told(state, task(1, "STOPPED", 3, exit_code=143), RunClosed(RUN_ID))
    assert the_run(state).status is RunStatus.CANCELLED
    assert the_run(state).status_reason == "cancelled: mistake"


def test_a_terminated_host_loses_its_tasks_and_a_late_stop_event_is_ignored() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"), HostStateChanged(instance_id(1), "terminated", NOW + 60))
    assert status(state) is TaskStatus.PENDING
    assert state.instances[instance_id(1)].status is InstanceStatus.GONE
    told(state, task(1, "STOPPED", 9, exit_code=0))
    assert status(state) is TaskStatus.PENDING


def test_shutting_down_takes_no_new_work_but_proves_no_loss_yet() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"), HostStateChanged(instance_id(1), "shutting-down", NOW))
    assert status(state) is TaskStatus.RUNNING
    assert not state.instances[instance_id(1)].placeable


def test_an_instance_is_placeable_only_when_ec2_shows_it_as_ours() -> None:
    state = state_with(container_instance(1))
    assert not state.instances[instance_id(1)].placeable
    assert state.observed_at == 0.0
    told(state, host(1))
    assert state.instances[instance_id(1)].placeable


@pytest.mark.parametrize("change", [{"agent_connected": False}, {"status": "DRAINING"}])
def test_disconnected_and_draining_instances_take_no_work(change: dict[str, object]) -> None:
    state = state_with(host(1), container_instance(1), container_instance(1, version=2, **change))
    assert not state.instances[instance_id(1)].placeable


def test_an_older_picture_of_an_instance_is_ignored() -> None:
    state = state_with(host(1), container_instance(1, version=5))
    told(state, container_instance(1, version=4, agent_connected=False))
    assert state.instances[instance_id(1)].placeable


def test_a_gpu_instance_that_registers_without_its_gpus_is_cordoned() -> None:
    state = state_with(host(1, "p3.2xlarge"), container_instance(1, 8192, 60000, gpus=0))
    instance = state.instances[instance_id(1)]
    assert instance.cordon == "registered 0 of 1 GPUs"
    told(state, container_instance(1, 8192, 60000, gpus=1, version=2))
    assert instance.placeable


def test_hosts_absent_from_a_complete_listing_are_gone_after_the_quiet_time_only() -> None:
    state = state_with_instance()
    told(state, Observed(NOW + 60))
    assert state.instances[instance_id(1)].alive
    told(state, Observed(NOW + 400, hosts_complete=False), Observed(NOW + 401))
    assert state.instances[instance_id(1)].alive
    told(state, Observed(NOW + 600, hosts=(host(1),)), Observed(NOW + 700), Observed(NOW + 900))
    assert state.instances[instance_id(1)].alive  # it was seen in between: the quiet time begins anew
    told(state, Observed(NOW + 1000))
    assert not state.instances[instance_id(1)].alive


def test_tasks_absent_from_complete_listings_are_lost_after_the_quiet_time_only() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"))
    shown = (host(1),)
    told(state, Observed(NOW + 400, hosts=shown), Observed(NOW + 500, hosts=shown))
    assert status(state) is TaskStatus.RUNNING
    told(state, Observed(NOW + 900, hosts=shown, tasks_complete=False))
    assert status(state) is TaskStatus.RUNNING
    told(state, Observed(NOW + 901, hosts=shown))
    assert status(state) is TaskStatus.PENDING


def test_pinned_gpus_are_kept_as_a_mask_over_the_registration_order() -> None:
    state = state_with(
        submitted(resources={"vcpus": 1, "memory": 1024, "gpus": 1}),
        prepared(resources={"vcpus": 1, "memory": 1024, "gpus": 1}),
        host(1, "p3.8xlarge"),
        container_instance(1, 32768, 200000, gpus=4),
    )
    key = launched(state)
    told(state, LaunchAccepted(key, task_arn(1)), task(1, "RUNNING", gpu_ids=("GPU-1-2",)))
    told(state, task(1, "STOPPED", 3, exit_code=0))
    assert the_run(state).tasks["gpu_mask"][0] == 0b100


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
    assert status(state) is TaskStatus.FAILED


def test_a_million_pending_tasks_are_cancelled_without_touching_a_row() -> None:
    state = state_with(submitted(tasks=1_000_000), prepared())
    the_run(state).tasks.dirty.clear()
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "")))
    assert the_run(state).complete
    assert not the_run(state).tasks.dirty
    assert the_run(state).tasks.counts()[TaskStatus.CANCELLED] == 1_000_000


@pytest.mark.parametrize(
    "reason",
    ["ResourceInitializationError: no log group", "CannotStartContainerError: no file", "CannotCreate: x"],
)
def test_a_container_that_cannot_be_started_is_given_up_after_three_tries(reason: str) -> None:
    state = state_with_instance(tasks=1)
    for attempt in (1, 2, 3):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, reason=reason, stop_code="TaskFailedToStart"))
    assert status(state) is TaskStatus.FAILED
    assert the_run(state).interruptions == 0


def test_a_run_that_cannot_be_closed_is_tried_again_after_growing_pauses_and_given_up_in_the_end() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    refused = NotCarriedOut("run could not be closed: AccessDenied", about=Subject(What.CLOSE, RUN_ID))
    told(state, refused)
    assert not state.may_try(What.CLOSE, RUN_ID, NOW)
    assert state.may_try(What.CLOSE, RUN_ID, NOW + 1)
    assert "AccessDenied" in the_run(state).waiting
    told(state, *[refused] * 100)
    assert state.setbacks[Subject(What.CLOSE, RUN_ID)].count == 1  # all of one round
    for minute in range(1, 19):
        told(state, refused, now=NOW + 60 * minute)
    assert the_run(state).status is not RunStatus.FAILED
    told(state, refused, now=NOW + 60 * 19)
    assert the_run(state).status is RunStatus.FAILED
    assert the_run(state).status_reason == "not closed: run could not be closed: AccessDenied"


def test_results_that_nobody_can_look_up_count_as_missing_in_the_end() -> None:
    state = state_with_instance(tasks=3, expects_result=True)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    for minute in range(20):
        assert status(state) is TaskStatus.VERIFYING
        told(state, NotCarriedOut("no access", about=Subject(What.VERIFY, RUN_ID)), now=NOW + 60 * minute)
    assert status(state) is TaskStatus.FAILED
    assert the_run(state).complete


def test_a_launch_that_is_refused_over_and_over_is_paused_and_ends_no_run() -> None:
    state = state_with_instance()
    for minute in range(2 * POLICY.max_setbacks):
        told(state, NotCarriedOut("no items", about=Subject(What.LAUNCH, RUN_ID)), now=NOW + 60 * minute)
    run = state.runs[RUN_ID]
    assert (run.done, run.halted, run.waiting) == (False, False, "no items")
    assert not state.may_try(What.LAUNCH, RUN_ID, NOW + 60 * minute)


def test_what_passes_by_itself_is_given_up_only_after_an_hour_in_which_it_was_tried_again_and_again() -> None:
    state = state_with_instance(tasks=3, expects_result=True)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    overload = NotCarriedOut("SlowDown", about=Subject(What.VERIFY, RUN_ID), passing=True)
    told(state, overload)
    told(state, overload, now=NOW + 7200)  # nobody tried meanwhile
    for minute in range(1, 18):
        told(state, overload, now=NOW + 7200 + 60 * minute)
    assert status(state) is TaskStatus.VERIFYING
    told(state, overload, now=NOW + 9000)
    assert status(state) is TaskStatus.FAILED


def test_an_intent_that_was_never_sent_is_dropped_when_its_instance_is_warned() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, InterruptionWarned(instance_id(1), NOW))
    assert status(state) is TaskStatus.PENDING
    assert state.row_of(key) is None


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
