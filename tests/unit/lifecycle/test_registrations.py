"""Which registration of an instance counts? Sightings of several, in any order."""

from __future__ import annotations

from dataclasses import replace

from argosy.lifecycle import health
from argosy.model.events import ContainerInstanceSeen, Observed
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.state import State
from tests.builders import CELL, NOW, POLICY, container_instance, instance_id, state_with_instance, told

FIRST = container_instance(1, version=57)
ANEW = replace(
    FIRST,
    arn=f"arn:aws:ecs:{CELL}:123456789012:container-instance/argosy/{99:032x}",
    version=3,
    registered_at=NOW + 100,
)


def after(*sightings: ContainerInstanceSeen) -> Instance:
    state = told(state_with_instance(), FIRST, *sightings)
    return state.instances[instance_id(1)]


def test_a_younger_registration_counts_although_its_versions_restart() -> None:
    ended = replace(FIRST, version=58, status="INACTIVE")
    for listed in (True, False):
        instance = after(ended, replace(ANEW, listed=listed))
        assert (instance.arn, instance.version, instance.status) == (ANEW.arn, 3, InstanceStatus.ACTIVE)
        assert instance.draining_since == 0.0


def test_late_facts_about_the_previous_registration_change_nothing() -> None:
    late = replace(FIRST, version=99, agent_connected=False, status="INACTIVE")
    for listed in (True, False):  # an agent's lost registration may stay in the listing for long
        instance = after(ANEW, replace(late, listed=listed))
        assert (instance.arn, instance.version, instance.placeable) == (ANEW.arn, 3, True)


def test_of_two_registrations_of_the_same_moment_the_listed_one_counts() -> None:
    twin = replace(ANEW, registered_at=NOW)
    assert after(twin).arn == FIRST.arn
    assert after(replace(twin, listed=True)).arn == ANEW.arn


def sweep(state: State, at: float, *seen: ContainerInstanceSeen, complete: bool = True) -> Instance:
    hosts = Observed(at, container_instances=seen, container_instances_complete=complete, hosts_complete=False)
    return told(state, hosts, now=at).instances[instance_id(1)]


def test_only_two_complete_listings_five_minutes_apart_speak_against_a_registration() -> None:
    state = state_with_instance()
    assert not sweep(state, NOW + 200).unlisted_since  # it is too young
    assert not sweep(state, NOW + 400, complete=False).unlisted_since
    assert sweep(state, NOW + 500).placeable
    assert sweep(state, NOW + 799).placeable
    assert sweep(state, NOW + 1000, complete=False).placeable
    instance = sweep(state, NOW + 1001)
    assert not instance.placeable
    assert instance.disconnected_at == NOW + 500  # patience counts from when it was missing first


def test_one_that_shows_again_is_as_good_as_before_and_its_absence_forgotten() -> None:
    state = state_with_instance()
    sweep(state, NOW + 500)
    listed = replace(container_instance(1), listed=True)
    assert not sweep(state, NOW + 600, listed).unlisted_since
    sweep(state, NOW + 700)
    assert sweep(state, NOW + 900).placeable
    assert not sweep(state, NOW + 1100).placeable
    instance = sweep(state, NOW + 1200, listed)
    assert (instance.placeable, instance.disconnected_at) == (True, 0.0)


def test_what_is_refused_within_a_pause_does_not_prolong_it() -> None:
    state = state_with_instance()
    for _ in range(50):
        health.note_refusal(state, instance_id(1), "AGENT", NOW, POLICY)
    instance = state.instances[instance_id(1)]
    assert (instance.refusals, instance.paused_until) == (3, NOW + POLICY.refusal_pause_s)


def test_an_instance_that_was_taken_for_another_clusters_is_the_listed_clusters_whatever_is_older() -> None:
    """No instance changes clusters: the first message named a wrong one."""
    elsewhere = replace(FIRST, arn=FIRST.arn.replace("/argosy/", "/other/"), registered_at=NOW - 100)
    assert after(replace(elsewhere, listed=True)).arn == elsewhere.arn
    assert after(replace(elsewhere, listed=False, registered_at=NOW + 100)).arn == FIRST.arn
