"""Recent use: noted, stored, forgotten, and a factor of the order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.lifecycle.apply import pass_time
from argosy.lifecycle.user_requests import note_use as note
from argosy.model.actions import Launch
from argosy.model.cluster_history import EVERY_S
from argosy.model.shares.recent_use import RECENT_USE, UNIT, RecentUse
from argosy.model.shares.sharing import Sharing
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.documents import restore
from argosy.scheduler.turns.fair_order import FairOrder
from argosy.scheduler.turns.queue_views import PastUse, use_of_queues
from argosy.sharing.columns import ONE_FACTOR
from tests.builders import NOW, POLICY, begun, state_with, stored
from tests.shared_clusters import cluster, decided, launches, run, shared

DAY_S = 86_400.0
REMEMBERS = {"version": 1, "halfLife": "24h", "queues": {"a": {}, "b": {}}}
OWNERS = {"version": 1, "halfLife": "24h", "queues": {"team": {"within": "owners"}}}


def busy(document: dict[str, Any] | None = None, **spec: Any) -> State:
    """Queue a has used the whole cluster so far, all of it."""
    state = shared(cluster(4), document or REMEMBERS)
    run(state, 1, 1_000, **({"queue": "a"} | spec))
    begun(state, [each for each in decided(state, max_instances=4) if isinstance(each, Launch)])
    return state


def after(state: State, hours: float) -> State:
    """It goes on like that."""
    for step in range(int(hours * 12) + 1):
        note(state, NOW + step * EVERY_S)
    return state


def factors(state: State) -> dict[str, float]:
    order = FairOrder.of(state, list(state.runs.values()))
    return {owner or queue: each / ONE_FACTOR for (queue, owner), each in zip(order.sharers, order.factor, strict=True)}


def test_a_queue_that_used_everything_for_a_day_comes_after_one_that_used_nothing() -> None:
    state = after(busy(), 48)
    ahead = cluster(4)
    ahead.sharing = state.sharing
    first, second = run(ahead, 1, 1_000, queue="a"), run(ahead, 2, 1_000, queue="b")
    found = launches(decided(ahead, max_instances=4))
    assert found == {first: 3, second: 13}  # 1 to 6, as far as whole tasks go
    assert factors(ahead) == {"b": 4, "a": 42 / 64}


def test_a_queue_that_recently_used_everything_still_gets_a_part() -> None:
    """At least a sixteenth of the share that its weight alone would give it."""
    state = cluster(30)
    state.sharing = replace(after(busy(), 1).sharing, recent=RecentUse(NOW, (1, 1, 0), {("a", ""): (UNIT, UNIT, 0)}))
    first, second = run(state, 1, 1_000, queue="a"), run(state, 2, 1_000, queue="b")
    found = launches(decided(state, max_instances=30))
    assert found[first] + found[second] == 120
    assert found[first] == 14  # 1/2 to 4


def test_a_document_that_says_nothing_of_it_remembers_nothing() -> None:
    state = busy({"version": 1, "queues": {"a": {}, "b": {}}})
    after(state, 24)
    assert state.sharing.recent == RecentUse()
    assert not state.changed_recent_use
    assert RECENT_USE not in dict(key for key in documents.changed(state))


def test_it_is_noted_every_five_minutes_and_not_in_each_tick() -> None:
    state, writes = busy(), 0
    for tick in range(1_800):  # an hour of ticks
        pass_time(state, NOW + 2 * tick, POLICY)
        writes += state.changed_recent_use
        state.changed_recent_use = False
    assert writes == 12


def test_an_unused_cluster_is_recorded_until_all_use_is_forgotten() -> None:
    state = shared(cluster(1), REMEMBERS)
    note(state, NOW)
    state.changed_recent_use = False
    after(state, 2)
    assert not state.changed_recent_use
    state.sharing = replace(state.sharing, recent=RecentUse(NOW, (1, 1, 0), {("a", ""): (UNIT, 0, 0)}))
    note(state, NOW + 100 * DAY_S)
    assert state.changed_recent_use
    assert state.sharing.recent.means == {}


def test_a_controller_that_was_away_first_forgets_by_the_time_that_has_passed() -> None:
    state = after(busy(), 24)
    used = state.sharing.recent.means["a", ""][0]
    rested = state_with()
    rested.sharing = state.sharing
    pass_time(rested, state.sharing.recent.at + 2 * DAY_S, POLICY)
    assert rested.sharing.recent.means["a", ""][0] == pytest.approx(used / 4)


def test_it_outlives_the_controller() -> None:
    state, items = after(busy(), 24), {}
    again = stored(state, items)
    assert again.sharing.recent == state.sharing.recent
    assert again.sharing.recent.means["a", ""][0] > UNIT
    assert not again.changed_recent_use


def test_a_document_without_half_life_ends_it() -> None:
    state = after(busy(), 24)
    shared(state, {"version": 1, "queues": {"a": {}, "b": {}}})
    note(state, NOW + DAY_S)
    assert state.sharing.recent == RecentUse()
    assert state.changed_recent_use


def test_another_document_does_not_forget_what_was_used() -> None:
    state = after(busy(), 24)
    recent = state.sharing.recent
    shared(state, REMEMBERS | {"halfLife": "12h"})
    assert state.sharing.recent == recent


def test_an_unreadable_record_restarts_and_is_reported() -> None:
    items: documents.Documents = {}
    stored(after(busy(), 24), items)
    partition = {key: body for (name, key), body in items.items() if name == documents.STATE}
    state = restore(1, partition | {RECENT_USE: b"nonsense"}, {})
    assert state.sharing.revision == 1
    assert state.sharing.recent == RecentUse()
    assert "record of recent use" in [each.document for each in state.losses.found]
    state = restore(1, {key: body for key, body in partition.items() if key != RECENT_USE}, {})
    assert (state.sharing.revision, state.sharing.recent) == (1, RecentUse())  # as an earlier version stored it


def test_owners_have_a_factor_of_their_own() -> None:
    state = after(busy(OWNERS, queue="team", owner="alice"), 240)
    run(state, 2, 1_000, queue="team", owner="bob")
    assert factors(state) == {"alice": 0.5, "bob": 4}


def test_the_queues_show_what_was_used_lately_and_what_it_does() -> None:
    state = after(busy(), 240)
    run(state, 2, 1_000, queue="b")
    found = {each.name: each.lately for each in use_of_queues(state)}
    assert found["default"] == ()
    assert found["a"] == [PastUse("", pytest.approx(1.0, abs=0.01), 0.5)]
    assert found["b"] == [PastUse("", 0.0, 4)]
    assert all(not each.lately for each in use_of_queues(state_with()))


def test_the_half_life_is_read_from_the_document() -> None:
    assert Sharing().half_life_s == 0
    for said, seconds in (("24h", DAY_S), ("90m", 5_400.0), ("0s", 0.0), ("7d", 7 * DAY_S)):
        assert Sharing().with_document(REMEMBERS | {"halfLife": said}, NOW).half_life_s == seconds
