"""Laws of buying on generated offers and work, against an exhaustive search for the cheapest cover."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from argosy.catalogue.quotas import quota_key
from argosy.market.limits import BatchLimits, OrderLimits
from argosy.market.order import Backlog, Order, buy
from argosy.model.instances import Purchase
from argosy.model.pools import Offer
from argosy.model.resources import Resources
from argosy.placement.demand import Batch

ZONES = ("us-east-1a", "us-east-1b")
QUOTA = ("us-east-1", "spot", "standard")
types = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 40)),
    min_size=1,
    max_size=3,
    unique_by=lambda t: t[:2],
)
work = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=2)


@dataclass(frozen=True)
class Market:
    offers: list[Offer]
    batches: list[Batch]

    def price(self, order: Order) -> float:
        return sum(self.named(name).price_usd_per_hour * count for name, count in order.instances.items())

    def named(self, name: tuple[str, Purchase]) -> Offer:
        return next(offer for offer in self.offers if (offer.pool, offer.purchase) == name)


def market_of(
    kinds: Sequence[tuple[int, int, int]], tasks: Sequence[tuple[int, int, int]], most: int | None = None
) -> Market:
    offers = [
        Offer(
            pool=f"us-east-1/m{number}.large/{zone}", cell="us-east-1", instance_type=f"m{number}.large", zone=zone,
            purchase=Purchase.SPOT, price_usd_per_hour=cents / 100, resources=Resources(vcpus * 1024, gib * 1024, 0),
            most_tasks=most, attributes=(("ecs.availability-zone", zone),),
        )
        for number, (vcpus, gib, cents) in enumerate(kinds)
        for zone in ZONES
    ]  # fmt: skip
    offers.sort(key=lambda offer: (offer.price_usd_per_hour, offer.pool))
    batches = [
        Batch(vcpus * 1024, gib * 1024, 0, count, group=f"run:{number}")
        for number, (vcpus, gib, count) in enumerate(tasks)
    ]
    return Market(offers, batches)


def cheapest_cover(market: Market) -> float:
    """By trying every choice of instances and every way of filling them: USD an hour; infinite if there is none."""
    kinds = {offer.instance_type: offer for offer in market.offers}
    tasks = sum(batch.count for batch in market.batches)
    best = math.inf
    for counts in itertools.product(range(tasks + 1), repeat=len(kinds)):
        price = sum(n * offer.price_usd_per_hour for n, offer in zip(counts, kinds.values(), strict=True))
        if price < best and sum(counts) <= tasks:
            bins = [
                (*offer.resources[:2], offer.most_tasks or tasks)
                for n, offer in zip(counts, kinds.values(), strict=True)
                for _ in range(n)
            ]
            if _all_fit([batch.need[:2] for batch in market.batches for _ in range(batch.count)], bins):
                best = price
    return best


def _all_fit(needs: Sequence[tuple[int, int]], bins: Sequence[tuple[int, ...]]) -> bool:
    if not needs:
        return True
    (cpu, memory), rest = needs[0], needs[1:]
    for number, (free_cpu, free_memory, places) in enumerate(bins):
        if (free_cpu, free_memory, places) in bins[:number]:
            continue  # an equal one was tried
        left = (free_cpu - cpu, free_memory - memory, places - 1)
        if min(left) >= 0 and _all_fit(rest, [*bins[:number], left, *bins[number + 1 :]]):
            return True
    return False


@given(types, work, st.sampled_from((None, None, 1, 2, 3)))
def test_an_order_covers_all_that_can_be_covered_and_its_bound_is_no_more_than_the_cheapest_cover(
    kinds: list[tuple[int, int, int]], tasks: list[tuple[int, int, int]], most: int | None
) -> None:
    market = market_of(kinds, tasks, most)
    backlogs = [Backlog(batch, BatchLimits(100)) for batch in market.batches]
    order = buy(backlogs, market.offers, OrderLimits(100))
    for batch, shortfall in zip(market.batches, order.shortfalls, strict=True):
        fits = any(min(o.resources[0] - batch.cpu_units, o.resources[1] - batch.memory_mib) >= 0 for o in market.offers)
        assert shortfall.tasks == (0 if fits else batch.count)
    if order.uncovered:
        return
    cheapest = cheapest_cover(market)
    assert order.usd_per_hour >= cheapest * (1 - 1e-9)
    assert order.lower_bound_usd_per_hour is None or order.lower_bound_usd_per_hour <= cheapest * (1 + 1e-9)
    # First come first served: (1, 1) x 2 and (1, 2) cost 15 cents on (1, 2) at 5 and (2, 1) at 1, where 7 would do.
    assert order.usd_per_hour <= 3 * cheapest * (1 + 1e-9)
    assert order.gap is None or order.gap >= 0


@given(
    types,
    work,
    st.integers(0, 6),
    st.lists(st.integers(0, 5), min_size=2, max_size=2),
    st.floats(0, 1),
    st.integers(0, 12),
)
def test_no_limit_is_ever_exceeded_and_what_is_held_back_says_why(
    kinds: list[tuple[int, int, int]],
    tasks: list[tuple[int, int, int]],
    room: int,
    caps: list[int],
    usd: float,
    vcpus: int,
) -> None:
    market = market_of(kinds, tasks)
    limits = [BatchLimits(caps[0], usd), BatchLimits(caps[1])][: len(tasks)]
    backlogs = [Backlog(*each) for each in zip(market.batches, limits, strict=True)]
    order = buy(backlogs, market.offers, OrderLimits(room, vcpus_left={QUOTA: vcpus}))
    bought = order.instances.total()
    assert bought <= room
    assert bought <= sum(min(cap, room) for cap in caps)
    used = sum(n * market.named(name).resources.cpu_units // 1024 for name, n in order.instances.items())
    assert used <= vcpus
    if len(tasks) == 1:
        assert market.price(order) <= usd + 1e-9
    for batch, shortfall in zip(market.batches, order.shortfalls, strict=True):
        fits = any(min(o.resources[0] - batch.cpu_units, o.resources[1] - batch.memory_mib) >= 0 for o in market.offers)
        assert bool(shortfall.reason) == (shortfall.tasks > 0 and fits)


@given(
    types, st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 60)), st.sampled_from([0.25, 0.4, 0.5, 0.75])
)
def test_a_maximum_share_holds_to_a_whole_instance_and_never_leaves_work_undone(
    kinds: list[tuple[int, int, int]], task: tuple[int, int, int], share: float
) -> None:
    market = market_of(kinds, [task])
    (batch,) = market.batches
    able = {
        o.instance_type: o
        for o in market.offers
        if min(o.resources[0] - batch.cpu_units, o.resources[1] - batch.memory_mib) >= 0
    }
    order = buy([Backlog(batch, BatchLimits(500))], market.offers, OrderLimits(500, max_type_share=share))
    assert order.uncovered == (0 if able else batch.count)
    cpu: dict[str, int] = {}
    for name, count in order.instances.items():
        offer = market.named(name)
        cpu[offer.instance_type] = cpu.get(offer.instance_type, 0) + count * offer.resources.cpu_units
    for name, mine in cpu.items():
        allowed = max(share, 1 / len(able)) * sum(cpu.values())
        assert mine <= allowed + able[name].resources.cpu_units


def test_the_quota_of_the_generated_types_is_the_one_that_the_laws_speak_of() -> None:
    assert quota_key("m0.large", "spot") == QUOTA[2]
