"""No act of ours leaves an environment with fewer healthy tasks, or more tasks, than its update allows."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.run_terms import ServiceTerms
from argosy.scheduler.services import rollout
from argosy.scheduler.services.rollout import Slot, SlotStatus, Step
from tests.fakes.rollout_world import OVER, PERCENTAGES, RolloutWorld, bounds, broken_laws, updating
from tests.fakes.settling import ticks_to_settle

WORLDS = 300
PARTS, MANY_WORLDS = 4, 5_000  # of the deep run: 20,000 together
FAULTY_TICKS = 40
MOST_TICKS = 60  # until all is settled once nothing happens any more: 20 tasks, one after the other
ORDINARY = settings(max_examples=70, derandomize=True, deadline=None)

percentages = st.tuples(st.sampled_from(PERCENTAGES), st.sampled_from(OVER)).filter(lambda pair: pair != (100, 0))
updates = percentages.map(lambda pair: updating(*pair))


names = st.sets(st.tuples(st.sampled_from(("run1", "run2", "run3")), st.integers(0, 20)), max_size=30)
statuses, flags = st.sampled_from(list(SlotStatus)), st.booleans()


@st.composite
def crowds(draw: st.DrawFn) -> list[Slot]:
    """Any slots of three revisions, including combinations that no step of ours leads to."""
    slots = []
    for run_id, index in sorted(draw(names)):
        status = draw(statuses)
        leaves = status is not SlotStatus.PENDING and draw(flags)
        is_sent = status is not SlotStatus.STARTING or draw(flags)
        slots.append(Slot(run_id, index, status, run_id == "run3", leaves, draw(flags), draw(flags), is_sent))
    return slots


def as_sets(step: Step) -> tuple[int, set[Slot], tuple[Slot, ...], tuple[Slot, ...]]:
    return step.starts, {*step.parks}, step.stops, step.failed


def play(seeds: range) -> int:
    """The most ticks that any of these worlds took to settle."""
    longest = 0
    for seed in seeds:
        world = RolloutWorld(seed)
        took = ticks_to_settle(world, seed, faulty=FAULTY_TICKS, most=MOST_TICKS)
        assert world.step(world.slots()) == Step(), seed
        longest = max(longest, took)
    return longest


def test_no_act_of_ours_undercuts_or_exceeds_the_bounds_and_all_worlds_settle() -> None:
    assert 10 < play(range(WORLDS)) <= MOST_TICKS


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
def test_no_act_of_ours_does_so_in_twenty_thousand_worlds(part: int) -> None:
    play(range(part * MANY_WORLDS, (part + 1) * MANY_WORLDS))


@given(crowds(), st.integers(0, 20), updates, st.booleans(), st.sampled_from((0, 1, 3, 20)))
@ORDINARY
def test_the_laws_hold_for_any_slots_at_all(
    slots: list[Slot], desired: int, terms: ServiceTerms, is_frozen: bool, base: int
) -> None:
    step = rollout.step(slots, desired, terms, is_frozen=is_frozen, base=base)
    assert broken_laws(slots, desired, terms, step, is_frozen=is_frozen, base=base) == []


@given(crowds(), st.integers(0, 20), updates, st.randoms(use_true_random=False))
@ORDINARY
def test_the_order_of_slots_changes_nothing(
    slots: list[Slot], desired: int, terms: ServiceTerms, random: Random
) -> None:
    before = list(slots)
    step = rollout.step(slots, desired, terms)
    assert slots == before
    assert rollout.step(slots, desired, terms) == step
    other = rollout.step(random.sample(slots, len(slots)), desired, terms)
    assert as_sets(other) == as_sets(step)


@given(crowds(), st.integers(0, 20), updates)
@ORDINARY
def test_what_is_frozen_gives_up_its_pending_slots_and_nothing_else(
    slots: list[Slot], desired: int, terms: ServiceTerms
) -> None:
    step = rollout.step(slots, desired, terms, is_frozen=True)
    assert (step.starts, step.stops, step.failed) == (0, (), ())
    assert {*step.parks} == {slot for slot in slots if slot.status is SlotStatus.PENDING}


@given(st.integers(0, 30) | st.integers(0, 10_000), updates)
@ORDINARY
def test_whatever_the_percentages_and_however_few_the_tasks_an_update_can_move(
    desired: int, terms: ServiceTerms
) -> None:
    assert (rollout.least_healthy(terms, desired), rollout.most_active(terms, desired)) == bounds(terms, desired)
    least, most = bounds(terms, desired)
    assert not desired or least < desired or most > desired


def test_a_hand_over_with_room_keeps_ten_of_ten_healthy_and_without_it_nine() -> None:
    for over, least, expected in ((25, 100, 10), (0, 90, 9)):
        terms = updating(least, over, desired=10)
        slots = [Slot("run1", n, SlotStatus.HEALTHY, is_target=True, leaves=n == 0) for n in range(10)]
        step = rollout.step(slots, 10, terms)
        assert (len(step.stops), step.starts) == (10 - expected, 1)


def test_of_a_base_what_spot_cannot_take_stays_and_what_stands_in_for_it_serves_until_it_is_there() -> None:
    terms = updating(100, 50, desired=2)
    spot = [Slot("run1", n, SlotStatus.HEALTHY, is_target=True) for n in range(2)]
    young = Slot("run1", 2, SlotStatus.YOUNG, is_target=True, is_spot=False)
    assert rollout.step([*spot, young], 2, terms).stops == (young,)
    assert rollout.step([*spot, young], 2, terms, base=1) == Step()
    healthy = young._replace(status=SlotStatus.HEALTHY)
    assert rollout.step([*spot, healthy], 2, terms, base=1).stops == (spot[1],)
    assert rollout.step(spot, 2, terms, base=1) == Step(starts=1)


def test_an_unhealthy_task_goes_although_others_only_stand_in_for_those_of_the_base() -> None:
    """World 540: they still serve, and on-demand instances may not come for hours."""
    terms = updating(100, 100, desired=3)
    spot = [Slot("run1", n, SlotStatus.HEALTHY, is_target=True) for n in range(3)]
    pending = [Slot("run1", 3 + n, SlotStatus.PENDING, is_target=True) for n in range(2)]
    ill = Slot("run1", 5, SlotStatus.YOUNG, is_target=True, fails=True)
    assert rollout.step([*spot, *pending, ill], 3, terms, base=2) == Step(failed=(ill,))
    assert rollout.step([*spot[:2], *pending, ill], 3, terms, base=2).failed == ()
