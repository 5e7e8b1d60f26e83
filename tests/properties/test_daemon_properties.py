"""A daemon reaches one healthy task on each instance, whatever happens, and no act of ours breaks its rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.scheduler.services.daemons import DaemonHost, DaemonStep, DaemonTask, PendingSlot, daemon_step
from argosy.scheduler.services.rollout import SlotStatus
from tests.fakes.daemon_world import PERCENTAGES, DaemonWorld, broken_laws
from tests.fakes.settling import ticks_to_settle

WORLDS = 400
PARTS, MANY_WORLDS = 4, 5_000  # of the deep run: 20,000 together
FAULTY_TICKS, MOST_TICKS = 60, 150  # the second: until all is settled, 12 instances one after the other
ORDINARY = settings(max_examples=80, derandomize=True, deadline=None)

hosts = st.lists(
    st.builds(DaemonHost, st.sampled_from("abcdef"), st.booleans(), st.booleans(), st.booleans()),
    unique_by=lambda host: host.id,
    max_size=6,
)
tasks = st.lists(
    st.builds(
        DaemonTask,
        st.sampled_from(("run1", "run2")),
        st.integers(0, 9),
        st.sampled_from("abcdefgh"),
        st.sampled_from([SlotStatus.STARTING, SlotStatus.YOUNG, SlotStatus.HEALTHY]),
        st.just(False),
        st.booleans(),
        st.booleans(),
    ).map(lambda task: task._replace(is_target=task.run_id == "run2")),
    unique_by=lambda task: (task.run_id, task.index),
    max_size=12,
)
slots = st.lists(
    st.builds(PendingSlot, st.integers(10, 20), st.sampled_from(["", *"abcdefgh"]), st.booleans()),
    unique_by=lambda slot: slot.index,
    max_size=8,
)


def play(seeds: range) -> int:
    """The most ticks that any of these worlds took to settle."""
    longest = 0
    for seed in seeds:
        world = DaemonWorld(seed)
        took = ticks_to_settle(world, seed, faulty=FAULTY_TICKS, most=MOST_TICKS)
        step = daemon_step(world.hosts(), world.tasks(), [], world.least, starts_first=world.starts_first)
        assert step == DaemonStep(healthy=len(world.hosts())), seed
        longest = max(longest, took)
    return longest


def test_every_daemon_comes_to_one_task_on_each_instance_and_no_law_is_broken() -> None:
    assert 5 < play(range(WORLDS)) <= MOST_TICKS


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
def test_so_it_is_in_twenty_thousand_worlds(part: int) -> None:
    play(range(part * MANY_WORLDS, (part + 1) * MANY_WORLDS))


@given(hosts, tasks, slots, st.sampled_from(PERCENTAGES), st.booleans(), st.booleans())
@ORDINARY
def test_the_laws_hold_for_any_tasks_at_all(
    hosts: list[DaemonHost],
    tasks: list[DaemonTask],
    slots: list[PendingSlot],
    least: int,
    starts_first: bool,
    is_frozen: bool,
) -> None:
    step = daemon_step(hosts, tasks, slots, least, starts_first=starts_first, is_frozen=is_frozen)
    assert broken_laws(hosts, tasks, slots, step, least, starts_first=starts_first, is_frozen=is_frozen) == []


@given(hosts, tasks, slots, st.sampled_from(PERCENTAGES), st.booleans())
@ORDINARY
def test_the_order_of_events_does_not_matter(
    hosts: list[DaemonHost], tasks: list[DaemonTask], slots: list[PendingSlot], least: int, starts_first: bool
) -> None:
    first = daemon_step(hosts, tasks, slots, least, starts_first=starts_first)
    again = daemon_step(hosts, tasks[::-1], slots, least, starts_first=starts_first)
    assert (first.launches, {*first.stops}) == (again.launches, {*again.stops})
    assert first.starved == again.starved


def test_a_slot_waits_for_the_instance_where_it_crashed_and_holds_up_no_other() -> None:
    pausing = PendingSlot(0, "a", is_due=False)
    step = daemon_step([DaemonHost("a"), DaemonHost("b")], [], [pausing], 80, starts_first=False)
    assert (step.starts, step.parks, step.launches) == (1, (), ())
    step = daemon_step([DaemonHost("b")], [], [pausing], 80, starts_first=False)
    assert (step.starts, step.parks) == (1, (0,))


def test_where_the_new_task_would_not_fit_the_old_one_stays() -> None:
    old = DaemonTask("run1", 0, "a", SlotStatus.HEALTHY, is_target=False)
    step = daemon_step([DaemonHost("a", takes=False, takes_after=False)], [old], [], 0, starts_first=False)
    assert (step.stops, step.starved) == ((), ("a",))
