"""A week of spot prices by pool, from DescribeSpotPriceHistory, also in eight-level blocks."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

DAYS = 7
SPARK_CELLS = 14  # half a day each
TYPES_PER_CALL = 100  # keeps one request's URL short; the API itself sets no bound
BLOCKS = "▁▂▃▄▅▆▇█"
_FLAT = 0.01  # a range below this share of the price is shown as no movement

Pool = tuple[str, str]  # type, zone


@dataclass(slots=True)
class PriceSeries:
    """Prices in USD an hour, each from its time (epoch seconds) until the next one's; in order."""

    times: list[float] = field(default_factory=list)
    prices: list[float] = field(default_factory=list)

    @property
    def now(self) -> float:
        return self.prices[-1]

    @property
    def since(self) -> float:
        """When the price in force began: entries that repeat it are not changes."""
        first = len(self.prices) - 1
        while first and self.prices[first - 1] == self.prices[-1]:
            first -= 1
        return self.times[first]

    def at(self, moment: float) -> float:
        """The price in force then; before the first known price, that one."""
        return self.prices[max(0, bisect_right(self.times, moment) - 1)]


def history(ec2: Any, names: Sequence[str], now: float) -> tuple[dict[Pool, PriceSeries], int]:
    """The series of every pool, and the number of entries that were not prices: EC2's strings may be zero or
    invalid."""
    entries: dict[Pool, list[tuple[float, float]]] = {}
    unusable = 0
    for first in range(0, len(names), TYPES_PER_CALL):
        pages = ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=list(names[first : first + TYPES_PER_CALL]),
            ProductDescriptions=["Linux/UNIX"],
            StartTime=datetime.fromtimestamp(now - DAYS * 86_400, UTC),
            EndTime=datetime.fromtimestamp(now, UTC),
        )
        for page in pages:
            for each in page["SpotPriceHistory"]:
                price = float(each.get("SpotPrice") or 0)
                if math.isfinite(price) and price > 0:
                    pool = each["InstanceType"], each["AvailabilityZone"]
                    entries.setdefault(pool, []).append((each["Timestamp"].timestamp(), price))
                else:
                    unusable += 1
    found = {pool: PriceSeries(*map(list, zip(*sorted(rows), strict=True))) for pool, rows in entries.items()}
    return found, unusable


def sparkline(series: PriceSeries, now: float) -> str:
    """The week in blocks, with the pool's lowest price at the bottom: it shows the changes of the price, not its
    height."""
    step = DAYS * 86_400 / SPARK_CELLS
    cells = [series.at(now - (SPARK_CELLS - number - 0.5) * step) for number in range(SPARK_CELLS - 1)] + [series.now]
    low, high = min(cells), max(cells)
    if high - low < _FLAT * high:
        return BLOCKS[0] * SPARK_CELLS
    return "".join(BLOCKS[min(7, int(8 * (cell - low) / (high - low)))] for cell in cells)


def as_json(series: PriceSeries) -> list[Mapping[str, Any]]:
    return [
        {"at": datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z"), "usdPerHour": price}
        for at, price in zip(series.times, series.prices, strict=True)
    ]
