"""What is bought so that the cluster is as large as it is to be kept, whatever work there is?

The floors themselves are `market.floors`. What fleets owe beyond the demand comes first, then the cheapest offers of
the types that count, within every limit of the deployment. A floor is no reason to exceed one: then it says why it is
not reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy.market.buy import Order
from argosy.market.cover import tasks_per_instance
from argosy.market.floors import LeastSize, least_sizes, missing
from argosy.market.limits import AT_ONCE, Choice, Headroom
from argosy.market.offers import over_zones
from argosy.model.moment import Moment, PoolPurchase
from argosy.model.pools import Offer
from argosy.placement.demand import Batch
from argosy.scheduler.buying.reasons import HELD_BY, why_nothing_is_bought
from argosy.scheduler.placing.places import Places


def bring_to_size(moment: Moment, order: Order, places: Places, offers: Sequence[Offer], headroom: Headroom) -> None:
    """Adds to the order what the floors lack. headroom: what the order leaves of the deployment's limits."""
    for least in least_sizes(moment):
        lacking = missing(moment, least) - _on_its_way(moment, least, (places.owed_used, order.instances, order.kept))
        for key, owed in sorted(moment.owed.items()):
            unused = owed - places.owed_used.get(key, 0) - order.kept[key]
            if lacking > 0 < unused and _is_of(moment, least, key):
                kept = min(lacking, unused)
                order.kept[key] += kept
                lacking -= kept
        if lacking > 0:
            _buy(moment, order, least, lacking, _open_to(least, places, offers), headroom)


def _is_of(moment: Moment, least: LeastSize, key: PoolPurchase) -> bool:
    return least.is_of(moment.state.pools[key[0]].instance_type)


def _on_its_way(moment: Moment, least: LeastSize, counts: Sequence[Mapping[PoolPurchase, int]]) -> int:
    return sum(count for each in counts for key, count in each.items() if _is_of(moment, least, key))


def _open_to(least: LeastSize, places: Places, offers: Sequence[Offer]) -> Sequence[Offer]:
    """The offers that count. Unless types are named: those that could take a task of the first run that any could."""
    able = [offer for offer in offers if least.is_of(offer.instance_type)]
    for its in places.runs if not least.types else ():
        fits = tasks_per_instance(replace(its.batch, count=1), able).tolist()
        if useful := [offer for offer, tasks in zip(able, fits, strict=True) if tasks]:
            return useful
    return [] if least.for_work else able


def _buy(
    moment: Moment, order: Order, least: LeastSize, lacking: int, offers: Sequence[Offer], headroom: Headroom
) -> None:
    added = _cheapest(offers, lacking, headroom)
    order.instances.update((offer.pool, offer.purchase) for offer in added)
    order.usd_per_hour += sum(offer.effective for offer in added)
    if added:
        order.lower_bound_usd_per_hour = None  # it speaks of the work alone
    if len(added) < lacking and not least.for_work:
        order.why_small = _why_not_more(moment, least, offers, headroom)


def _cheapest(offers: Sequence[Offer], most: int, headroom: Headroom) -> list[Offer]:
    """One offer per instance, taken out of `headroom`: the cheapest until a share or a quota is full, then the next."""
    added: list[Offer] = []
    least_cpu = min((offer.resources.cpu_units for offer in offers), default=0)
    while len(added) < most:
        choice = Choice.of(offers, (most - len(added)) * least_cpu)
        able = sorted((offer for offer in offers if headroom.most(offer, choice)), key=lambda offer: offer.effective)
        if not able:
            break
        for zone in over_zones(able[0], able, most - len(added)):
            if headroom.most(zone, choice):
                headroom.take(zone)
                added.append(zone)
    return added


def _why_not_more(moment: Moment, least: LeastSize, offers: Sequence[Offer], headroom: Headroom) -> str:
    """ "" where the next tick goes on."""
    if not offers:
        return why_nothing_is_bought(moment, _smallest(least))
    cheapest = min(offers, key=lambda offer: offer.effective)
    limit = headroom.why_none(cheapest, Choice.of(offers, cheapest.resources.cpu_units))
    return f"{HELD_BY}{limit}" if limit not in ("", AT_ONCE) else ""


def _smallest(least: LeastSize) -> Batch:
    """What fits on every instance of the types."""
    only = (f"attribute:ecs.instance-type in [{', '.join(least.types)}]",) if least.types else ()
    return Batch(1, 1, 0, 1, constraints=only)
