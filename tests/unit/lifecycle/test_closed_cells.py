"""A closed cell's pools and instances; opening it undoes no other cordon."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.lifecycle.pools import close_cells
from argosy.market.offers import offers_of, rejected
from argosy.model.actions import Launch, SetTarget, Terminate
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.scheduler.decide import decide
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    moment_of,
    prepared,
    state_with,
    submitted,
    told,
)

POOL = f"{CELL}/c5.xlarge/us-east-1a"
WHY = "its stack is being destroyed"


def at_work() -> State:
    """An idle instance, one that boots, and a run that both could serve."""
    state = state_with(fleet(spot_target=2), host(1), container_instance(1), host(2), submitted(tasks=8), prepared())
    state.pools[POOL].spot_target = 2
    return state


def decided(state: State, *kinds: Any, **policy: Any) -> list[Any]:
    return [each for each in decide(moment_of(state, NOW, replace(POLICY, **policy))) if isinstance(each, kinds)]


def test_an_open_cell_is_used_and_a_closed_one_is_emptied() -> None:
    state = at_work()
    close_cells(state, {"eu-west-1": WHY})
    assert decided(state, Launch)
    close_cells(state, {CELL: WHY})
    assert not decided(state, Launch)
    assert decided(state, SetTarget, min_instances=2, min_idle=2) == [SetTarget(POOL, 0, 0)]
    assert decided(state, Terminate, min_instances=2, min_idle=2) == [Terminate(CELL, (instance_id(1),))]


def test_a_closed_cell_makes_no_offer_and_says_why() -> None:
    state = at_work()
    close_cells(state, {CELL: WHY})
    moment = moment_of(state)
    assert not offers_of(state.pools.values(), moment.catalogue, NOW)
    assert rejected(state.pools.values(), moment.catalogue, NOW) == [(POOL, f"its cell is closed: {WHY}")]


def test_actions_for_a_cell_closed_in_the_meantime_are_not_sent() -> None:
    state = at_work()
    begun(state, decided(state, Launch))
    assert decided(state, Launch)  # again, because it was not sent
    close_cells(state, {CELL: WHY})
    assert not decided(state, Launch)


def test_a_cell_that_is_opened_again_works_as_before_and_other_cordons_stay() -> None:
    state = at_work()
    state.instances[instance_id(2)].cordon = "it never joined the cluster"
    close_cells(state, {CELL: WHY})
    close_cells(state, {CELL: "another reason"})
    assert "another reason" in state.instances[instance_id(1)].cordon
    close_cells(state, {})
    assert [each.cordon for each in state.instances.values()] == ["", "it never joined the cluster"]
    assert not state.pools[POOL].closed
    assert decided(state, Launch)


@pytest.mark.parametrize("closed", [{CELL: WHY}, {}], ids=["closed", "open"])
def test_the_closing_is_stored_once_and_then_changes_nothing(closed: dict[str, str]) -> None:
    state = at_work()
    close_cells(state, {CELL: WHY})
    close_cells(state, closed)
    stored = documents.changed(state)
    assert (documents.STATE, documents.POOLS) in stored
    documents.committed(state)
    close_cells(state, closed)
    assert not state.changed_pools
    assert not state.changed_instances


def test_an_instance_that_is_gone_is_left_as_it_was() -> None:
    state = at_work()
    told(state, host(1, state="terminated"))
    close_cells(state, {CELL: WHY})
    assert not state.instances[instance_id(1)].cordon
