"""What was bought last, and how near to the cheapest was that?"""

from __future__ import annotations

from dataclasses import dataclass

# Fillings of instances that an allocation used: (what the instance offers, ((what a task needs, tasks), ...)).
Patterns = tuple[tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], int], ...]], ...]


@dataclass(frozen=True, slots=True)
class OrderNote:
    """One tick's purchase. Kept in memory only: a controller that starts anew plans from nothing, which is as good."""

    instances: int = 0
    usd_per_hour: float = 0.0  # with what risk adds
    lower_bound_usd_per_hour: float | None = None  # None = not known
    gap: float | None = None  # share above the bound; None where the bound is not known or not all was bought
    method: str = ""
    patterns: Patterns = ()  # the next allocation begins with these
