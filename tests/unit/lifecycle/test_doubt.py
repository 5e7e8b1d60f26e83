"""Launches in doubt: what happens until their outcome is known?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.model.actions import Launch
from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.events import (
    ControllerStarted,
    InterruptionWarned,
    LaunchDisproved,
    LaunchInDoubt,
    Observed,
)
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.upkeep import upkeep
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    begun,
    host,
    instance_id,
    launched,
    moment_of,
    state_with_instance,
    status_of,
    task,
    task_arn,
    the_run,
    told,
)


def test_a_new_controller_takes_the_intents_of_the_old_one_as_in_doubt_and_a_late_event_settles_them() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, ControllerStarted())
    row = state.row_of(key)
    assert row is not None
    assert state.attempts["status"][row] == AttemptStatus.IN_DOUBT
    told(state, task(7, "RUNNING", key=key))
    assert status_of(state) is TaskStatus.RUNNING
    assert the_run(state).attempts == 1


def test_what_another_controller_intended_is_contended_until_lambda_has_ended_that_one() -> None:
    """Our own request might be refused for lack of room, and the other's succeed minutes later."""
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, ControllerStarted())
    for age_s, contended in ((0.0, True), (POLICY.takeover_s - 1, True), (POLICY.takeover_s, False)):
        (resolution,) = upkeep.resolutions(moment_of(state, NOW + age_s))
        assert ([launch.key for launch in resolution.launches], resolution.is_contended) == ([key], contended)


def test_this_controllers_own_intents_were_not_sent_by_another() -> None:
    state = told(state_with_instance(), ControllerStarted(), now=NOW - 1)
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, LaunchInDoubt(key, "no reply"))
    (resolution,) = upkeep.resolutions(moment_of(state, NOW + 60))
    assert not resolution.is_contended


def test_doubt_that_is_disproved_frees_the_task_under_a_new_launch_number() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, LaunchInDoubt(key, "no reply"), LaunchDisproved(key))
    assert status_of(state) is TaskStatus.PENDING
    assert the_run(state).tasks["launch"][0] == 1


def test_disproving_a_launch_that_is_known_to_run_changes_nothing() -> None:
    state = state_with_instance()
    key = launched(state)
    told(state, LaunchDisproved(key))
    assert status_of(state) is TaskStatus.STARTING


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


def test_an_intent_that_was_never_sent_is_dropped_when_its_instance_is_warned() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, InterruptionWarned(instance_id(1), NOW))
    assert status_of(state) is TaskStatus.PENDING
    assert state.row_of(key) is None


def with_intent_on_an_unknown_instance() -> tuple[State, AttemptKey]:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    del state.instances[instance_id(1)]
    return state, key


OLD = NOW + POLICY.intent_age_s
OVER = OLD + POLICY.absence_s


@pytest.mark.parametrize(("doubted", "attempts", "launch"), [(True, 1, 0), (False, 0, 1)])
def test_a_launch_on_an_instance_that_is_not_known_is_settled_once_it_is_old_and_no_task_of_it_runs(
    doubted: bool, attempts: int, launch: int
) -> None:
    state, key = with_intent_on_an_unknown_instance()
    if doubted:
        told(state, LaunchInDoubt(key, "no reply"))
    for at in (OLD - 1, OLD, OVER - 1):
        told(state, Observed(at))
        assert state.row_of(key) is not None
    told(state, Observed(OVER, tasks_complete=False))
    assert state.row_of(key) is not None
    told(state, Observed(OVER), policy=replace(POLICY, max_settling_documents=0))
    assert state.row_of(key) is not None, "the commit has no room"
    told(state, Observed(OVER))
    assert status_of(state) is TaskStatus.PENDING
    run = the_run(state)
    assert (run.attempts, run.tasks["losses"][0], run.tasks["launch"][0]) == (attempts, attempts, launch)


def test_a_launch_on_an_instance_that_is_not_known_is_adopted_when_a_sweep_shows_its_task() -> None:
    state, key = with_intent_on_an_unknown_instance()
    told(state, LaunchInDoubt(key, "no reply"), Observed(OLD))
    told(state, Observed(OVER, tasks=(task(7, "RUNNING", key=key),)))
    assert status_of(state) is TaskStatus.RUNNING
    told(state, host(1))  # it is learned again


def test_a_launch_in_doubt_on_a_known_instance_is_not_settled_by_a_sweep() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, LaunchInDoubt(key, "no reply"), Observed(OLD, hosts=(host(1),)), Observed(OVER, hosts=(host(1),)))
    assert state.row_of(key) is not None
