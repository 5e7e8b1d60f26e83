"""What does the next gang lack, and where is it cheapest?

A gang needs as many instances of one zone as it has members. In each zone some may be present or ordered already; the
others are bought from one pool. The zone and the pool that complete the gang at the lowest price are chosen. A pool
that does not deliver cools off, and then the same rule chooses the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from argosy.market.cover import RUN_LIMIT, tasks_per_instance
from argosy.market.limits import AT_ONCE, Choice, Headroom, OrderLimits
from argosy.market.order import Order, Shortfall
from argosy.model.moment import Moment
from argosy.model.pools import Offer
from argosy.scheduler.placing.gang_places import CAPPED
from argosy.scheduler.placing.places import Places
from argosy.scheduler.placing.run_places import RunPlaces

TOO_FEW = (
    "the limits of the deployment: a gang needs {size} instances of one zone, and {more} more {kind} may be bought"
)


class GangPurchase(NamedTuple):
    """How a gang can be completed: by that number of instances of the offer, besides those of its zone."""

    usd_per_hour: float
    offer: Offer
    instances: int


def gang_order(moment: Moment, places: Places, offers: Sequence[Offer], limits: OrderLimits) -> Order:
    """Has a shortfall for each run of `places`; runs without gangs buy in the next tick.

    Example: a gang of 4 has 3 instances in us-east-1a, one of them ordered. Then `instances` has one of the cheapest
    pool there, `kept` the ordered one, and `beside` the two that are present.
    """
    order, left = Order(method="gangs"), moment.instances_left()
    for its in places.runs:
        gangs, size = its.left_over.count // its.run.gang_size, its.run.gang_size
        if its.run.terms.gang is None or not gangs:
            order.shortfalls.append(Shortfall(count := its.left_over.count, AT_ONCE if count else ""))
            continue
        if moment.state.sharing.limits_queues:
            order.shortfalls.append(Shortfall(its.left_over.count, CAPPED))
            continue
        # A gang may be larger than what one tick may order.
        room = max(limits.instances, min(left, size)) if not order.instances else limits.instances
        headroom, by_zone = Headroom(replace(limits, instances=room)), dict(its.by_zone)
        for offer in _bought(order, offers):
            headroom.take(offer)
        able = _able(its, offers)
        done, reason = 0, ""
        while done < gangs:
            found, reason = _cheapest(its, able, headroom, by_zone, order)
            if found is None:
                _prove(order, able, headroom, size)
                if any(map(headroom.is_on_trial, able)):
                    order.kept.update(places.owed[name] for name in _first(by_zone, size) if name in places.owed)
                break
            for _ in range(found.instances):
                headroom.take(found.offer)
            order.instances[found.offer.pool, found.offer.purchase] += found.instances
            order.usd_per_hour += found.usd_per_hour
            beside = by_zone.pop(found.offer.zone, ())[: size - found.instances]
            order.kept.update(places.owed[name] for name in beside if name in places.owed)
            order.beside |= {name for name in beside if name not in places.owed}
            done += 1
        order.shortfalls.append(Shortfall((gangs - done) * size, reason if done < gangs else ""))
    return order


def _prove(order: Order, able: Sequence[Offer], headroom: Headroom, size: int) -> None:
    """Where instances have to prove first that they join the cluster, as many as that allows."""
    choice = Choice.of(able, 0)
    for offer in sorted(able, key=lambda each: (each.effective, each.pool)):
        most = min(size, headroom.most(offer, choice)) if headroom.is_on_trial(offer) else 0
        if most:
            order.instances[offer.pool, offer.purchase] += most
            order.usd_per_hour += most * offer.effective
            return


def _first(by_zone: Mapping[str, tuple[str, ...]], size: int) -> tuple[str, ...]:
    """The instances of the zone that has most of them."""
    return max(by_zone.values(), key=len, default=())[:size]


def _bought(order: Order, offers: Sequence[Offer]) -> Iterator[Offer]:
    by_name = {(offer.pool, offer.purchase): offer for offer in offers}
    return (by_name[name] for name in order.instances.elements())


def _able(its: RunPlaces, offers: Sequence[Offer]) -> list[Offer]:
    fits = tasks_per_instance(its.left_over, offers).tolist()
    return [offer for offer, tasks in zip(offers, fits, strict=True) if tasks]


def _cheapest(
    its: RunPlaces, able: Sequence[Offer], headroom: Headroom, by_zone: Mapping[str, tuple[str, ...]], order: Order
) -> tuple[GangPurchase | None, str]:
    """None, and the limit that stops the purchase, if no pool may complete the gang."""
    size, terms = its.run.gang_size, its.run.terms
    own = size if terms.max_instances is None else terms.max_instances - len(its.instances) - order.instances.total()
    choice = Choice.of(able, size * min((offer.resources.cpu_units for offer in able), default=0))
    found = [
        GangPurchase(lacking * offer.effective, offer, lacking)
        for offer in able
        if (lacking := max(1, size - len(by_zone.get(offer.zone, ())))) <= headroom.most(offer, choice) and size <= own
    ]
    if found:
        return min(found, key=lambda each: (each.usd_per_hour, each.offer.pool, each.offer.purchase)), ""
    if not able or size > own:
        return None, RUN_LIMIT if able else ""
    tried = min(able, key=lambda offer: (offer.effective, offer.pool))
    more = headroom.most(tried, choice)
    return None, headroom.why_none(tried, choice) or TOO_FEW.format(size=size, more=more, kind=tried.instance_type)
