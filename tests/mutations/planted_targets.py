"""Planted bugs: tasks behind load balancers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from argosy.lifecycle import targets as lifecycle_targets
from argosy.model.actions import Action, RegisterTargets
from argosy.model.attempts import AttemptStatus
from argosy.model.live_tasks import PlacedTask
from argosy.model.moment import Moment
from argosy.model.services.targets import TargetEntry
from argosy.model.state import State
from argosy.scheduler.services import environments, targets
from tests.mutations.catalogue import Patch, planted, scenario
from tests.mutations.planted_services import served

STORIES = "tests.scenarios.test_target_groups"


@planted("a task is stopped while its load balancer still sends it requests", check=served())
def stops_do_not_drain(patch: Patch) -> None:
    def at_once(moment: Moment, actions: Iterable[Action]) -> Iterator[Action]:
        yield from actions

    patch.setattr(environments, "drained_first", at_once)


@planted(
    "a task that ended by itself stays in its target group",
    check=scenario(STORIES, "test_a_task_that_ended_by_itself_is_taken_out"),
)
def ended_targets_stay(patch: Patch) -> None:
    def leaves(target: TargetEntry, place: Any, held: Any) -> bool:
        return bool(target.leaves_since)

    patch.setattr(targets, "_leaves", leaves)


@planted(
    "requests are sent to a task before its health command says that it is well",
    check=scenario(STORIES, "test_a_task_with_a_health_command_is_registered_when_that_says_that_it_is_well"),
)
def registered_before_it_is_well(patch: Patch) -> None:
    def serves(state: State, task: PlacedTask) -> bool:
        return bool(state.attempts["status"][task.row] == AttemptStatus.RUNNING)

    patch.setattr(targets, "_serves", serves)


@planted(
    "what is to be registered is not stored before the call",
    check=scenario(STORIES, "test_what_a_controller_registered_before_it_died_is_known_to_the_next_one", 60.0),
)
def registered_unseen(patch: Patch) -> None:
    def begin(state: State, action: RegisterTargets) -> None:
        """Nothing."""

    patch.setattr(lifecycle_targets, "begin_registering", begin)
