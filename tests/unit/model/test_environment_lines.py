"""The journal's lines about environments."""

from __future__ import annotations

from typing import Any

from argosy.lifecycle import environments
from argosy.model.inbox import EnvironmentRequest
from argosy.model.journal.commit import lines_of_commit
from argosy.model.services.environments import DeploymentStatus
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.environments import ENVIRONMENT, environment_from
from tests.builders import NOW, state_with


def told(state: State) -> list[dict[str, Any]]:
    """The lines about environments of the next commit, which is made."""
    lines = [each for each in lines_of_commit(state) if "environment" in each]
    documents.committed(state)
    return lines


def ask(state: State, change: str, **fields: Any) -> None:
    environments.ask(state, EnvironmentRequest("web", NOW, change, **fields))


def test_each_change_has_one_line_and_none_comes_twice() -> None:
    state = state_with()
    ask(state, "create", revision=1, desired=3)
    assert told(state) == [{"type": "env.created", "environment": "web", "revision": 1, "desired": 3}]
    assert told(state) == []
    ask(state, "update", revision=2)
    ask(state, "scale", desired=5)
    ask(state, "freeze", reason="holidays")
    assert told(state) == [
        {"type": "env.updated", "environment": "web", "revision": 2},
        {"type": "env.scaled", "environment": "web", "desired": 5},
        {"type": "env.frozen", "environment": "web", "reason": "holidays"},
    ]
    ask(state, "thaw")
    assert told(state) == [{"type": "env.thawed", "environment": "web"}]
    state.environments["web"].failures, state.environments["web"].failure = 3, "exit code 3"
    state.changed_environments.add("web")
    assert told(state) == [{"type": "env.failing", "environment": "web", "reason": "exit code 3"}]
    environments.note_recovered(state, "web")
    assert told(state) == [{"type": "env.recovered", "environment": "web"}]
    ask(state, "delete")
    assert told(state) == [{"type": "env.deleting", "environment": "web"}]
    environments.forget(state, "web")
    assert told(state) == [{"type": "env.deleted", "environment": "web"}]


def test_a_deployment_has_lines_from_its_beginning_to_its_end() -> None:
    state = state_with()
    ask(state, "create", revision=1, desired=0)
    env = state.environments["web"]
    told(state)
    environments.begin_deployment(env, env.latest, NOW)
    state.changed_environments.add("web")
    assert told(state) == [{"type": "deployment.started", "environment": "web", "deployment": 1, "revision": 1}]
    assert env.deployment is not None
    env.deployment.status, env.deployment.reason = DeploymentStatus.STUCK, "no progress"
    state.changed_environments.add("web")
    [line] = told(state)
    assert (line["type"], line["status"], line["reason"]) == (
        "deployment.changed",
        "STUCK",
        "no progress",
    )


def test_what_was_stored_is_no_news() -> None:
    state = state_with()
    ask(state, "create", revision=1, desired=3)
    body = documents.changed(state)[documents.STATE, ENVIRONMENT + "web"]
    again = environment_from(body)
    assert again is not None
    state.environments["web"] = again
    state.changed_environments.add("web")
    assert told(state) == []
