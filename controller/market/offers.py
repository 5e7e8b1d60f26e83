"""What could be bought now, at what price, and what would it give us?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.catalogue.types import InstanceType
from controller.model.instances import Purchase
from controller.model.pools import Offer, Pool
from controller.model.resources import Resources

PURCHASE_ATTRIBUTE = "argosy.purchase"


def offers_of(pools: Iterable[Pool], catalogue: Mapping[str, InstanceType], now: float) -> list[Offer]:
    """A spot and an on-demand offer for every pool that has a fleet and is not cooling off, cheapest first.

    `now` = infinity includes those that are cooling off.
    A pool whose spot price was never seen is offered at the type's typical spot price.
    """
    offers = []
    for pool in pools:
        kind = catalogue.get(pool.instance_type)
        if kind is None or not pool.fleet_id:
            continue
        if pool.short_until <= now:
            price = pool.spot_usd_per_hour or kind.typical_spot_usd_per_hour or kind.on_demand_usd_per_hour
            offers.append(_offer(pool, kind, Purchase.SPOT, price))
        offers.append(_offer(pool, kind, Purchase.ON_DEMAND, kind.on_demand_usd_per_hour))
    return sorted(offers, key=lambda offer: (offer.price_usd_per_hour, offer.pool, offer.purchase))


def _offer(pool: Pool, kind: InstanceType, purchase: Purchase, price: float) -> Offer:
    return Offer(
        pool=pool.key,
        cell=pool.cell,
        instance_type=pool.instance_type,
        zone=pool.zone,
        purchase=purchase,
        price_usd_per_hour=price,
        resources=resources_of(kind),
        attributes=tuple(expected_attributes(kind, pool.zone, purchase).items()),
    )


def resources_of(kind: InstanceType) -> Resources:
    """What an instance of the type registers with ECS."""
    return Resources(kind.cpu_units, kind.registered_memory_mib, kind.gpus)


def expected_attributes(kind: InstanceType, zone: str, purchase: Purchase) -> dict[str, str]:
    """The attributes an instance will have once its agent has registered, as far as constraints can know them."""
    return {
        "ecs.instance-type": kind.name,
        "ecs.availability-zone": zone,
        "ecs.cpu-architecture": kind.architecture,
        "ecs.os-type": "linux",
        "ecs.os-family": "LINUX",
        PURCHASE_ATTRIBUTE: purchase.value,
    }
