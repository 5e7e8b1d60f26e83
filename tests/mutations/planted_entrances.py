"""Planted bugs about the rights on a queue and the owner of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from argosy.api import requests
from argosy.api.access import entrance, identity
from argosy.api.runs import submission
from argosy.lifecycle import apply
from argosy.model import sharers
from argosy.model.entrances import queue_of
from argosy.model.inbox import CancelRequest
from argosy.model.runs import Run
from argosy.model.sharers import queue_of_run
from argosy.model.shares.sharing import ShareQueue
from argosy.model.signed_requests import SignedFor
from argosy.model.state import State
from argosy.scheduler.turns import fair_order
from tests.fakes.entrances import shared_desk
from tests.mutations.catalogue import Check, Found, Patch, planted, scenario

ENTRANCE, MEMBERS = "tests.unit.api.test_entrance", "tests.simulation.test_members"


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
    "test_an_alias_that_no_queue_has_is_refused_even_for_reading", "q-sales", "is of no queue"
))  # fmt: skip
def unknown_aliases_are_default(patch: Patch) -> None:
    real = entrance._entrance
    patch.setattr(
        entrance, "_entrance", lambda queues, alias: real(queues, alias if queue_of(alias) in queues else "q-default")
    )


@planted("cancelling a run also cancels its dependents in other queues", check=scenario(
    MEMBERS, "dependents_stay", range(10, 11)
))  # fmt: skip
def all_dependents_go(patch: Patch) -> None:
    real = apply.dependencies.cancelled_with

    def cancelled_with(state: State, run_id: str, request: CancelRequest) -> list[Run]:
        return real(state, run_id, replace(request, queue=""))

    patch.setattr(apply.dependencies, "cancelled_with", cancelled_with)


@planted("an owner without a verified identity has a place among the sharers", check=scenario(
    "tests.unit.scheduler.turns.test_sharing_a_cluster", "test_unproven_owners_count_as_one"
))  # fmt: skip
def names_are_places(patch: Patch) -> None:
    def sharer_of(run: Run, queues: Mapping[str, ShareQueue]) -> tuple[str, str]:
        name = queue_of_run(run, queues)
        return name, (run.proven_owner or run.terms.owner) if queues[name].by_owner else ""

    patch.setattr(fair_order, "sharer_of", sharer_of)
    patch.setattr(sharers, "sharer_of", sharer_of)


@planted("an owner is accepted without proof of identity", check=scenario(
    MEMBERS, "trials_find_nothing", range(1)
))  # fmt: skip
def owners_are_believed(patch: Patch) -> None:
    real = submission.new_run

    def new_run(context: Any, admission: Any, token: str, attempt: int) -> Any:
        return real(replace(context, owner=admission.form.get("owner", "")), admission, token, attempt)

    patch.setattr(submission, "new_run", new_run)


@planted("changes through an entrance take a run to another queue", check=scenario(
    MEMBERS, "trials_find_nothing", range(3)
))  # fmt: skip
def members_go_anywhere(patch: Patch) -> None:
    updates_go_anywhere(patch)


@planted("what was signed may be another request", check=scenario(
    "tests.unit.api.test_identity", "other_requests_are_refused"
))  # fmt: skip
def requests_are_not_looked_at(patch: Patch) -> None:
    real = SignedFor.headers

    def headers(signed_for: SignedFor, action: str, text: str) -> dict[str, str]:
        return real(signed_for, action, "the same for all")

    patch.setattr(SignedFor, "headers", headers)


@planted("a signature never expires", check=scenario("tests.unit.api.test_identity", "old_signatures_are_refused"))
def signatures_never_age(patch: Patch) -> None:
    patch.setattr(identity, "_check_date", lambda text, now: None)
