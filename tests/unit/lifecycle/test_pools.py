"""The state of pools: shortages that double and fade, interruptions and instance-hours that decay, prices' times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.lifecycle.apply import pass_time
from argosy.messages.fleet_faults import shortage
from argosy.model.actions import ReadHistory, SetTarget
from argosy.model.events import (
    HistoryRead,
    HostStateChanged,
    InterruptionWarned,
    Observed,
    PoolShort,
)
from argosy.model.instances import Purchase
from argosy.model.pools import OrderAnswered, Pool, SpotRecord
from argosy.model.run_terms import RUNNER_ATTRIBUTE, RUNNER_PROTOCOL
from argosy.model.state import State
from tests.builders import NOW, POLICY, begun, container_instance, fleet, host, instance_id, state_with, told

COOL = POLICY.cool_off_s
HOUR = 3600.0


def the_pool(state: State) -> Pool:
    (pool,) = state.pools.values()
    return pool


def short(state: State, now: float, reason: str = "none left") -> Pool:
    told(state, shortage("fleet-c5.xlarge-us-east-1a", reason), now=now)
    return the_pool(state)


def test_each_shortage_doubles_the_cool_off_up_to_the_longest() -> None:
    state, now, pauses = state_with(fleet()), NOW, []
    for _ in range(7):
        pauses.append(short(state, now).short_until - now)
        now = the_pool(state).short_until
    assert pauses[:4] == [COOL, 2 * COOL, 4 * COOL, 8 * COOL]
    assert pauses[-1] == POLICY.cool_off_max_s


def test_a_shortage_reported_again_while_it_cools_off_is_the_same_one() -> None:
    state = state_with(fleet())
    until = short(state, NOW).short_until
    assert short(state, NOW + 60).short_until == until
    assert the_pool(state).shortages == 1


def test_quiet_time_makes_shortages_forgotten() -> None:
    state = state_with(fleet())
    until = short(state, NOW).short_until
    later = until + 20 * POLICY.cool_off_fade_s
    assert short(state, later).short_until - later == pytest.approx(COOL, rel=1e-3)


def test_a_delivery_after_the_cool_off_halves_the_count_and_one_before_does_not() -> None:
    state = state_with(fleet())
    short(state, NOW)
    told(state, host(1), now=NOW + 10)
    assert the_pool(state).shortages == 1
    told(state, host(2), now=NOW + COOL + 1)
    assert the_pool(state).shortages == 0.5


def test_what_a_short_pool_owes_is_not_waited_for() -> None:
    state = state_with(fleet(spot_target=0))
    begun(state, [SetTarget(the_pool(state).key, 5, 2)])
    told(state, host(1))
    pool = short(state, NOW + 1, "spotInstanceCountLimitExceeded")
    assert (pool.spot_target, pool.on_demand_target) == (1, 2)  # a spot quota says nothing about on-demand
    assert pool.short_until > NOW + 1 >= pool.on_demand_short_until
    assert "quota for spot instances" in pool.short_reason


def test_only_on_demand_is_short_when_only_that_was_owed() -> None:
    state = state_with(fleet())
    begun(state, [SetTarget(the_pool(state).key, 0, 2)])
    pool = short(state, NOW + 1)
    assert (pool.on_demand_target, pool.short_until) == (0, 0.0)
    assert pool.on_demand_short_until == NOW + 1 + COOL


def test_a_reason_that_concerns_spot_alone_takes_nothing_from_an_order_of_on_demand_instances() -> None:
    state = state_with(fleet())
    begun(state, [SetTarget(the_pool(state).key, 0, 2)])
    pool = short(state, NOW + 1, "fleetProgressHalted")
    assert (pool.on_demand_target, pool.cools_off(NOW + 1), pool.short_reason) == (2, False, "")


def test_giving_up_an_order_is_a_shortage() -> None:
    state = state_with(fleet())
    key = the_pool(state).key
    begun(state, [SetTarget(key, 3, 0)])
    begun(state, [SetTarget(key, 0, 0, gives_up=True)], now=NOW + 200)
    assert the_pool(state).short_until == NOW + 200 + COOL
    assert the_pool(state).short_reason == "instances that were ordered and did not arrive"
    assert the_pool(state).spot_target == 0


def test_a_late_answer_to_an_order_that_was_given_up_does_not_close_the_next_one() -> None:
    state = state_with(fleet())
    pool = the_pool(state)
    begun(state, [SetTarget(pool.key, 0, 2)])
    short(state, NOW + 1)
    begun(state, [SetTarget(pool.key, 0, 3)], now=NOW + 2)
    told(state, OrderAnswered(pool.key, 1))
    assert (pool.on_demand_order, pool.on_demand_count) == (2, 3)
    told(state, OrderAnswered(pool.key, 2))
    assert pool.on_demand_count == 0


def dead_image(pool: str = "fleet-c5.xlarge-us-east-1a") -> PoolShort:
    return shortage(pool, "launchSpecUnusable", "The image id '[ami-1]' does not exist")


def test_a_fault_that_needs_an_operator_closes_the_pool_for_the_longest_pause_for_both_purchase_options() -> None:
    state = state_with(fleet())
    told(state, dead_image(), now=NOW)
    pool = the_pool(state)
    assert (pool.short_until, pool.on_demand_short_until) == (NOW + POLICY.cool_off_max_s,) * 2
    assert pool.needs_mending
    told(state, shortage(pool.key, "allLaunchSpecsTemporarilyBlacklisted"), now=NOW + 60)
    assert "machine image" in pool.short_reason  # a lack of capacity does not hide it
    later = pool.short_until + 1
    told(state, shortage(pool.key, "allLaunchSpecsTemporarilyBlacklisted"), now=later)
    assert not pool.needs_mending
    assert "no capacity" in pool.short_reason


def test_a_fault_that_needs_an_operator_closes_no_purchase_option_that_it_does_not_concern() -> None:
    state = state_with(fleet())
    told(state, replace(dead_image(), only=Purchase.SPOT), now=NOW)
    pool = the_pool(state)
    assert (pool.short_until, pool.on_demand_short_until) == (NOW + POLICY.cool_off_max_s, 0.0)


def test_a_new_fleet_of_the_pool_is_asked_at_once() -> None:
    state = state_with(fleet())
    told(state, dead_image(), now=NOW)
    sweep = Observed(NOW + 10, fleets=(fleet(fleet_id="fleet-2"),), whole_cells=frozenset({"us-east-1"}))
    told(state, sweep, now=NOW + 10)
    pool = the_pool(state)
    assert (pool.fleet_id, pool.needs_mending, pool.cools_off(NOW + 10)) == ("fleet-2", False, False)


def test_a_reason_that_arrives_during_the_cool_off_replaces_a_vaguer_one() -> None:
    state = state_with(fleet())
    key = the_pool(state).key
    begun(state, [SetTarget(key, 3, 0)])
    begun(state, [SetTarget(key, 0, 0, gives_up=True)], now=NOW + 200)
    begun(state, [ReadHistory(key)], now=NOW + 201)
    assert the_pool(state).history_at == NOW + 201
    until = the_pool(state).short_until
    told(state, HistoryRead(key, None), HistoryRead("us-east-1/x/y", dead_image()), now=NOW + 202)
    assert the_pool(state).short_reason == "instances that were ordered and did not arrive"
    told(state, HistoryRead(key, shortage(key, "fleetProgressHalted")), now=NOW + 202)
    assert "spot price" in the_pool(state).short_reason
    assert the_pool(state).short_until == until
    told(state, HistoryRead(key, dead_image(key)), now=NOW + 203)
    assert the_pool(state).needs_mending


def test_a_reason_that_comes_after_the_cool_off_changes_nothing() -> None:
    state = state_with(fleet())
    told(state, HistoryRead(the_pool(state).key, dead_image()), now=NOW)
    assert not the_pool(state).cools_off(NOW)
    assert not the_pool(state).needs_mending


def a_cell_of_two(*unjoined: int) -> tuple[State, Pool, Pool]:
    """Two pools of a cell, the first with hosts 1 to 9 and the second with the others; these never join in time."""
    hosts = [replace(host(n), zone="us-east-1a" if n < 10 else "us-east-1b") for n in unjoined]
    state = state_with(fleet(), replace(fleet(), fleet_id="fleet-b", zone="us-east-1b"), *hosts)
    pass_time(state, NOW + POLICY.register_patience_s, POLICY)
    one, other = (state.pools[f"us-east-1/c5.xlarge/us-east-1{zone}"] for zone in "ab")
    return state, one, other


@pytest.mark.parametrize(
    ("unjoined", "counts", "paused"),
    [
        ((1, 2), (2, 0), (False, False)),
        ((1, 2, 3), (3, 0), (True, False)),  # a pool that has not failed is not closed
        ((1, 2, 11), (2, 1), (True, True)),  # three in a row of the cell
    ],
)
def test_instances_in_a_row_that_never_join_close_the_pools_that_failed(
    unjoined: tuple[int, ...], counts: tuple[int, int], paused: tuple[bool, bool]
) -> None:
    _, *pools = a_cell_of_two(*unjoined)
    assert tuple(pool.unregistered for pool in pools) == counts
    assert {pool.cell_unregistered for pool in pools} == {len(unjoined)}
    at = NOW + POLICY.register_patience_s
    assert tuple(pool.cools_off(at) for pool in pools) == paused
    said = "3 instances in a row never joined the cluster"
    assert [pool.short_reason for pool in pools] == [said if each else "" for each in paused]
    assert tuple(pool.needs_mending for pool in pools) == paused


def test_an_instance_that_joins_ends_the_pause_of_its_pool_and_the_count_of_its_cell_but_no_other_pause() -> None:
    state, one, other = a_cell_of_two(1, 2, 11)
    told(state, container_instance(1), now=NOW + 1000)
    assert (one.unregistered, one.cell_unregistered, other.unregistered, other.cell_unregistered) == (0, 0, 1, 0)
    assert not one.cools_off(NOW + 1000)
    assert not one.needs_mending
    assert other.cools_off(NOW + 1000)


def test_an_instance_that_joins_ends_no_pause_for_lack_of_capacity() -> None:
    state, one, _ = a_cell_of_two(1)
    told(state, shortage(one.key, "none left"), now=NOW + 950)
    told(state, container_instance(1), now=NOW + 960)
    assert one.unregistered == 0
    assert one.cools_off(NOW + 960)


def living(count: int = 2) -> State:
    state = state_with(fleet(spot_target=count), *(host(n) for n in range(1, count + 1)))
    the_pool(state).rate_at = NOW
    return state


def test_sweeps_count_the_hours_of_living_spot_instances_once() -> None:
    state = living()
    hosts = host(1), host(2)
    told(state, Observed(NOW + HOUR, hosts=hosts), now=NOW + HOUR)
    assert the_pool(state).instance_hours == pytest.approx(2.0)
    told(state, Observed(NOW + HOUR + 1, hosts=hosts), now=NOW + HOUR + 1)  # too soon after
    assert (the_pool(state).instance_hours, the_pool(state).rate_at) == (pytest.approx(2.0), NOW + HOUR)
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + 1.5 * HOUR))
    weight = 2 ** (0.5 * HOUR / POLICY.rate_half_life_s)
    assert the_pool(state).instance_hours == pytest.approx(2.0 + 0.5 * weight)


def test_on_demand_hours_and_ends_do_not_count() -> None:
    state = state_with(fleet(), host(1, purchase="on-demand"))
    told(state, Observed(NOW + HOUR, hosts=(host(1, purchase="on-demand"),)), now=NOW + HOUR)
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + HOUR))
    assert (the_pool(state).instance_hours, the_pool(state).interruptions) == (0.0, 0.0)


def test_an_interruption_is_counted_once_however_often_it_is_reported() -> None:
    state = living(1)
    told(state, InterruptionWarned(instance_id(1), NOW), InterruptionWarned(instance_id(1), NOW + 5))
    told(state, HostStateChanged(instance_id(1), "shutting-down", NOW + 120))
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + 130))
    assert the_pool(state).interruptions == pytest.approx(1.0)
    assert the_pool(state).unsettled_until == NOW + COOL


def test_an_instance_that_goes_without_a_warning_was_interrupted_and_one_that_we_end_was_not() -> None:
    state = living(2)
    state.instances[instance_id(2)].status = type(state.instances[instance_id(2)].status).RELEASING
    told(
        state, HostStateChanged(instance_id(1), "terminated", NOW), HostStateChanged(instance_id(2), "terminated", NOW)
    )
    assert the_pool(state).interruptions == pytest.approx(1.0)


def test_many_interruptions_at_once_unsettle_a_pool_once_and_never_keep_it_from_being_offered() -> None:
    state = living(3)
    told(state, *(InterruptionWarned(instance_id(number), NOW) for number in (1, 2, 3)))
    pool = the_pool(state)
    assert (pool.shortages, pool.unsettled_until, pool.short_until) == (1, NOW + COOL, 0.0)
    assert pool.interruptions == pytest.approx(3.0)


def test_counts_that_are_older_than_twenty_half_lives_start_over() -> None:
    state = living(1)
    pool = the_pool(state)
    pool.interruptions = pool.instance_hours = 100.0
    later = NOW + 21 * POLICY.rate_half_life_s
    told(state, InterruptionWarned(instance_id(1), later))
    assert (pool.interruptions, pool.instance_hours, pool.rate_at) == (1.0, 0.0, later)


def test_prices_carry_the_time_at_which_they_were_asked_for() -> None:
    state = state_with(fleet(spot_usd_per_hour=0.05, priced_at=NOW - 100.0, placement_score=7))
    pool = the_pool(state)
    assert (pool.spot_usd_per_hour, pool.priced_at, pool.placement_score) == (0.05, NOW - 100.0, 7)
    told(state, fleet(spot_usd_per_hour=None), now=NOW + 500)
    assert (pool.spot_usd_per_hour, pool.priced_at, pool.placement_score) == (0.05, NOW - 100.0, 7)
    told(state, fleet(spot_usd_per_hour=0.06), now=NOW + 600)
    assert (pool.spot_usd_per_hour, pool.priced_at) == (0.06, NOW + 600)


def test_a_pool_remembers_what_its_instances_registered() -> None:
    state = state_with(fleet(), host(1), container_instance(1, memory_mib=7321))
    assert the_pool(state).registered_memory_mib == 7321


def test_facts_about_pools_that_are_not_known_change_nothing() -> None:
    state = state_with(host(1), container_instance(1))
    told(state, InterruptionWarned(instance_id(1), NOW), HostStateChanged(instance_id(1), "terminated", NOW))
    told(state, Observed(NOW + HOUR, hosts=()), PoolShort("fleet-nobodys", "none"), now=NOW + HOUR)
    assert not state.pools
    assert not state.changed_pools


def test_the_accounts_record_stays_until_a_newer_one() -> None:
    state = state_with(fleet(record=SpotRecord(2.0, 50.0)))
    told(state, fleet(), now=NOW + 500)
    assert (the_pool(state).account_interruptions, the_pool(state).account_hours) == (2.0, 50.0)


def test_an_instance_that_joins_with_the_runner_speaks_for_all_types_with_its_image_and_for_no_others() -> None:
    types = ("c5.xlarge", "m5.xlarge", "g4dn.xlarge", "c6g.xlarge")
    state = state_with(*map(fleet, types), host())
    for pool in state.pools.values():
        pool.without_runner_at = NOW - 600
    told(
        state, container_instance(attributes={"ecs.instance-type": "c5.xlarge", RUNNER_ATTRIBUTE: str(RUNNER_PROTOCOL)})
    )
    assert {pool.instance_type for pool in state.pools.values() if pool.without_runner_at} == {*types[2:]}
