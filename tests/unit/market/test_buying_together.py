"""What is bought for several runs at once, and does it stay bought?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.market.cover import hypothetical
from argosy.market.limits import BatchLimits, OrderLimits
from argosy.market.offers import offers_of
from argosy.market.order import Backlog, Order, buy
from argosy.model.actions import SetTarget
from argosy.model.events import TargetAccepted
from argosy.model.instance_types import SHARES_GPUS
from argosy.model.instances import Purchase
from argosy.model.pools import Offer, Pool
from argosy.model.resources import Resources
from argosy.placement.demand import Batch
from argosy.placement.place import place
from argosy.placement.supply import Supply
from argosy.scheduler.decide import decide
from tests.builders import NOW, begun, fleet, moment_of, prepared, state_with, submitted, told

CATALOGUE = load_catalogue()
TYPES = ("c5.xlarge", "c5.4xlarge", "m5.2xlarge", "m5.8xlarge", "r5.2xlarge", "r5.4xlarge", "g4dn.xlarge")
# Much cpu and little memory, and the reverse: together they fill an m5, alone each wastes half of its cost.
MIXED = (Batch(3072, 2048, 0, 40, group="a"), Batch(512, 13_000, 0, 40, group="b"))


def market(zones: str = "a", types: tuple[str, ...] = TYPES) -> list[Offer]:
    pools = [Pool("us-east-1", kind, f"us-east-1{zone}", "fleet") for kind in types for zone in zones]
    return offers_of(pools, CATALOGUE, NOW)


def backlogs(batches: Sequence[Batch], *instances: int) -> list[Backlog]:
    return [Backlog(batch, BatchLimits(most)) for batch, most in zip(batches, instances, strict=True)]


def uncovered(order: Order) -> list[int]:
    return [shortfall.tasks for shortfall in order.shortfalls]


def usd_of(order: Order, offers: list[Offer]) -> float:
    price = {(offer.pool, offer.purchase): offer.price_usd_per_hour for offer in offers}
    return sum(price[what] * count for what, count in order.instances.items())


def test_several_runs_are_bought_for_together_when_that_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = market()
    together = buy(backlogs(MIXED, 200, 200), offers, OrderLimits(200))
    monkeypatch.setitem(sys.modules, "highspy", None)  # as where the solver is not installed
    alone = buy(backlogs(MIXED, 200, 200), offers, OrderLimits(200))
    assert uncovered(together) == uncovered(alone) == [0, 0]
    assert usd_of(together, offers) < usd_of(alone, offers) * 0.97


@pytest.mark.parametrize("seed", range(8))
def test_it_never_costs_more_or_covers_less_than_buying_run_by_run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    draw = rng.integers
    batches = [
        Batch(int(draw(1, 32)) * 256, int(draw(1, 64)) * 256, int(draw(5) == 0), int(draw(1, 60)), group=str(n))
        for n in range(5)
    ]
    offers, room = market("abc"), int(rng.choice([5, 400]))
    together = buy(backlogs(batches, *[400] * 5), offers, OrderLimits(room))
    monkeypatch.setitem(sys.modules, "highspy", None)
    alone = buy(backlogs(batches, *[400] * 5), offers, OrderLimits(room))
    assert sum(together.instances.values()) <= room
    assert together.uncovered <= alone.uncovered
    assert room == 5 or usd_of(together, offers) <= usd_of(alone, offers) * (1 + 1e-9)


def test_tasks_that_share_gpus_are_bought_for_with_the_others_and_the_cost_has_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    share = Batch(256, 2048, 0, 60, group="shares", gpu_share_mib=3000, constraints=(SHARES_GPUS,))
    batches = [share, Batch(2048, 8000, 1, 10, group="whole"), Batch(2048, 4096, 0, 60, group="cpu")]
    offers = market(types=("g6.xlarge", "g6.2xlarge", "g6.4xlarge", "g6.12xlarge", "c5.4xlarge"))
    together = buy(backlogs(batches, 200, 200, 200), offers, OrderLimits(200))
    monkeypatch.setitem(sys.modules, "highspy", None)
    alone = buy(backlogs(batches, 200, 200, 200), offers, OrderLimits(200))
    assert uncovered(together) == uncovered(alone) == [0, 0, 0]
    assert together.gap is not None
    assert usd_of(together, offers) < usd_of(alone, offers) * 0.97


def test_a_zone_whose_last_instances_could_not_share_gpus_gets_no_share() -> None:
    share = Batch(256, 2048, 0, 60, group="shares", gpu_share_mib=3000, constraints=(SHARES_GPUS,))
    both = [share, Batch(256, 2048, 0, 60, group="more", gpu_share_mib=5000, constraints=(SHARES_GPUS,))]
    offers = [
        replace(
            each,
            attributes=tuple(pair for pair in each.attributes if each.zone[-1] == "b" or pair[0] not in SHARES_GPUS),
        )
        for each in market("ab", ("g6.xlarge", "g6.12xlarge"))
    ]
    order = buy(backlogs(both, 200, 200), offers, OrderLimits(200))
    assert uncovered(order) == [0, 0]
    assert {pool[-1] for pool, _ in order.instances} == {"b"}


def test_a_purchase_for_several_runs_is_spread_over_zones_of_similar_price() -> None:
    zones = Counter[str]()
    for (pool, _), count in buy(backlogs(MIXED, 200, 200), market("abc"), OrderLimits(200)).instances.items():
        zones[pool[-1]] += count
    assert set(zones) == set("abc")
    assert max(zones.values()) <= min(zones.values()) + len(TYPES)


def test_constraints_hold_for_what_is_bought_together() -> None:
    only = ("attribute:ecs.availability-zone == us-east-1b", "attribute:argosy.purchase == on-demand")
    batches = [replace(batch, constraints=only) for batch in MIXED]
    order = buy(backlogs(batches, 200, 200), market("ab"), OrderLimits(200))
    assert uncovered(order) == [0, 0]
    assert {pool[-1] for pool, _ in order.instances} == {"b"}
    assert {purchase for _, purchase in order.instances} == {Purchase.ON_DEMAND}


def test_what_is_bought_together_holds_no_more_tasks_than_the_most_of_each_instance() -> None:
    batches = [replace(batch, cpu_units=batch.cpu_units // 8, memory_mib=batch.memory_mib // 8) for batch in MIXED]
    offers = [replace(offer, most_tasks=5) for offer in market()]
    order = buy(backlogs(batches, 200, 200), offers, OrderLimits(200))
    assert uncovered(order) == [0, 0]
    assert 16 <= order.instances.total() <= 18  # 80 tasks; first come first served fills some by four
    assert order.gap is not None
    assert order.gap < 0.13
    assert buy(backlogs(batches, 200, 200), market(), OrderLimits(200)).instances.total() < 16


def test_runs_with_a_cap_or_a_limit_per_instance_are_still_bought_for_one_by_one() -> None:
    batches = [MIXED[0], replace(MIXED[1], constraints=("distinctInstance",), count=6)]
    order = buy(backlogs(batches, 3, 200), market(), OrderLimits(200))
    assert order.shortfalls[1].tasks == 0
    assert sum(order.instances.values()) >= 6


def test_a_maximum_share_diversifies_the_types() -> None:
    def largest_share(max_share: float) -> float:
        bounds = OrderLimits(400, max_type_share=max_share)
        cpu = Counter[str]()
        for (pool, _), count in buy(backlogs(MIXED, 400, 400), market(), bounds).instances.items():
            kind = pool.split("/")[-2] if "/" in pool else pool
            cpu[kind] += CATALOGUE[kind].cpu_units * count
        return max(cpu.values()) / sum(cpu.values())

    assert largest_share(1.0) > 0.5
    assert largest_share(0.5) <= 0.55  # what the tasks really need may fall short of the plan by an instance


def test_what_is_bought_together_keeps_within_the_quotas_and_turns_to_what_they_leave() -> None:
    quota = OrderLimits(400, vcpus_left={("us-east-1", "spot", "standard"): 32})
    offers = market(types=TYPES[:-1])  # all of one family
    vcpus = {(offer.pool, offer.purchase): offer.resources.cpu_units // 1024 for offer in offers}
    order = buy(backlogs(MIXED, 400, 400), offers, quota)
    assert uncovered(order) == [0, 0]
    spot = sum(vcpus[what] * count for what, count in order.instances.items() if what[1] is Purchase.SPOT)
    assert 16 < spot <= 32
    assert any(purchase is Purchase.ON_DEMAND for _, purchase in order.instances)


def test_mixed_runs_on_an_empty_cluster_order_their_fleets_once() -> None:
    state = state_with(
        *(event for n, overrides in enumerate(SPECS) for event in run_of(n, overrides)),
        *(fleet(kind, f"us-east-1{zone}") for kind in TYPES for zone in "abc"),
    )
    ordered = []
    for tick in range(50):
        actions = [a for a in decide(moment_of(state, NOW + tick)) if isinstance(a, SetTarget)]
        ordered.append(len(actions))
        begun(state, actions, now=NOW + tick)
        told(state, *(TargetAccepted(a.pool, a.spot_target) for a in actions), now=NOW + tick)
    assert ordered[0] > 0
    assert sum(ordered[1:]) == 0


SPECS: tuple[dict[str, Any], ...] = (
    {"vcpus": 3, "memory": 2048},
    {"vcpus": 0.5, "memory": 13_000},
    {"vcpus": 2, "memory": 4096, "gpus": 1},
)


def run_of(number: int, resources: dict[str, Any]) -> list[Any]:
    name = f"mixed-{number}"
    return [submitted(name, tasks=30, resources=resources), prepared(name, resources=resources)]


def test_what_is_bought_for_several_runs_is_enough_when_it_is_filled_first_in_first_out() -> None:
    """The next tick places all runs on all ordered instances: the first may take those meant for the last."""
    batches = (
        Batch(1024, 2048, 0, 50, group="a"),
        Batch(7168, 30_000, 0, 25, group="b"),
        Batch(512, 9000, 0, 60, group="c"),
    )
    offers = market("abc")
    by_name = {(offer.pool, offer.purchase): offer for offer in offers}
    order = buy(backlogs(batches, *[400] * 3), offers, OrderLimits(400))
    rows = [
        hypothetical(by_name[name], number)
        for name, count in sorted(order.instances.items())
        for number in range(count)
    ]
    assert int(place(batches, Supply.of(rows)).unplaced.sum()) == 0


def test_an_offer_without_resources_is_never_bought() -> None:
    nothing = replace(market()[0], resources=Resources())
    assert uncovered(buy(backlogs(MIXED, 200, 200), [nothing], OrderLimits(200))) == [40, 40]
