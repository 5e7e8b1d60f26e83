"""The spot market under the real engine: shortages, interruptions, stale prices, caps, and nothing left to buy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from argosy.api.waiting.explanation import next_pool
from argosy.market.offers import offers_of, rejected
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.runs import RunStatus
from argosy.model.state import State
from tests.builders import whole
from tests.fakes.aws import refusal
from tests.scenarios.controlled import Controlled

A, B = "c5.xlarge/us-east-1a", "c5.xlarge/us-east-1b"
SECOND = "second-261121-062733-k3f9"


def dearer_by(share: float) -> Any:
    """Prices where zone b costs so much more than zone a."""
    return lambda instance_type, zone, *when: 0.05 * (1 + share if zone == "us-east-1b" else 1)


def two_zones(share: float, **options: Any) -> Controlled:
    return Controlled(zones=("us-east-1a", "us-east-1b"), prices=dearer_by(share), **options)


def state_of(cluster: Controlled) -> State:
    state = cluster.controllers[0].state
    assert state is not None
    return state


def said_short(cluster: Controlled) -> bool:
    return any(message["detail-type"] == "EC2 Fleet Error" for message in cluster.world.events)


def test_a_shortage_in_the_cheapest_pool_moves_the_demand_within_two_ticks_and_back_after_the_cool_off() -> None:
    cluster = two_zones(0.8)
    cluster.world.ec2.set_shortage(A, 0)
    cluster.submit(8)
    while not said_short(cluster):
        cluster.step()
    for _ in range(2):
        cluster.tick()
    assert cluster.fleet_targets() == {A: 0, B: 2}
    cluster.world.ec2.set_shortage(A, None)
    cluster.run_for(cluster.policy.cool_off_s + 10)
    cluster.submit(16, run_id=SECOND)
    cluster.run_for(20)
    assert cluster.fleet_targets()[A] > 0
    cluster.run_to_rest()
    assert cluster.record(SECOND).status == RunStatus.SUCCEEDED


def test_a_pool_that_stays_short_is_asked_ever_less_often_and_a_delivery_makes_it_good() -> None:
    cluster = two_zones(0.8, work_s=6000.0, order_patience_s=60.0)
    for pool in (A, B):
        cluster.world.ec2.set_shortage(pool, 0)
    cluster.submit(4)
    tries: list[float] = []
    end = cluster.world.now + 2400.0
    while cluster.world.now < end:
        cluster.step()
        if cluster.fleet_targets()[A] and (not tries or cluster.world.now - tries[-1] > 60):
            tries.append(cluster.world.now)
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert len(pauses) >= 3
    assert pauses == sorted(pauses)
    assert pauses[-1] > 1.7 * pauses[-2]
    cluster.world.ec2.set_shortage(A, None)
    cluster.world.ec2.set_shortage(B, None)
    before = state_of(cluster).pools[f"us-east-1/{A}"].shortages
    cluster.run_for(3700)
    assert len(cluster.live_instances()) == 1
    pools = state_of(cluster).pools
    delivered = cluster.live_instances()[0]["Placement"]["AvailabilityZone"]
    assert pools[f"us-east-1/c5.xlarge/{delivered}"].shortages < before


def test_while_all_pools_cool_off_the_run_says_so_and_continues_when_capacity_is_back() -> None:
    cluster = two_zones(0.8)
    for pool in (A, B):
        cluster.world.ec2.set_shortage(pool, 0)
    cluster.submit(4)
    cluster.run_for(60)
    assert "short of capacity" in cluster.record().waiting
    assert "c5.xlarge in us-east-1" in cluster.record().waiting
    for pool in (A, B):
        cluster.world.ec2.set_shortage(pool, None)
    assert cluster.run_to_rest() < 3600
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_on_demand_that_is_short_moves_on_and_leaves_spot_alone() -> None:
    cluster = two_zones(0.8)
    cluster.world.ec2.set_shortage(f"{A}/on-demand", 0)
    cluster.submit(4, capacity={"purchase": "on-demand"})
    cluster.run_for(60)
    pool = state_of(cluster).pools[f"us-east-1/{A}"]
    assert {each["Placement"]["AvailabilityZone"] for each in cluster.live_instances()} == {B.partition("/")[2]}
    assert pool.on_demand_short_until > cluster.world.now > pool.short_until
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def interrupt_all(cluster: Controlled) -> None:
    for instance in cluster.live_instances():
        cluster.world.interrupt(instance["InstanceId"])


def next_zone(cluster: Controlled) -> str:
    moment = Moment(state_of(cluster), cluster.controllers[0].catalogue, cluster.world.now, cluster.policy)
    found = next_pool(moment, cluster.run)
    assert found is not None
    return str(found["availabilityZone"])


def test_an_interruption_sends_the_replacement_to_a_calm_pool_that_costs_about_the_same() -> None:
    cluster = two_zones(0.12, work_s=2000.0)  # too expensive to share a purchase, not too expensive to flee to
    cluster.submit(4)
    cluster.run_for(400)
    assert cluster.fleet_targets() == {A: 1, B: 0}
    assert next_zone(cluster) == "us-east-1a"
    interrupt_all(cluster)
    cluster.tick()
    assert cluster.fleet_targets() == {A: 0, B: 1}
    assert next_zone(cluster) == "us-east-1b"  # as `argosy status` says
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().interruptions) == (RunStatus.SUCCEEDED, 4)


def test_an_interruption_is_replaced_in_the_same_pool_when_all_others_are_clearly_dearer() -> None:
    cluster = two_zones(0.8, work_s=2000.0)
    cluster.submit(4)
    cluster.run_for(400)
    interrupt_all(cluster)
    cluster.tick()
    cluster.run_for(200)
    assert cluster.fleet_targets() == {A: 1, B: 0}
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def cheapest_zone(cluster: Controlled, later_s: float) -> tuple[str, str]:
    """By price, and by effective price."""
    engine = cluster.controllers[0]
    pools = state_of(cluster).pools.values()
    offers = offers_of(pools, engine.catalogue, cluster.world.now + later_s, cluster.policy)
    spot = [offer for offer in offers if offer.purchase is Purchase.SPOT]
    return spot[0].zone, min(spot, key=lambda offer: offer.effective).zone


def test_after_interruptions_a_slightly_dearer_calm_pool_wins_for_long_attempts_until_they_are_forgotten() -> None:
    cluster = two_zones(0.2, work_s=6000.0, attempt_s=6000.0)
    cluster.submit(4)
    cluster.run_for(400)
    assert cluster.fleet_targets() == {A: 1, B: 0}
    interrupt_all(cluster)
    cluster.run_for(cluster.policy.cool_off_s + 20)
    assert state_of(cluster).pools[f"us-east-1/{A}"].unsettled_until < cluster.world.now
    assert cheapest_zone(cluster, 0) == ("us-east-1a", "us-east-1b")
    cluster.submit(4, run_id=SECOND)
    cluster.run_for(20)
    assert cluster.fleet_targets() == {A: 0, B: 2}
    assert cheapest_zone(cluster, 20 * 3_600) == ("us-east-1a", "us-east-1a")
    cluster.run_to_rest()
    assert cluster.record(SECOND).status == RunStatus.SUCCEEDED


def test_prices_that_ec2_stops_telling_are_believed_for_a_while_and_then_replaced_by_on_demands() -> None:
    cluster = two_zones(0.8, work_s=2000.0, price_limit_s=1000.0)
    honest = cluster.ec2

    class Silent:
        def __getattr__(self, name: str) -> object:
            return getattr(honest, name)

        def describe_spot_price_history(self, **request: object) -> object:
            raise refusal("UnauthorizedOperation", "You are not authorized to perform: ec2:DescribeSpotPriceHistory")

    cluster.submit(4)
    cluster.run_for(400)
    cluster.ec2 = Silent()
    cluster.controllers = [cluster.controller()]
    cluster.run_for(400)
    catalogue, pools = cluster.controllers[0].catalogue, state_of(cluster).pools.values()
    assert offers_of(pools, catalogue, cluster.world.now, cluster.policy)[0].price_usd_per_hour == pytest.approx(
        whole(0.05)
    )
    cluster.run_for(600)
    offers = offers_of(state_of(cluster).pools.values(), catalogue, cluster.world.now, cluster.policy)
    assert {offer.price_usd_per_hour for offer in offers} == {whole(catalogue["c5.xlarge"].on_demand_usd_per_hour)}
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_nothing_is_bought_above_a_price_cap_and_the_run_says_so() -> None:
    cluster = two_zones(0.8, max_usd_per_vcpu_hour=0.01)
    cluster.submit(4)
    cluster.run_for(60)
    assert set(cluster.fleet_targets().values()) == {0}
    assert "price caps" in cluster.record().waiting
    assert "priceCaps.perVcpuHour" in cluster.record().waiting


@pytest.mark.parametrize("cap", [0.02, 0.014])
def test_a_price_cap_between_two_pools_buys_the_cheaper_one_only(cap: float) -> None:
    cluster = two_zones(0.8, max_usd_per_vcpu_hour=cap)
    cluster.submit(400)
    cluster.run_for(60)
    targets = cluster.fleet_targets()
    assert targets[A] >= 50
    assert targets[B] == 0
    refused = rejected(
        state_of(cluster).pools.values(), cluster.controllers[0].catalogue, cluster.world.now, cluster.policy
    )
    assert [pool for pool, _ in refused] == ([f"us-east-1/{B}"] if cap < 0.0225 else [])
