"""The order at a limit: queues, owners, priorities."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from argosy.model.actions import CloseRun, Launch, PrepareRun, Remark, SetTarget, VerifyResult
from argosy.model.events import SharingAsked
from argosy.model.inbox import SharingRequest
from argosy.model.run_terms import DaemonTerms
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.buying.remarks import ORDERED
from argosy.scheduler.turns.fair_order import FairOrder
from argosy.scheduler.turns.queue_views import use_of_queues
from tests.builders import (
    NOW,
    begun,
    fleet,
    joined,
    state_with,
    submitted,
    told,
)
from tests.shared_clusters import cluster, decided, launches, run, run_id, shared

OWNERS = {"version": 1, "queues": {"team": {"within": "owners"}, "other": {}}}


def test_a_queue_that_comes_later_gets_its_share_of_the_places() -> None:
    state = shared(cluster(4))
    first, second = run(state, 1, 1_000), run(state, 2, 1_000, queue="research")
    assert launches(decided(state, max_instances=4)) == {first: 4, second: 12}


def test_without_queues_the_first_run_comes_first() -> None:
    state = cluster(4)
    first, _ = run(state, 1, 1_000), run(state, 2, 1_000)
    assert launches(decided(state, max_instances=4)) == {first: 16}


def test_within_a_queue_priority_comes_before_age() -> None:
    state = cluster(4)
    _, second = run(state, 1, 1_000), run(state, 2, 10, priority=5)
    third = run(state, 3, 4, priority=5)
    found = launches(decided(state, max_instances=4))
    assert (found[second], found[third]) == (10, 4)


def test_a_run_with_places_waits_for_those_without() -> None:
    state = shared(cluster(4), {"version": 1, "queues": {"a": {}, "b": {}}})
    first = run(state, 1, 1_000, queue="a")
    actions = decided(state, max_instances=4)
    begun(state, [each for each in actions if isinstance(each, Launch)][:12])
    second = run(state, 2, 1_000, queue="b")
    assert launches(decided(state, max_instances=4)) == {second: 4, first: 12}  # those are intended already


def test_weight_0_gets_what_is_left() -> None:
    state = shared(cluster(4))
    night, day = run(state, 1, 1_000, queue="night"), run(state, 2, 10)
    assert launches(decided(state, max_instances=4)) == {day: 10, night: 6}


def test_owners_divide_the_weight_of_their_queue() -> None:
    state = shared(cluster(4), OWNERS)
    alice, bob = run(state, 1, 900, queue="team", owner="alice"), run(state, 2, 900, queue="team", owner="bob")
    other = run(state, 3, 900, queue="other")
    assert launches(decided(state, max_instances=4)) == {other: 8, alice: 4, bob: 4}


def test_unproven_owners_count_as_one() -> None:
    """However many names a user invents."""
    state = shared(cluster(4), OWNERS)
    alice = run(state, 1, 900, queue="team", owner="alice")
    made_up = [run(state, number, 900, queue="team", owner=f"name-{number}") for number in range(2, 6)]
    for each in made_up:
        state.runs[each].proven_owner = ""
    found = launches(decided(state, max_instances=4))
    assert (found[alice], sum(found.get(each, 0) for each in made_up)) == (8, 8)


def test_a_run_of_a_removed_queue_is_in_the_default_one() -> None:
    state = shared(cluster(4))
    gone = run(state, 1, 1_000, queue="research")
    shared(state, {"version": 1, "queues": {"other": {}}})
    other = run(state, 2, 1_000, queue="other")
    assert launches(decided(state, max_instances=4)) == {gone: 8, other: 8}


def test_what_a_queue_does_not_want_goes_to_the_others() -> None:
    state = shared(cluster(4))
    first, second = run(state, 1, 1_000), run(state, 2, 2, queue="research")
    assert launches(decided(state, max_instances=4)) == {first: 14, second: 2}


def test_with_room_for_all_every_run_starts() -> None:
    state = shared(cluster(4))
    first, second = run(state, 1, 10), run(state, 2, 6, queue="research")
    assert launches(decided(state)) == {first: 10, second: 6}


def test_a_task_that_fits_nowhere_keeps_no_room_from_the_others() -> None:
    state = shared(cluster(4))
    run(state, 1, 5, queue="research", resources={"vcpus": 64, "memory": 1024})
    second = run(state, 2, 1_000)
    assert launches(decided(state, max_instances=4)) == {second: 16}


def test_launches_of_a_tick_are_shared() -> None:
    state = shared(cluster(8))
    first, second = run(state, 1, 20), run(state, 2, 9, queue="research")
    assert launches(decided(state, launches_per_cell=8)) == {first: 2, second: 6}
    assert launches(decided(state, max_launches_per_tick=4)) == {first: 1, second: 3}


def test_a_run_of_one_task_gets_its_instance_although_the_first_run_would_take_all_that_may_be_ordered() -> None:
    state = shared(state_with(fleet(), fleet(zone="us-east-1b")))
    run(state, 1, 1_000_000)
    second = run(state, 2, 1, queue="research")
    actions = decided(state, growth_per_tick=5)
    assert sum(each.spot_target for each in actions if isinstance(each, SetTarget)) == 5
    remarks = {each.run_id: each.sentence for each in actions if isinstance(each, Remark)}
    assert remarks[second] == ORDERED


def test_what_is_bought_for_one_queue_is_not_promised_to_another() -> None:
    """Or it would be bought again, tick after tick."""
    state = shared(state_with(fleet(spot_target=5)))
    run(state, 1, 1_000_000)
    second = run(state, 2, 1, queue="research")
    actions = decided(state, max_instances=5)
    remarks = {each.run_id: each.sentence for each in actions if isinstance(each, Remark)}
    assert remarks[second] == ORDERED


def test_of_a_queue_the_first_run_starts_first_although_instances_come_for_both() -> None:
    document = {"version": 1, "queues": {"default": {}, "night": {"cap": {"vcpus": 1}}}}
    state = shared(state_with(fleet(spot_target=2)), document)
    told(state, *joined(range(1)))
    first, _ = run(state, 1, 4), run(state, 2, 20)
    assert launches(decided(state, max_instances=2)) == {first: 4}


def test_a_run_for_which_nothing_is_ordered_says_so() -> None:
    state = state_with(fleet())
    run(state, 1, 1_000_000)
    second = run(state, 2, 1, resources={"vcpus": 4, "memory": 6000})
    remarks = {each.run_id: each.sentence for each in decided(state, growth_per_tick=5) if isinstance(each, Remark)}
    assert remarks[second].startswith("no instance is ordered for it yet: a tick orders 5 at most")


def test_preparations_take_turns() -> None:
    state = shared(State(epoch="testtest"))
    for number in range(1, 5):
        told(state, submitted(run_id(number)))
    told(state, submitted(run_id(5), queue="research"))
    assert [each.run_id for each in decided(state) if isinstance(each, PrepareRun)].index(run_id(5)) < 2


def test_result_look_ups_and_closings_take_turns() -> None:
    state = shared(cluster(1))
    for number, queue in ((1, "default"), (2, "default"), (3, "research")):
        found = state.runs[run(state, number, 40, queue=queue)]
        for index in range(40):
            found.tasks.set(index, status=TaskStatus.VERIFYING, attempts=1)
    looked_up = Counter(
        each.run_id for each in decided(state, max_verifications_per_tick=40) if isinstance(each, VerifyResult)
    )
    assert looked_up == {run_id(1): 10, run_id(3): 30}
    for found in state.runs.values():
        for index in range(40):
            found.tasks.set(index, status=TaskStatus.SUCCEEDED)
    closed = [each.run_id for each in decided(state) if isinstance(each, CloseRun)]
    assert closed.index(run_id(3)) < 2
    assert len(closed) == 3


def test_the_queues_say_what_they_use_and_what_waits_in_them() -> None:
    state = shared(cluster(4))
    run(state, 1, 1_000)
    run(state, 2, 1_000, queue="research")
    begun(state, [each for each in decided(state, max_instances=4) if isinstance(each, Launch)])
    default, research, night = use_of_queues(state)
    assert (default.running, default.waiting, default.runs, default.share) == (4, 996, 1, 0.25)
    assert (research.running, research.use, research.level) == (12, pytest.approx(0.75), pytest.approx(0.25))
    assert (night.runs, night.share, night.level) == (0, 0.0, None)


def test_of_two_documents_that_follow_one_revision_the_first_counts() -> None:
    state = state_with()
    for name in ("first", "second"):
        told(state, SharingAsked(SharingRequest({"version": 1, "queues": {name: {}}}, 0, NOW)))
    assert list(state.sharing.queues()) == ["default", "first"]


def test_a_daemon_is_of_no_queue() -> None:
    """Its owner divides no weight, and its use raises no level."""
    state = shared(cluster(4), OWNERS)
    daemon, alice, other = (run(state, n, 900, queue="team" if n < 3 else "other") for n in (1, 2, 3))
    state.daemons.add(state.runs[daemon].number)
    state.runs[daemon].terms = replace(state.runs[daemon].terms, daemon=DaemonTerms("", starts_first=False))
    state.runs[daemon].proven_owner, state.runs[alice].proven_owner = "ops", "alice"
    order = FairOrder.of(state, [each for each in state.runs.values() if not each.is_daemon])
    assert dict(zip(order.sharers, order.parts.tolist(), strict=True)) == {("team", "alice"): 1, ("other", ""): 1}
    assert {each.name: each.runs for each in use_of_queues(state)} == {"default": 0, "team": 1, "other": 1}
    assert other in order.row
