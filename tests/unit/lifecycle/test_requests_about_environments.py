"""What do requests change that come twice, too late, or about something that cannot be?"""

from __future__ import annotations

from typing import Any

from argosy.lifecycle import environments
from argosy.model.inbox import EnvironmentRequest
from argosy.model.services.environments import DeploymentStatus, Environment
from argosy.model.state import State
from argosy.spec.parse import parse_spec, to_json
from tests.builders import NOW, SERVICE_SPEC, state_with, submit_request


def ask(state: State, change: str, now: float = NOW, **fields: Any) -> Environment:
    environments.ask(state, EnvironmentRequest("web", now, change, **fields))
    return state.environments["web"]


def deploy(state: State, revision: int, token: str, now: float = NOW) -> Environment:
    run_id = f"web-261121-062733-{token}"
    submit = submit_request(
        run_id, now, to_json(parse_spec(SERVICE_SPEC)), 2, "argosy/web", f"s3://results/{run_id}/", False
    )
    return ask(state, "deploy", now, revision=revision, token=token, submit=submit)


def deployed() -> State:
    state = state_with()
    ask(state, "create", revision=1, desired=2)
    deploy(state, 1, "aaaa")
    return state


def test_a_second_creation_keeps_the_environment_that_runs_and_uses_up_its_revision_number() -> None:
    state = deployed()
    before = state.environments["web"]
    env = ask(state, "create", revision=2, desired=9)
    assert env is before
    assert ([each.number for each in env.revisions], env.desired, len(env.deployments)) == ([1, 2], 2, 1)


def test_a_deployment_that_is_asked_for_twice_begins_once() -> None:
    state = deployed()
    env = deploy(state, 1, "aaaa", NOW + 60)
    assert [(each.number, each.started_at) for each in env.deployments] == [(1, NOW)]
    assert [each.number for each in deploy(state, 1, "bbbb", NOW + 60).deployments] == [1, 2]


def test_the_number_of_a_daemons_tasks_follows_its_instances_whatever_is_asked() -> None:
    state = state_with()
    ask(state, "create", revision=1, desired=3, is_daemon=True)
    assert ask(state, "scale", desired=7).desired == 3


def test_a_stop_without_a_deployment_under_way_freezes_nothing() -> None:
    state = state_with()
    env = ask(state, "create", revision=1, desired=2)
    ask(state, "stop", reason="enough")
    assert (env.deployments, env.frozen_reason) == ([], "")
    deployment = deploy(state, 1, "aaaa").deployments[0]
    deployment.status, deployment.ended_at = DeploymentStatus.COMPLETED, NOW + 30
    ask(state, "stop", NOW + 60, reason="enough")
    assert (deployment.status, deployment.reason, deployment.ended_at) == (DeploymentStatus.COMPLETED, "", NOW + 30)
    assert env.frozen_reason == ""


def test_a_deletion_stops_the_deployment_under_way_and_leaves_the_result_of_one_that_has_ended() -> None:
    state = deployed()
    (deployment,) = ask(state, "delete", NOW + 60).deployments
    assert (deployment.status, deployment.ended_at) == (DeploymentStatus.STOPPED, NOW + 60)
    state = deployed()
    state.environments["web"].deployments[0].status = DeploymentStatus.FAILED
    (deployment,) = ask(state, "delete", NOW + 60).deployments
    assert (deployment.status, deployment.ended_at) == (DeploymentStatus.FAILED, 0.0)
