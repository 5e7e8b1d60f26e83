"""Who is to blame is found by leaving out, and nobody else is left out."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.engine.culprits import Rehearsal, TimeIsUp, culprits, fewest
from argosy.engine.leaving_out import Suspect, leave_out
from argosy.engine.set_apart import SetApart
from argosy.engine.steps import take
from argosy.lifecycle.apply import pass_time
from argosy.lifecycle.forgetting import forget
from argosy.model.actions import Terminate
from argosy.model.events import HostSeen, InterruptionWarned, Observed, PoolShort, RebalanceAdvised
from argosy.model.run_record import RunRecord
from argosy.model.suspensions import LONGEST_PAUSE_S, SURVIVED_S, Suspension
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    container_instance,
    fleet,
    host,
    instance_id,
    moment_of,
    state_with,
    state_with_instance,
    submitted,
)

SUSPECTS = [Suspect("run", str(number)) for number in range(40)]


@given(st.sets(st.sampled_from(SUSPECTS), max_size=6))
def test_exactly_those_are_found_who_fail_and_with_few_tries(guilty: set[Suspect]) -> None:
    tries = []

    def fails(without: Set[Suspect]) -> bool:
        tries.append(without)
        return bool(guilty - without)

    assert set(culprits(SUSPECTS, fails) or []) == guilty
    assert len(tries) <= 2 + len(guilty) * 8


def test_what_fails_without_everybody_is_nobodys_fault() -> None:
    assert culprits(SUSPECTS, lambda without: True) is None
    assert culprits([], lambda without: True) is None


def test_of_two_who_fail_together_one_is_left_out() -> None:
    pair = set(SUSPECTS[3:5])
    (found,) = culprits(SUSPECTS, pair.isdisjoint) or []
    assert found in pair


@given(st.sets(st.sampled_from(SUSPECTS), min_size=1, max_size=3))
def test_when_the_time_is_up_only_culprits_are_left_out_and_the_next_search_goes_on(guilty: set[Suspect]) -> None:
    found: set[Suspect] = set()
    probes: Sequence[Suspect] = ()
    for _ in range(60):
        tries: list[Set[Suspect]] = []
        before = frozenset(found)

        def fails(without: Set[Suspect], tries: list[Set[Suspect]] = tries, before: Set[Suspect] = before) -> bool:
            tries.append(without)
            return bool(guilty - before - without)

        def is_late(tries: list[Set[Suspect]] = tries) -> bool:
            return len(tries) >= 6  # of which two are spent on the probes

        try:
            found |= set(culprits(SUSPECTS, fails, is_late, probes) or [])
            break
        except TimeIsUp as over:
            found, probes = found | set(over.found), over.probes
            assert found <= guilty
    assert found == guilty


class Suspected:
    """As much of a rehearsal as the search for the fewest asks for."""

    hosts = tuple(Suspect("instance", str(number)) for number in range(300))

    def suspects(self) -> list[Suspect]:
        return [*SUSPECTS, *self.hosts]

    def capacity_first(self) -> list[Suspect]:
        return [*self.hosts, *SUSPECTS]


@pytest.mark.parametrize("guilty", [SUSPECTS[:1], SUSPECTS[30:32], SUSPECTS[5:12]])
@pytest.mark.parametrize("tries_in_time", [6, 12, 20, 40])
def test_a_search_for_fewer_culprits_that_runs_out_of_time_does_not_begin_anew_for_ever(
    guilty: Sequence[Suspect], tries_in_time: int
) -> None:
    apart: set[Suspect] = set()
    probes: Sequence[Suspect] = ()
    for _ in range(80):
        tries: list[Set[Suspect]] = []
        before = frozenset(apart)

        def fails(without: Set[Suspect], tries: list[Set[Suspect]] = tries, before: Set[Suspect] = before) -> bool:
            tries.append(without)
            return not set(guilty) <= without | before

        def is_late(tries: list[Set[Suspect]] = tries) -> bool:
            return len(tries) >= tries_in_time

        try:
            found, probes = fewest(cast(Rehearsal, Suspected()), fails, is_late, probes, lambda: True) or [], ()
        except TimeIsUp as over:
            found, probes = list(over.found), over.probes
        apart |= set(found)
    assert apart == set(guilty)


def test_what_is_left_out_is_not_taken_in_when_it_comes_again() -> None:
    apart, short, ran = SetApart(), PoolShort("us-east-1/c5.xlarge/us-east-1a", "no capacity"), host(1)
    assert apart.taken(short, NOW) is short
    apart.add(Suspect("fact", "0"), [(short, NOW)], "x", NOW)
    assert apart.taken(short, NOW) is None
    assert apart.taken(ran, NOW) is ran
    apart.add(Suspect("fact", "0"), [(ran, NOW)], "x", NOW)
    sweep = Observed(NOW, hosts=(ran, host(2)), fleets=(fleet(),))
    left_out = frozenset({instance_id(1)})
    assert apart.taken(sweep, NOW) == Observed(NOW, hosts=(host(2),), fleets=(fleet(),), left_out=left_out)
    assert apart.taken(sweep, NOW + 61) == sweep, "an instance is forgotten for a while only: it costs money"


def test_a_pool_is_forgotten_for_a_while_that_grows_and_shrinks_again_when_long_nothing_was_wrong() -> None:
    apart, seen = SetApart(), fleet()
    for at, pause_s in ((NOW, 60), (NOW + 60, 240), (NOW + 300 + LONGEST_PAUSE_S + 1, 60)):
        apart.add(Suspect("fact", "0"), [(seen, at)], "x", at)
        assert apart.capacity_until() == at + pause_s
        assert apart.taken(seen, at + pause_s - 1) is None
        assert apart.taken(seen, at + pause_s) is seen
    state = state_with(fleet())
    apart.leave_out(state, apart.capacity_until() - 1, lambda run_id: None)  # type: ignore[arg-type, return-value]
    assert not state.pools
    assert state.changed_pools


def test_an_instance_at_whose_registration_the_code_fails_is_forgotten_and_a_registration_of_none_left_out() -> None:
    apart, seen = SetApart(), container_instance(1)
    apart.add(Suspect("fact", "0"), [(seen, NOW)], "x", NOW)
    assert apart.taken(host(1), NOW) is None
    assert apart.taken(seen, NOW + 60) is seen
    of_none, short = replace(seen, instance_id=""), PoolShort("us-east-1/c5.xlarge/us-east-1a", "no capacity")
    apart.add(Suspect("fact", "0"), [(of_none, NOW)], "x", NOW)
    assert apart.taken(of_none, NOW + 60) is None
    assert apart.taken(short, NOW) is short, "what is about no instance is not about that one"


def test_a_run_that_was_tried_again_in_vain_and_one_whose_record_cannot_be_read_are_suspended() -> None:
    state = state_with_instance()
    apart = SetApart()

    def unreadable(run_id: str) -> None:
        raise KeyError(run_id)

    apart.add(Suspect("run", RUN_ID), [], "it fails", NOW)
    apart.leave_out(state, NOW, unreadable)  # type: ignore[arg-type]
    found = state.suspended[RUN_ID]
    assert (found.record.number, found.times, list(state.runs)) == (1, 1, [])
    apart.add(Suspect("run", RUN_ID), [], "again", NOW)
    apart.leave_out(state, NOW + 60, unreadable)  # type: ignore[arg-type]
    assert (state.suspended[RUN_ID].times, state.suspended[RUN_ID].since) == (2, NOW)
    apart.leave_out(state_with(submitted("other-261121-062733-aaaa")), NOW, unreadable)  # type: ignore[arg-type]


def test_an_instance_is_forgotten_with_its_place_and_its_row() -> None:
    state, apart = state_with_instance(), SetApart()
    apart.add(Suspect("instance", instance_id(1)), [], "x", NOW)
    apart.leave_out(state, NOW, lambda run_id: None)  # type: ignore[arg-type, return-value]
    assert not state.instances
    assert instance_id(1) in state.changed_instances
    assert isinstance(apart.taken(host(2), NOW), HostSeen)


def test_what_ec2_announces_of_a_forgotten_instance_is_taken_in() -> None:
    """No sweep shows it when the instance is learned again."""
    state, apart = state_with_instance(), SetApart()
    apart.add(Suspect("instance", instance_id(1)), [], "x", NOW)
    apart.leave_out(state, NOW, lambda run_id: None)  # type: ignore[arg-type, return-value]
    for announced in (InterruptionWarned(instance_id(1), NOW), RebalanceAdvised(instance_id(1), NOW)):
        assert take(state, (announced, NOW), POLICY, partial(apart.taken, now=NOW))
    assert not take(state, (host(1), NOW), POLICY, partial(apart.taken, now=NOW))
    assert take(state, (host(1), NOW + 61), POLICY, partial(apart.taken, now=NOW + 61))
    assert state.instances[instance_id(1)].interrupted_at == state.instances[instance_id(1)].rebalance_at == NOW


def test_a_run_that_is_left_out_of_a_rehearsal_is_not_given_up_there() -> None:
    state = state_with_instance()
    leave_out(state, Suspect("run", RUN_ID), NOW)
    pass_time(state, NOW, POLICY)
    assert list(state.suspended) == [RUN_ID]


def test_a_run_whose_tasks_were_stopped_and_that_fails_again_is_acquitted_once() -> None:
    apart = SetApart()
    apart.earlier[RUN_ID] = Suspension(RunRecord.of_unreadable(RUN_ID), "it fails", NOW, NOW, times=2)
    assert not apart.acquits("it fails")
    apart.earlier[RUN_ID].times = 3
    assert not apart.acquits("something else fails")
    assert apart.acquits("it fails")
    assert not apart.acquits("it fails")


def failed_again_after(seconds: float) -> tuple[int, float]:
    """A run that was suspended three times is tried again, and works so long: how often in a row, and since when."""
    state, apart = state_with_instance(), SetApart()
    run = state.runs[RUN_ID]
    apart.earlier[RUN_ID] = Suspension(RunRecord.of(run), "it failed", NOW - 80_000, NOW, 3)
    apart.tried_at[RUN_ID] = NOW
    apart.add(Suspect("run", RUN_ID), [], "it fails", NOW + seconds)
    apart.leave_out(state, NOW + seconds, lambda run_id: RunRecord.of(run))
    found = state.suspended[RUN_ID]
    return found.times, found.since


def test_a_run_that_has_worked_for_ten_minutes_fails_for_the_first_time() -> None:
    assert failed_again_after(SURVIVED_S - 1) == (4, NOW - 80_000)
    assert failed_again_after(SURVIVED_S) == (1, NOW + SURVIVED_S)


def test_an_instance_at_which_the_code_fails_for_the_third_time_in_a_row_is_ended_when_it_is_shown() -> None:
    state, apart = state_with_instance(), SetApart()
    forget(state, instance_id(1), NOW)
    found: list[Terminate] = []
    for now in (NOW, NOW + 60, NOW + 300):
        assert not found
        for suspect in (Suspect("instance", instance_id(1)), Suspect("fact", "0")):  # together one failure
            apart.add(suspect, [(host(1), now)], "x", now)
        for seen in (host(1, state="terminated"), host(2)):
            apart.taken(seen, now)
        assert not apart.hopeless(moment_of(state, now))
        apart.taken(host(1), now)
        found = apart.hopeless(moment_of(state, now))
    assert found == [Terminate(CELL, (instance_id(1),))]
    assert "it is ended" in apart.reported()[0].reason
    assert not apart.hopeless(moment_of(state, NOW + 300)), "once for each sweep"
