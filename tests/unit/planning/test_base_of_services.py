"""A plan and an explanation for a service with tasks on on-demand instances."""

from __future__ import annotations

from typing import Any

from argosy.api.waiting.explanation import explain_run
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.planning.forecast import Seconds, forecast
from tests.builders import RUN_ID, fleet, moment_of, prepared, state_with, submitted

SERVICE: dict[str, Any] = {
    "kind": "service", "service": {"desired": 5}, "capacity": {"onDemandBase": 2}, "name": "web",
}  # fmt: skip


def service() -> tuple[State, Run]:
    state = state_with(submitted(tasks=5, **SERVICE), prepared(), fleet())
    return state, state.runs[RUN_ID]


def test_a_plan_buys_both_kinds() -> None:
    state, run = service()
    found = forecast(moment_of(state), run, Seconds(60.0, 60.0, 60.0, "spec"))
    assert {each.offer.purchase.value for each in found.bought} == {"spot", "on-demand"}
    assert found.places >= 5
    assert found.here == 0


def test_an_explanation_says_how_many_of_the_base_have_a_place() -> None:
    state, run = service()
    assert explain_run(moment_of(state), run)["purchase"]["reason"] == (
        "capacity.onDemandBase: 0 of 2 tasks have a place on on-demand instances"
    )
