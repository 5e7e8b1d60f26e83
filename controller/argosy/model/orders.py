"""What was bought last, and how near to the cheapest was that?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Fillings of instances that an allocation used: (what the instance offers, ((what a task needs, tasks), ...)).
Patterns = tuple[tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], int], ...]], ...]


@dataclass(frozen=True, slots=True)
class OrderNote:
    """One tick's purchase. Its patterns are kept in memory only: a controller that starts anew finds them again."""

    at: float = 0.0  # 0 = nothing was bought yet
    instances: int = 0
    usd_per_hour: float = 0.0  # with what risk adds
    lower_bound_usd_per_hour: float | None = None  # None = not known
    gap: float | None = None  # share above the bound; None where the bound is not known or not all was bought
    method: str = ""  # "run by run", "patterns" or "greedy"
    patterns: Patterns = ()  # the next allocation begins with these

    def to_json(self) -> dict[str, Any]:
        """As users are shown it, and as it is stored."""
        return {
            "at": self.at,
            "instances": self.instances,
            "usdPerHour": self.usd_per_hour,
            "lowerBoundUsdPerHour": self.lower_bound_usd_per_hour,
            "gapPct": None if self.gap is None else 100 * self.gap,
            "method": self.method,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> OrderNote:
        gap_pct = record.get("gapPct")
        return cls(
            at=float(record.get("at", 0.0)),
            instances=int(record.get("instances", 0)),
            usd_per_hour=float(record.get("usdPerHour", 0.0)),
            lower_bound_usd_per_hour=record.get("lowerBoundUsdPerHour"),
            gap=None if gap_pct is None else float(gap_pct) / 100,
            method=str(record.get("method", "")),
        )
