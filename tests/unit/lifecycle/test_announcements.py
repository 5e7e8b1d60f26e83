"""An announcement about an instance is kept until the instance is found, in either order."""

from __future__ import annotations

from itertools import permutations

import pytest

from argosy.engine.loading import load
from argosy.lifecycle.announcements import KEPT_S, MOST, AnnouncementTimes, keep
from argosy.lifecycle.apply import apply, pass_time
from argosy.model.events import Event, InterruptionWarned, RebalanceAdvised
from argosy.model.state import State
from argosy.model.stored import documents
from tests.builders import (
    NOW,
    POLICY,
    MemoryStore,
    container_instance,
    fleet,
    host,
    instance_id,
    state_with,
    told,
)

WARNED = InterruptionWarned(instance_id(1), NOW + 5)
ADVISED = RebalanceAdvised(instance_id(1), NOW + 3)


def known_of(state: State) -> tuple[float, float]:
    instance = state.instances[instance_id(1)]
    return instance.interrupted_at, instance.rebalance_at


@pytest.mark.parametrize("facts", [*permutations([WARNED, ADVISED, host(1), container_instance(1)])])
def test_a_warning_and_advice_count_in_whatever_order_the_facts_come(facts: tuple[Event, ...]) -> None:
    state = state_with(fleet(), *facts)
    assert known_of(state) == (NOW + 5, NOW + 3)
    assert not state.instances[instance_id(1)].placeable
    assert not state.announced
    (pool,) = state.pools.values()
    assert pool.interruptions == 1


def test_a_controller_that_starts_in_between_knows_what_was_announced() -> None:
    store, before = MemoryStore(), state_with(WARNED)
    store.commit(before.version, documents.changed(before), ())
    state = load(store)
    told(state, host(1), container_instance(1))
    assert known_of(state) == (NOW + 5, 0.0)


def test_an_announcement_without_a_time_counts_from_its_arrival() -> None:
    state = State()
    apply(state, InterruptionWarned(instance_id(1)), NOW + 7, POLICY)
    told(state, host(1))
    assert known_of(state) == (NOW + 7, 0.0)


@pytest.mark.parametrize(("seconds", "kept"), [(KEPT_S, True), (KEPT_S + 1, False)])
def test_what_nothing_shows_within_a_quarter_of_an_hour_is_dropped(seconds: float, kept: bool) -> None:
    state = State()
    apply(state, WARNED, NOW, POLICY)
    pass_time(state, NOW + seconds, POLICY)
    assert bool(state.announced) is kept


def test_of_very_many_announcements_the_latest_are_kept() -> None:
    """Other programs of the account use spot instances too."""
    state = State()
    for number in range(MOST + 2):
        keep(state, instance_id(number), AnnouncementTimes(advised_at=NOW, heard_at=NOW))
    keep(state, instance_id(2), AnnouncementTimes(warned_at=NOW, heard_at=NOW + 1))
    keep(state, "i-one-more", AnnouncementTimes(warned_at=NOW, heard_at=NOW + 1))
    assert len(state.announced) == MOST
    assert state.announced[instance_id(2)] == [NOW, NOW, NOW + 1]
    assert instance_id(3) not in state.announced
