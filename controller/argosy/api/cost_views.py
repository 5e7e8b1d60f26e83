"""How are a run's ledger and its caps shown? From its record, as `spending` brings it up to now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model.costs import Costs, summed

JSON = dict[str, Any]
_KINDS = ("useful", "boot", "idle", "redone", "failed")


def cost_view(record: Mapping[str, Any]) -> JSON:
    """A run's ledger: what was paid for, and where. Both add up to the run's cost."""
    ledger = {market: Costs(*row) for market, row in record.get("costs", {}).items()}
    total = summed(ledger.values())
    return {
        "byWaste": {f"{kind}Usd": getattr(total, kind) for kind in _KINDS},
        "byPool": [_market_view(market, costs) for market, costs in sorted(ledger.items(), key=_dearest_first)],
        "instanceHours": total.instance_seconds / 3600,
    }


def _dearest_first(row: tuple[str, Costs]) -> tuple[float, str]:
    return -row[1].total, row[0]


def _market_view(market: str, costs: Costs) -> JSON:
    pool, _, purchase = market.partition("|")
    cell, instance_type, zone = pool.split("/") if pool.count("/") == 2 else (None, pool, None)
    return {
        "cell": cell,
        "instanceType": instance_type,
        "availabilityZone": zone,
        "purchase": purchase or None,
        "instanceHours": costs.instance_seconds / 3600,
        "costUsd": costs.total,
        "usefulUsd": costs.useful,
        "onDemandCostUsd": costs.on_demand,
    }


def budget_view(record: Mapping[str, Any]) -> JSON | None:
    """The run's caps and how far they are used; None for a run without any."""
    budget, hourly = record.get("budget_usd"), record.get("max_hourly_usd")
    if budget is None and hourly is None:
        return None
    return {
        "budgetUsd": budget,
        "spentUsd": record["cost_usd"],
        "reservedUsd": record.get("reserved_usd", 0.0),
        "maxHourlyCost": hourly,
        "usdPerHour": record.get("usd_per_hour", 0.0),
        "onCap": ("drain" if record.get("drains_at_cap", True) else "finish") if budget is not None else None,
        "usedUp": bool(record.get("capped_at")),
    }
