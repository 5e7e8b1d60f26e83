"""Planted bugs: the health of services' tasks, and their endpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.lifecycle import attempts, services
from argosy.model.attempts import TaskHealth
from argosy.model.events import TaskSeen
from argosy.model.state import State
from argosy.scheduler.services import rollout
from tests.mutations.catalogue import Patch, planted, scenario
from tests.mutations.planted_services import PROPERTIES, WORLDS, served

STORIES = "tests.scenarios.test_health_of_services"


@planted("the health of a task is taken in only with a higher version of it", check=served())
def health_behind_the_version_gate(patch: Patch) -> None:
    real = services.note_sighting

    def note(state: State, row: int, seen: TaskSeen) -> None:
        is_news = seen.version > state.attempts["version"][row]
        real(state, row, seen if is_news else replace(seen, looked_at=0.0))

    patch.setattr(attempts.services, "note_sighting", note)


@planted(
    "what ECS does not know of a task counts as unhealthy",
    check=scenario(STORIES, "test_what_ecs_does_not_know_says_nothing"),
)
def unknown_is_unhealthy(patch: Patch) -> None:
    patch.setitem(services._HEALTH, "UNKNOWN", TaskHealth.UNHEALTHY)


@planted("a task that runs is healthy, whatever its health command says", check=served())
def health_is_not_asked(patch: Patch) -> None:
    patch.setitem(services._HEALTH, "UNKNOWN", TaskHealth.HEALTHY)


@planted("an unhealthy task is stopped before its successor is healthy", check=scenario(PROPERTIES, WORLDS))
def unhealthy_goes_first(patch: Patch) -> None:
    def given_up(failing: Any, *rest: Any, **room: int) -> tuple[Any, ...]:
        return tuple(failing)

    patch.setattr(rollout, "_given_up", given_up)


@planted(
    "an unhealthy task does not count against its deployment",
    check=scenario(STORIES, "test_a_revision_whose_tasks_never_become_healthy_fails_and_is_rolled_back"),
)
def unhealthy_ends_do_not_count(patch: Patch) -> None:
    real = services._count

    def count(state: State, env: Any, run: Any, end: Any, now: float) -> None:
        if end.cause.name != "UNHEALTHY":
            real(state, env, run, end, now)

    patch.setattr(services, "_count", count)
