"""Which bugs are planted? Part of them: who may use a queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.api import entrance, requests
from argosy.lifecycle import apply
from argosy.model.entrances import queue_of
from argosy.model.inbox import CancelRequest
from argosy.model.runs import Run
from argosy.model.state import State
from tests.fakes.entrances import shared_desk
from tests.mutations.catalogue import Check, Found, Patch, planted, scenario

ENTRANCE = "tests.unit.api.test_entrance"


def at_the_desk(test: str, *arguments: Any) -> Check:
    """The test, at a desk with queues."""

    def check() -> Found | None:
        return scenario(ENTRANCE, test, shared_desk(), *arguments)()

    return check


@planted("the queue of an entrance is not looked at where a run goes", check=at_the_desk(
    "test_a_run_goes_to_no_other_queue"
))  # fmt: skip
def updates_go_anywhere(patch: Patch) -> None:
    patch.setattr(entrance, "_CHECKS", {**entrance._CHECKS, requests.UpdateRun: entrance._of_run})


@planted("an alias that stands for no queue is taken for that of the default one", check=at_the_desk(
    "test_an_alias_that_no_queue_has_is_refused_even_to_those_who_look", "q-sales", "is of no queue"
))  # fmt: skip
def unknown_aliases_are_default(patch: Patch) -> None:
    real = entrance._entrance
    patch.setattr(
        entrance, "_entrance", lambda queues, alias: real(queues, alias if queue_of(alias) in queues else "q-default")
    )


@planted("with a run those of other queues are cancelled that depend on it", check=at_the_desk(
    "test_dependents_of_other_queues_are_not_cancelled"
))  # fmt: skip
def all_dependents_go(patch: Patch) -> None:
    real = apply.dependencies.cancelled_with

    def cancelled_with(state: State, run_id: str, request: CancelRequest) -> list[Run]:
        return real(state, run_id, replace(request, queue=""))

    patch.setattr(apply.dependencies, "cancelled_with", cancelled_with)
