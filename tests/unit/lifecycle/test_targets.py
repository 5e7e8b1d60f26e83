"""What do replies of AWS about target groups, and tasks that leave a group, change?"""

from __future__ import annotations

import pytest

from argosy.lifecycle import environments
from argosy.model.actions import DeregisterTargets, DrainTask, RegisterTargets
from argosy.model.attempts import StopCause
from argosy.model.inbox import EnvironmentRequest
from argosy.model.services.environments import Environment
from argosy.model.services.targets import TargetPlace, TargetsDeregistered, TargetsRegistered
from argosy.model.state import State
from tests.builders import NOW, begun, instance_id, launched, state_with, state_with_instance, task, told

PLACE = TargetPlace("web", instance_id(1), 32768)


def registered() -> tuple[State, Environment]:
    state = state_with()
    environments.ask(state, EnvironmentRequest("web", NOW, "create", revision=1, desired=1))
    begun(state, [RegisterTargets("web", (PLACE,))])
    told(state, TargetsRegistered("web", (PLACE,)))
    return state, state.environments["web"]


def test_a_removal_that_was_asked_for_is_confirmed_once() -> None:
    state, env = registered()
    begun(state, [DeregisterTargets("web", (PLACE,))], NOW + 10)
    for now in (NOW + 12, NOW + 14):
        told(state, TargetsDeregistered("web", (PLACE,)), now=now)
    target = env.targets[PLACE]
    assert (target.registered_at, target.leaves_since, target.left_at) == (NOW, NOW + 10, NOW + 12)


def test_a_late_confirmation_of_an_earlier_removal_does_not_remove_a_target_that_serves() -> None:
    state, env = registered()
    told(state, TargetsDeregistered("web", (PLACE,)), now=NOW + 12)
    assert (env.targets[PLACE].registered_at, env.targets[PLACE].left_at) == (NOW, 0.0)


@pytest.mark.parametrize("kind", [TargetsRegistered, TargetsDeregistered])
def test_a_reply_about_an_environment_or_a_target_that_is_unknown_changes_nothing(
    kind: type[TargetsRegistered | TargetsDeregistered],
) -> None:
    state, env = registered()
    before = env.to_json()
    told(state, kind("gone", (PLACE,)), kind("web", (TargetPlace("web", instance_id(2), 32769),)), now=NOW + 12)
    assert list(state.environments) == ["web"]
    assert env.to_json() == before


def test_only_the_task_that_leaves_its_group_is_marked_as_stopping_and_none_if_it_has_ended() -> None:
    state = state_with_instance()
    first, second = launched(state, 0, number=1), launched(state, 1, number=2)
    told(state, task(1), task(2), task(1, "STOPPED", 3, exit_code=3))
    begun(state, [DrainTask(first, StopCause.INTERRUPTED)])
    (row,) = state.attempts.live().tolist()
    assert state.key_of(row) == second
    assert state.attempts["stop_cause"][row] == StopCause.NONE
    begun(state, [DrainTask(second, StopCause.INTERRUPTED)])
    assert state.attempts["stop_cause"][row] == StopCause.INTERRUPTED
