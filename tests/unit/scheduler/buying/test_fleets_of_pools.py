"""Which fleet belongs to a pool, which instances does its target count, and how far may it rise?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from argosy.market.order import Order
from argosy.model.actions import SetTarget, Terminate
from argosy.model.events import FleetSeen, HostStateChanged, InterruptionWarned, NotCarriedOut, Observed, TargetAccepted
from argosy.model.instances import Purchase
from argosy.model.pools import Pool
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.scheduler.buying import capacity
from argosy.scheduler.decide import decide
from argosy.scheduler.placing.places import NO_PLACES
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
A, B, C = "fleet-a", "fleet-b", "fleet-c"
LATER = NOW + POLICY.linger_s + 1


def of(name: str, spot: int = 0) -> FleetSeen:
    return fleet(fleet_id=name, spot_target=spot)


def swept(state: State, *fleets: FleetSeen, hosts: Any = (), cells: frozenset[str] = frozenset({CELL})) -> Pool:
    told(state, *fleets, Observed(NOW, fleets=fleets, hosts=tuple(hosts), whole_cells=cells))
    return state.pools[POOL]


def idle() -> State:
    """Four idle instances of the fleet A, whose target they are."""
    numbers = range(1, 5)
    state = state_with(of(A, 4), *(host(n, fleet_id=A) for n in numbers), *(container_instance(n) for n in numbers))
    state.pools[POOL].spot_target = 4
    return state


def actions(state: State, now: float = LATER, launching: bool = True, **policy: Any) -> list[Any]:
    chosen = decide(moment_of(state, now, replace(POLICY, **policy)), launching)
    return [action for action in chosen if isinstance(action, SetTarget | Terminate)]


def test_the_known_fleet_stays_the_pools_in_whatever_order_they_are_listed() -> None:
    state = state_with(of(B, 2))
    for fleets in ((of(A), of(B, 2)), (of(B, 2), of(A)), (of(C, 1), of(A), of(B, 2))):
        pool = swept(state, *fleets)
        assert (pool.fleet_id, pool.confirmed_spot) == (B, 2)
    assert pool.surplus == [C]
    assert swept(state, of(C), of(B, 2)).surplus == []


def test_when_the_known_fleet_is_gone_the_one_with_the_least_name_takes_over_with_its_own_target() -> None:
    state = state_with(of(A, 4))
    pool = swept(state, of(C, 3), of(B, 1))
    assert (pool.fleet_id, pool.spot_target, pool.confirmed, pool.surplus) == (B, 1, True, [C])


def test_a_listing_that_broke_off_retires_no_pool() -> None:
    state = state_with(of(A, 4))
    assert swept(state, cells=frozenset()).fleet_id == A
    pool = swept(state)
    assert (pool.fleet_id, pool.target, pool.confirmed) == ("", 0, True)
    assert (swept(state, of(A, 4)).fleet_id, pool.spot_target) == (A, 4)


def test_instances_of_another_fleet_do_not_count_for_the_target_and_those_of_an_unknown_one_do() -> None:
    state = state_with(of(A, 2), host(1, fleet_id=A), host(2, fleet_id=B), host(3))
    assert state.held() == Counter({(POOL, Purchase.SPOT): 2})
    swept(state, of(A, 2), hosts=[host(number, fleet_id=B) for number in (1, 2, 3)])
    told(state, *(host(number, fleet_id=B) for number in (1, 2, 3)))
    assert not state.held()
    assert state.owed() == Counter({(POOL, Purchase.SPOT): 2})


def test_a_pool_without_a_fleet_is_not_steered_and_its_instances_go() -> None:
    state = idle()
    swept(state)
    assert actions(state) == [Terminate(CELL, tuple(instance_id(number) for number in range(1, 5)))]


def test_a_surplus_fleet_is_lowered_until_that_is_confirmed() -> None:
    state = idle()
    swept(state, of(A, 4), of(B, 2))
    (surplus,) = [each for each in actions(state, NOW) if isinstance(each, SetTarget)]
    assert surplus == SetTarget(POOL, 0, 0, fleet_id=B)
    begun(state, [surplus])
    assert state.pools[POOL].spot_target == 4
    told(state, TargetAccepted(POOL, 0, B))
    assert (state.pools[POOL].surplus, state.pools[POOL].confirmed_spot) == ([], 4)
    assert not actions(state, NOW)


@pytest.mark.parametrize("fleet_id", ["", A])
def test_a_target_rises_by_no_more_than_what_is_ordered_whatever_is_held(fleet_id: str) -> None:
    state = state_with(of(A), *(host(number, fleet_id=fleet_id) for number in range(1, 5)))
    assert not actions(state, NOW)
    order = Order(Counter({(POOL, Purchase.SPOT): 1}))
    assert capacity.targets(moment_of(state), NO_PLACES, order, []) == [SetTarget(POOL, 1, 0)]


def test_no_order_takes_the_targets_beyond_what_is_allowed_of_all() -> None:
    state = idle()
    order = Order(Counter({(POOL, Purchase.SPOT): 5, (POOL, Purchase.ON_DEMAND): 3}))
    few = replace(POLICY, max_instances=6)
    assert capacity.targets(moment_of(state, NOW, few), NO_PLACES, order, []) == [SetTarget(POOL, 6, 0)]
    assert capacity.targets(moment_of(state), NO_PLACES, order, []) == [SetTarget(POOL, 9, 3)]


def test_with_the_kill_switch_on_what_idles_goes_and_no_least_size_is_kept() -> None:
    state = idle()
    told(state, submitted(tasks=40), prepared())
    assert actions(state, launching=False, min_instances=2, min_idle=1) == [
        SetTarget(POOL, 0, 0),
        Terminate(CELL, tuple(instance_id(number) for number in range(1, 5))),
    ]


def test_where_what_was_lost_has_been_seen_again_targets_fall_before_all_cells_have_been() -> None:
    state = idle()
    state.losses.blind = True
    assert not actions(state)
    state.losses.seen.add(CELL)
    assert len(actions(state)) == 2
    told(state, submitted(tasks=40), prepared())
    assert not [each for each in actions(state, NOW) if isinstance(each, SetTarget)]  # nothing is bought


def test_an_instance_that_ec2_does_not_terminate_is_retried_after_a_pause_and_replaced() -> None:
    state = idle()
    begun(state, [Terminate(CELL, (instance_id(1),))], now=NOW)
    about = Subject(Act.TERMINATE, instance_id(1))
    told(state, NotCarriedOut("OperationNotPermitted", about=about))
    assert state.setbacks[about].count == 1
    assert state.warned() == Counter({(POOL, Purchase.SPOT): 1})
    order = Order(Counter({(POOL, Purchase.SPOT): 1}))
    assert capacity.targets(moment_of(state), NO_PLACES, order, []) == [SetTarget(POOL, 5, 0)]
    state.setbacks[about].not_before = LATER + 1
    named = [name for each in actions(state) if isinstance(each, Terminate) for name in each.instance_ids]
    assert instance_id(1) not in named
    told(state, HostStateChanged(instance_id(1), "shutting-down", NOW))
    assert not state.setbacks


def test_the_fleet_of_a_warned_instance_replaces_it_only_while_it_is_not_let_go() -> None:
    state = idle()
    told(state, InterruptionWarned(instance_id(1), NOW))
    order = Order(Counter({(POOL, Purchase.SPOT): 1}))
    assert capacity.targets(moment_of(state), NO_PLACES, order, []) == [SetTarget(POOL, 5, 0)]
    assert capacity.targets(moment_of(state), NO_PLACES, order, [state.instances[instance_id(1)]]) == []


def test_what_is_known_of_fleets_is_stored() -> None:
    state = state_with(of(A, 1), host(1, fleet_id=A))
    swept(state, of(A, 1), of(B, 1), hosts=[host(1, fleet_id=A)])
    items = {key: body for (_, key), body in documents.changed(state).items()}
    again = documents.restore(1, items, {})
    assert again.pools == state.pools
    assert again.instances[instance_id(1)].fleet_id == A
