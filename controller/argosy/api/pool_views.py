"""How is a pool shown to users: what it is to hold, what it costs, how risky it is, and why nothing is bought there?"""

from __future__ import annotations

from typing import Any

from argosy.api.timestamps import iso
from argosy.catalogue.lookup import BANDS, interruption_band, load_catalogue
from argosy.market.offers import is_stale, price_of, rate_of, rejected
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Pool


def fleet_view(pool: Pool, now: float, policy: Policy) -> dict[str, Any]:
    """One of `fleets` of DescribeCluster's body. USD an hour; times are ISO 8601; null is what is not known."""
    kind = load_catalogue(pool.cell).get(pool.instance_type)
    band = interruption_band(pool.cell, pool.instance_type)
    why_not = rejected([pool], load_catalogue(pool.cell), now, policy)
    return {
        "instanceType": pool.instance_type,
        "availabilityZone": pool.zone,
        "cell": pool.cell,
        "spotTarget": pool.spot_target,
        "onDemandTarget": pool.on_demand_target,
        "spotUsdPerHour": pool.spot_usd_per_hour or None,
        "pricedAt": iso(pool.priced_at, "seconds"),
        "priceIsStale": is_stale(pool, now, policy),
        "assumedUsdPerHour": price_of(pool, kind, Purchase.SPOT, now, policy) if kind else None,
        "interruptionBand": None if band is None else BANDS[band],
        "interruptionsPerHour": rate_of(pool, now, policy),
        "coolingOffUntil": iso(pool.short_until if pool.short_until > now else 0.0, "seconds"),
        "coolingOffAfter": pool.short_reason if pool.short_until > now else None,
        "unsettledUntil": iso(pool.unsettled_until if pool.unsettled_until > now else 0.0, "seconds"),
        "placementScore": pool.placement_score or None,
        "noOfferBecause": why_not[0][1] if why_not else None,
    }
