"""In which zones are instances of a type bought? In turn where they cost about the same: a shortage is per pool."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.model.pools import Offer

SIMILAR_PRICE = 1.1  # zones within 10 % of the cheapest share a purchase


def over_zones(winner: Offer, offers: Sequence[Offer], instances: int) -> list[Offer]:
    """One offer per instance, out of those `offers` that are of the winner's type and purchase option."""
    zones = [
        offer
        for offer in offers
        if (offer.instance_type, offer.purchase) == (winner.instance_type, winner.purchase)
        and offer.effective <= winner.effective * SIMILAR_PRICE
    ]
    zones.sort(key=lambda offer: offer.effective)  # one instance goes where it is cheapest, risk and all
    return [zones[i % len(zones)] for i in range(instances)]
