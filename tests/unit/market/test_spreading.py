"""Are purchases for spread tasks as even as possible, without leaving a task without an instance?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.catalogue.lookup import load_catalogue
from argosy.market.cover import Spread, even_shares
from argosy.market.limits import BatchLimits, OrderLimits
from argosy.market.offers import offers_of
from argosy.market.order import Backlog, Order, buy
from argosy.model.pools import Offer, Pool
from argosy.placement.demand import Batch
from tests.builders import NOW

ZONE = "ecs.availability-zone"
BATCH = Batch(1024, 1024, 0, 9, group="run:a", strategy=(f"spread:attribute:{ZONE}",))


@given(st.integers(0, 60), st.lists(st.integers(0, 30), min_size=1, max_size=5))
def test_shares_are_what_giving_one_at_a_time_to_the_lowest_gives(count: int, here: list[int]) -> None:
    sums = list(here)
    for _ in range(count):
        sums[sums.index(min(sums))] += 1
    shares = even_shares(count, here)
    assert min(shares) >= 0
    assert sorted(had + share for had, share in zip(here, shares, strict=True)) == sorted(sums)


def market(prices: dict[str, float]) -> list[Offer]:
    pools = [
        Pool("us-east-1", "c5.xlarge", f"us-east-1{zone}", "fleet", spot_usd_per_hour=usd, priced_at=NOW)
        for zone, usd in prices.items()
    ]
    return [each for each in offers_of(pools, load_catalogue(), NOW) if each.purchase == "spot"]


def bought(prices: dict[str, float], limits: BatchLimits, here: dict[str, int], batch: Batch = BATCH) -> Order:
    backlog = Backlog(batch, limits, Spread(ZONE, {f"us-east-1{zone}": count for zone, count in here.items()}))
    return buy([backlog], market(prices), OrderLimits(100))


def by_zone(order: Order) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (pool, _), count in order.instances.items():
        found[pool[-1]] += count
    return dict(found)


def test_an_instance_is_bought_in_each_zone_though_one_is_a_quarter_of_the_price() -> None:
    assert by_zone(bought({"a": 0.02, "b": 0.08, "c": 0.08}, BatchLimits(100), {})) == {"a": 1, "b": 1, "c": 1}


def test_a_zone_that_has_its_tasks_already_gets_no_more() -> None:
    order = bought({"a": 0.02, "b": 0.08, "c": 0.08}, BatchLimits(100), {"a": 9}, replace(BATCH, count=8))
    assert by_zone(order) == {"b": 1, "c": 1}


def test_what_one_zone_cannot_have_goes_to_the_others() -> None:
    order = bought({"a": 0.02, "b": 0.08}, BatchLimits(100), {}, replace(BATCH, count=40))
    assert by_zone(order) == {"a": 5, "b": 5}
    cheap_only = BatchLimits(100, usd_per_hour=0.2)  # 0.08 + 6 x 0.02
    order = bought({"a": 0.02, "b": 0.12}, cheap_only, {}, replace(BATCH, count=24))
    assert sum(by_zone(order).values()) * 4 >= 20
    assert sum({"a": 0.02, "b": 0.12}[zone] * count for zone, count in by_zone(order).items()) <= 0.2


@pytest.mark.parametrize("most", [1, 2])
def test_a_run_with_fewer_instances_than_zones_takes_the_cheapest(most: int) -> None:
    assert by_zone(bought({"a": 0.02, "b": 0.08, "c": 0.08}, BatchLimits(most), {})) == {"a": most}


def test_the_room_on_what_is_bought_for_others_counts_before_anything_is_bought() -> None:
    first = Backlog(Batch(1024, 1024, 0, 1, group="run:b"), BatchLimits(100))
    spread = Backlog(replace(BATCH, count=3), BatchLimits(100), Spread(ZONE, {}))
    order = buy([first, spread], market({"a": 0.02, "b": 0.08, "c": 0.08}), OrderLimits(100))
    assert by_zone(order) == {"a": 1}


def test_the_remainder_goes_to_the_cheapest_zone_whatever_its_name() -> None:
    order = bought({"a": 0.08, "b": 0.08, "c": 0.02}, BatchLimits(100), {}, replace(BATCH, count=13))
    assert by_zone(order) == {"a": 1, "b": 1, "c": 2}


def test_a_zone_whose_daemons_leave_less_room_is_not_equal_to_one_without() -> None:
    cheap, roomy = market({"a": 0.05, "b": 0.051})
    beside_a_daemon = replace(cheap, resources=cheap.resources._replace(cpu_units=cheap.resources.cpu_units - 256))
    pair = Batch(2048, 1024, 0, 2, group="run:a")
    other = Batch(2000, 1000, 0, 2, group="run:b")  # two together are bought by the allocator
    for wanted in ([pair], [pair, replace(other, count=0)], [pair, other]):
        order = buy([Backlog(each, BatchLimits(100)) for each in wanted], [beside_a_daemon, roomy], OrderLimits(100))
        assert [each.tasks for each in order.shortfalls] == [0] * len(wanted)
    assert by_zone(buy([Backlog(pair, BatchLimits(100))], [beside_a_daemon, roomy], OrderLimits(100))) == {"b": 1}
