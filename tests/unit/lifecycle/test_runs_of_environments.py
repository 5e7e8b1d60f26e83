"""Does every run of an environment stay known until its tasks have ended? What is forgotten would run forever."""

from __future__ import annotations

from typing import Any

from argosy.lifecycle.apply import apply
from argosy.lifecycle.run_stops import give_up
from argosy.lifecycle.suspension import suspend
from argosy.model.events import EnvironmentAsked
from argosy.model.inbox import EnvironmentRequest
from argosy.model.run_record import RunRecord
from argosy.model.services.environments import MOST_REVISIONS, Environment
from argosy.model.state import State
from argosy.spec.parse import parse_spec, to_json
from tests.builders import NOW, POLICY, SERVICE_SPEC, submit_request


def ask(state: State, change: str, **fields: Any) -> None:
    apply(state, EnvironmentAsked(EnvironmentRequest("web", NOW, change, **fields)), NOW, POLICY)


def deploy(state: State, revision: int, number: int) -> str:
    """number: of the run that the request brings along. Returns its id."""
    run_id = f"web-261121-0627{number:02d}-k3f9"
    form = to_json(parse_spec(SERVICE_SPEC))
    submit = submit_request(run_id, NOW, form, 2, "argosy/web", f"s3://results/{run_id}/", False)
    ask(state, "deploy", revision=revision, token=run_id, submit=submit)
    return run_id


def deployed() -> tuple[State, Environment, str]:
    state = State(epoch="e")
    ask(state, "create", revision=1, desired=2)
    run_id = deploy(state, 1, number=1)
    return state, state.environments["web"], run_id


def test_a_revision_that_runs_is_kept_however_many_follow() -> None:
    state, env, run_id = deployed()
    for number in range(2, MOST_REVISIONS + 10):
        ask(state, "update", revision=number)
    assert env.runs() == [run_id]
    assert env.target is not None
    assert len(env.revisions) == MOST_REVISIONS
    assert env.latest.number == MOST_REVISIONS + 9


def test_a_revision_whose_run_is_suspended_gets_no_second_one() -> None:
    state, env, run_id = deployed()
    suspend(state, RunRecord.of(state.runs[run_id]), "a fault", NOW)
    deploy(state, 1, number=2)
    assert env.runs() == [run_id]
    assert [each.number for each in env.deployments] == [1, 2]
    assert not state.runs


def test_the_tasks_of_a_run_that_was_given_up_are_stopped_when_its_revision_gets_another_one() -> None:
    state, env, run_id = deployed()
    give_up(state, state.runs[run_id], "no task can be started: no")
    another = deploy(state, 1, number=2)
    assert env.runs() == [another]
    assert state.runs[run_id].cancelled
    assert not state.runs[another].cancelled
