"""For how many more tasks may a run with caps ask at all?

As many as there is room for on instances that it pays for anyway, and as many as the rest of its money pays for at the
lowest price that anything here has. More than that would take places, and orders, from runs that can pay for them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from argosy.market.offers import resources_of
from argosy.model.instance_types import InstanceType
from argosy.model.instances import Instance, Purchase
from argosy.model.pools import Offer
from argosy.model.resources import NOTHING, Resources
from argosy.model.state import State
from argosy.scheduler.budget import Purse

_HAIR = 1e-9


def most_tasks(
    state: State,
    purse: Purse,
    offers: Sequence[Offer],
    catalogue: Mapping[str, InstanceType],
    buys: Collection[Purchase],
) -> int:
    """Never too few; too many where the run's constraints allow expensive instances only. `buys`: what may be bought
    for the run now."""
    needs = purse.run.needs
    free = sum(max(0, _places(purse, state.instances[name], catalogue)) for name in purse.paid)
    prices = [price * needs.share_of(size) for size, price in _for_sale(state, offers, buys) if _fits(needs, size)]
    least = min((price for price in prices if price > 0), default=0.0)
    if not least:
        return purse.run.task_count  # nothing has a price now: it waits for capacity, and money is not the reason
    hourly = purse.left_per_hour / least
    by_budget = purse.left_usd * 3600 / (least * purse.expected_s)
    most = max(0.0, min(hourly, by_budget))
    return purse.run.task_count if math.isinf(most) else free + int(most + _HAIR)


def _for_sale(state: State, offers: Sequence[Offer], buys: Collection[Purchase]) -> Iterator[tuple[Resources, float]]:
    """(what it has, USD an hour) of what could be bought, and of what is here already."""
    for offer in offers:
        if offer.purchase in buys:
            yield offer.resources, offer.price_usd_per_hour
    for instance in state.instances.values():
        if instance.placeable and instance.purchase in buys:
            yield instance.total, instance.price_usd_per_hour


def _places(purse: Purse, instance: Instance, catalogue: Mapping[str, InstanceType]) -> int:
    """For how many more tasks of the run there is room on an instance that it pays for."""
    kind = catalogue.get(instance.instance_type)
    size = instance.total if instance.total != NOTHING or kind is None else resources_of(kind)
    share = purse.run.needs.share_of(size)
    used = purse.held[instance.id].share_of_all if instance.id in purse.held else 0.0
    return int((1 - used) / share + _HAIR) if share else 0


def _fits(needs: Resources, size: Resources) -> bool:
    return all(mine <= theirs for mine, theirs in zip(needs, size, strict=True))
