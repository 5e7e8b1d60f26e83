"""Which bugs are planted? Those of tasks behind load balancers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from argosy.model.actions import Action
from argosy.model.moment import Moment
from argosy.model.targets import TargetEntry
from argosy.scheduler import decide as decide_module
from argosy.scheduler import targets
from tests.mutations.catalogue import Patch, planted, scenario
from tests.mutations.planted_services import served

STORIES = "tests.scenarios.test_target_groups"


@planted("a task is told to stop while its load balancer sends it requests", check=served())
def stops_do_not_drain(patch: Patch) -> None:
    def at_once(moment: Moment, actions: Iterable[Action]) -> Iterator[Action]:
        yield from actions

    patch.setattr(decide_module, "drained_first", at_once)


@planted(
    "a task that ended by itself stays in its target group",
    check=scenario(STORIES, "test_a_task_that_ended_by_itself_is_taken_out"),
)
def ended_targets_stay(patch: Patch) -> None:
    def leaves(target: TargetEntry, place: Any, held: Any) -> bool:
        return bool(target.leaves_since)

    patch.setattr(targets, "_leaves", leaves)
