"""The ends of a suspended run's tasks are taken in; its unsupervised tasks are stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.lifecycle.apply import apply, pass_time
from argosy.lifecycle.suspension import resume, suspend
from argosy.model.actions import Launch, StopOrphan
from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.costs import Work
from argosy.model.events import ControllerStarted, HostStateChanged, LaunchAccepted, Observed, TaskSeen
from argosy.model.resources import NOTHING
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.suspensions import MOST_UNWATCHED
from argosy.model.tasks import TaskStatus
from argosy.scheduler.upkeep import upkeep
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    moment_of,
    state_with_instance,
    task,
    task_arn,
    told,
)
from tests.fakes.aws import KEY

END = NOW + 100


def running(**spec: object) -> tuple[State, Run]:
    """One attempt that runs since NOW; its run is suspended."""
    state = state_with_instance(tasks=3, **spec)
    launched(state)
    told(state, task(1, "RUNNING"))
    return state, left_alone(state)


def in_doubt() -> tuple[State, Run]:
    """One launch whose outcome was not taken in; its run is suspended."""
    state = state_with_instance(tasks=3)
    begun(state, [Launch(KEY, 1, state.started_by(1), instance_id(1), CELL)])
    run = left_alone(state)
    told(state, ControllerStarted())
    return state, run


def left_alone(state: State, times: int = 1) -> Run:
    run = state.runs[RUN_ID]
    suspend(state, RunRecord.of(run), "it fails", NOW)
    state.suspended[RUN_ID].times = times
    return run


def stopped(**overrides: object) -> TaskSeen:
    return task(1, "STOPPED", 9, started_at=NOW, stopped_at=END, **{"exit_code": 0, **overrides})


def sweep(state: State, at: float, *tasks: TaskSeen) -> None:
    apply(state, Observed(at, tasks, (container_instance(1),), (host(1),), (fleet(spot_target=1),)), at, POLICY)


def row_of_the_first(state: State) -> int:
    (row,) = state.attempts.live().tolist()
    return int(row)


@pytest.mark.parametrize("by_sweep", [False, True])
def test_a_task_that_has_stopped_takes_nothing_and_its_time_is_charged(by_sweep: bool) -> None:
    state, run = running()
    for _ in range(2):  # doubled facts count once
        if by_sweep:
            sweep(state, END + 5, stopped())
        else:
            told(state, stopped(), now=END + 5)
    assert state.used_on(instance_id(1)) == NOTHING
    instance = state.instances[instance_id(1)]
    assert instance.idle_since == END + 5
    share = run.needs.share_of(instance.total)
    assert instance.work[run.number] == [pytest.approx(100 * share), 0.0, 0.0, 0.0]
    assert len(state.attempts.live()) == 1


@pytest.mark.parametrize(
    ("exit_code", "status", "work"),
    [(0, TaskStatus.SUCCEEDED, Work.USEFUL), (1, TaskStatus.FAILED, Work.FAILED)],
)
def test_what_became_of_it_is_found_out_when_its_run_is_tried_again(
    exit_code: int, status: TaskStatus, work: Work
) -> None:
    state, run = running(retryStrategy={"attempts": 1})
    told(state, stopped(exit_code=exit_code), now=END)
    idle_since = state.instances[instance_id(1)].idle_since
    resume(state, run)
    sweep(state, END + 60, stopped(exit_code=exit_code))
    assert run.tasks["status"][0] == status
    assert run.tasks["seconds"][0] == 100
    done = state.instances[instance_id(1)].work[run.number]
    assert [bool(share) for share in done] == [each is work for each in Work]
    assert state.instances[instance_id(1)].idle_since == idle_since, "it has idled ever since the task's end"


def test_an_end_that_ecs_has_forgotten_counts_as_lost_when_its_run_is_tried_again() -> None:
    state, run = running()
    told(state, stopped(), now=END)
    for at in (END + 400, END + 800):
        sweep(state, at)
    assert len(state.attempts.live()) == 1, "nobody asks about it yet"
    resume(state, run)
    for at in (END + 4000, END + 4400):
        sweep(state, at)
    assert run.tasks["status"][0] == TaskStatus.PENDING
    assert run.tasks["seconds"][0] == 100, "it took no longer than until it had left"
    assert state.instances[instance_id(1)].work[run.number][Work.USEFUL] == pytest.approx(0)


def test_a_task_that_two_complete_listings_do_not_show_takes_nothing() -> None:
    state, _ = running()
    sweep(state, NOW + 400)
    sweep(state, NOW + 450, task(1, "RUNNING", 0))
    sweep(state, NOW + 800)
    assert state.used_on(instance_id(1)) != NOTHING, "it was shown in between"
    sweep(state, NOW + 1200)
    assert state.used_on(instance_id(1)) == NOTHING
    (done,) = state.instances[instance_id(1)].work.values()
    assert done[Work.USEFUL] == pytest.approx(800 * 1024 / 4096)
    assert not state.orphans


def test_an_instance_that_goes_meanwhile_is_remembered_as_long_as_an_attempt_names_it() -> None:
    state, run = running()
    state.suspended[RUN_ID].record = replace(state.suspended[RUN_ID].record, instances=())
    told(state, stopped(), HostStateChanged(instance_id(1), "terminated", END), now=END)
    later = END + 2 * POLICY.forget_instance_s
    apply(state, Observed(later, (), (), (), (fleet(),)), later, POLICY)
    assert instance_id(1) in state.instances
    resume(state, run)
    told(state, stopped(), now=later)
    assert run.tasks["status"][0] == TaskStatus.SUCCEEDED


def test_a_launch_in_doubt_that_is_shown_stopped_takes_nothing_until_its_run_is_tried_again() -> None:
    state, run = in_doubt()
    told(state, replace(stopped(), key=KEY), now=END)
    assert state.used_on(instance_id(1)) == NOTHING
    assert not state.instances[instance_id(1)].work, "its time is charged once it is resolved"
    resume(state, run)
    assert state.attempts["status"][row_of_the_first(state)] == AttemptStatus.IN_DOUBT
    told(state, replace(stopped(), key=KEY), now=END + 60)
    assert run.tasks["status"][0] == TaskStatus.SUCCEEDED
    assert state.instances[instance_id(1)].work[run.number][Work.USEFUL] > 0


def test_a_launch_in_doubt_gives_its_place_back_when_it_is_too_old_to_be_sent_again_and_nothing_of_it_runs() -> None:
    state, run = in_doubt()
    old = NOW + POLICY.intent_age_s
    sweep(state, old - 1)
    sweep(state, old, task(1, key=KEY))
    apply(state, Observed(old, tasks_complete=False), old, POLICY)
    apply(state, Observed(old), old, replace(POLICY, max_dirty_documents=0))
    assert state.used_on(instance_id(1)) == run.needs, "too young, shown, not all shown, and no room in the commit"
    sweep(state, old)
    assert state.used_on(instance_id(1)) == NOTHING
    assert len(state.attempts.live()) == 1


@pytest.mark.parametrize("is_there", [True, False])
def test_a_launch_that_turns_out_to_run_after_all_takes_its_place_again(is_there: bool) -> None:
    state, run = in_doubt()
    sweep(state, NOW + POLICY.intent_age_s)
    resume(state, run)
    if not is_there:
        del state.instances[instance_id(1)]
    told(state, LaunchAccepted(KEY, task_arn(1)), now=NOW + 700)
    assert state.used_on(instance_id(1)) == run.needs
    state.losses.blind = not is_there
    assert not (is_there and state.instances[instance_id(1)].idle_since)


def test_a_copy_of_another_launch_is_left_alone_and_a_task_without_an_attempt_is_stopped() -> None:
    state, _ = in_doubt()
    mine, ours = f"argosy-{state.epoch}-1", {"desired_status": "RUNNING"}
    sweep(state, NOW + 10, task(7, key=KEY._replace(launch=5), started_by=mine, **ours))
    sweep(state, NOW + 20, replace(stopped(), key=KEY._replace(attempt=5)))
    assert not state.orphans
    assert state.used_on(instance_id(1)) != NOTHING
    sweep(state, NOW + 30, task(8, key=KEY._replace(index=2), started_by=mine, **ours))
    assert list(state.orphans) == [task_arn(8)]


def test_from_the_third_failure_on_its_tasks_are_stopped_and_asked_again_when_that_shows_no_effect() -> None:
    state, _ = running()
    found = state.suspended[RUN_ID]
    pass_time(state, NOW + 10, POLICY)
    assert not state.orphans
    found.times = MOST_UNWATCHED
    pass_time(state, NOW + 10, replace(POLICY, max_dirty_documents=0))
    assert not state.orphans, "this commit holds no more"
    pass_time(state, NOW + 10, POLICY)
    (stop,) = upkeep.orphans(state)
    assert stop == StopOrphan(task_arn(1), CELL, upkeep.UNWATCHED)
    begun(state, [stop])
    pass_time(state, NOW + 10 + POLICY.stop_again_s / 2, POLICY)
    assert not state.orphans
    pass_time(state, NOW + 10 + POLICY.stop_again_s, POLICY)
    assert list(state.orphans) == [task_arn(1)]
    assert state.attempts["stop_cause"][row_of_the_first(state)] == StopCause.STUCK
    assert "stops its tasks" in found.stored_record().waiting


def test_no_task_on_an_unknown_instance_can_be_stopped() -> None:
    state, _ = running()
    state.suspended[RUN_ID].times = MOST_UNWATCHED
    instance = state.instances.pop(instance_id(1))
    pass_time(state, NOW + 10, POLICY)
    assert not state.orphans
    state.instances[instance_id(1)] = instance


def test_a_launch_in_doubt_that_is_shown_running_is_stopped_while_its_run_is_suspended() -> None:
    state, _ = in_doubt()
    shown = task(1, key=KEY, started_by="argosy-testtest-1")
    sweep(state, NOW + 10, shown)
    assert not state.orphans
    state.suspended[RUN_ID].times = MOST_UNWATCHED
    sweep(state, NOW + 20, shown)
    assert list(state.orphans) == [task_arn(1)]
    assert state.attempts["stop_cause"][row_of_the_first(state)] == StopCause.STUCK, "no failure of the user's"


def test_an_attempt_that_outlasts_its_time_out_is_stopped_on_the_users_account() -> None:
    state, run = running(timeout={"attemptDurationSeconds": 90}, retryStrategy={"attempts": 1})
    pass_time(state, NOW + 89, POLICY)
    assert not state.orphans
    pass_time(state, NOW + 90, POLICY)
    assert list(upkeep.orphans(state)) == [StopOrphan(task_arn(1), CELL, upkeep.OVER_TIME)]
    told(state, stopped(exit_code=143), now=END)
    resume(state, run)
    sweep(state, END + 60, stopped(exit_code=143))
    assert run.tasks["status"][0] == TaskStatus.FAILED


def test_a_run_whose_budget_is_used_up_stops_what_it_charged_and_what_it_still_owes() -> None:
    state, _ = running(capacity={"budgetUsd": 1.0})
    instance, found = state.instances[instance_id(1)], state.suspended[RUN_ID]
    instance.price_usd_per_hour, instance.launched_at, instance.bought_for = 3.6, NOW, found.record.number
    found.record = replace(found.record, cost_usd=0.5)
    pass_time(state, NOW + 499, POLICY)
    assert not state.orphans
    pass_time(state, NOW + 500, POLICY)
    assert list(state.orphans) == [task_arn(1)]


def test_attempts_that_have_left_are_not_stopped_when_their_run_is_resumed() -> None:
    state, run = running(timeout={"attemptDurationSeconds": 90})
    told(state, stopped(), now=END)
    resume(state, run)
    assert not list(upkeep.stops(moment_of(state, now=END + 500)))


def test_an_end_that_was_taken_in_hides_no_other_task_that_is_missing() -> None:
    state = state_with_instance(tasks=3)
    for index in (0, 1):
        launched(state, index=index, number=index + 1)
        told(state, task(index + 1, "RUNNING"))
    left_alone(state)
    told(state, stopped(), now=END)
    for at in (END + POLICY.absence_s, END + 2 * POLICY.absence_s):
        sweep(state, at)
    assert (state.attempts["left_at"][state.attempts.live()] > 0).tolist() == [True, True]


def test_strikes_that_the_end_of_a_resumed_runs_task_wipes_out_are_stored() -> None:
    state, run = running()
    state.instances[instance_id(1)].strikes = 2
    told(state, stopped(), now=END)
    resume(state, run)
    state.changed_instances.clear()
    told(state, stopped(), now=END)
    assert run.tasks["status"][0] == TaskStatus.SUCCEEDED
    assert state.instances[instance_id(1)].strikes == 0
    assert instance_id(1) in state.changed_instances


def test_a_resumed_run_has_no_reason_to_wait_until_one_is_decided() -> None:
    state, run = running()
    run.waiting = "it is left alone"
    resume(state, run)
    assert run.waiting == ""
