"""Is all money in exactly one ledger, and does a run keep to its budget? (decision 12) On what is stored and billed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.model.costs import Costs
from argosy.model.run_record import RunRecord
from argosy.simulation.ledger_book import Book

STOPPING_S = 1800.0  # from the decision to stop until the last instance is gone, when much goes wrong at once


class Money:
    """Watches one trial."""

    def __init__(self) -> None:
        self._longest_gap_s = 0.0
        self._most_usd_per_hour = 0.0
        self._committed_at = 0.0

    def imbalance(self, book: Book, now: float) -> str:
        """What is wrong with the ledgers after a commit; "" = nothing."""
        self._longest_gap_s = max(self._longest_gap_s, now - (self._committed_at or now))
        self._committed_at = now
        ledgers = [costs for record in book.records.values() for costs in record.costs.values()]
        ledgers.append(Costs(*book.root.get("unattributed", ())))
        alive = [each for each in book.instances.values() if each["status"] != "GONE"]
        usd_per_hour = sum(each["price_usd_per_hour"] for each in alive)
        self._most_usd_per_hour = max(self._most_usd_per_hour, usd_per_hour)
        charged = sum(costs.total for costs in ledgers)
        alive_usd = sum(each.get("charged_s", 0.0) * each["price_usd_per_hour"] / 3600 for each in alive)
        paid = book.root.get("spent_usd", 0.0) + alive_usd
        if any(value < -1e-9 for costs in ledgers for value in costs.to_list()):
            return "a ledger has a negative entry"
        if abs(charged - paid) > 1e-6 + 1e-9 * paid:
            return f"{charged:.6f} USD are in the ledgers, {paid:.6f} USD were charged for instances"
        return ""

    def overspent(self, specs: Mapping[str, Mapping[str, Any]], records: Iterable[RunRecord]) -> list[tuple[str, str]]:
        """(run id, sentence) of runs that cost more than their budget, and what the fleet costs over the longest gap
        between two commits and while it is stopped."""
        slack = self._most_usd_per_hour * (self._longest_gap_s + STOPPING_S) / 3600
        found = []
        for record in records:
            budget = specs[record.id].get("capacity", {}).get("budgetUsd")
            if budget is not None and record.cost_usd > budget + slack:
                found.append((record.id, f"{record.cost_usd:.4f} USD were spent of a budget of {budget} USD"))
        return found
