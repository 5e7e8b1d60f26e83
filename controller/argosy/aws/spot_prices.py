"""Spot prices of each pool: DescribeSpotPriceHistory, cached for each cell."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from argosy.aws.cell import Cell, CheckTime, pages
from argosy.aws.errors import AWS_ERRORS, classify
from argosy.messages.ecs import epoch_s

PRICES_FRESH_S = 300.0
TRY_AGAIN_S = 60.0  # after EC2 did not answer
SPOT_PRODUCT = "Linux/UNIX"
PoolPrices = dict[tuple[str, str], tuple[float, float]]
"""(type, zone) -> USD an hour, and when EC2 was queried for it."""

log = logging.getLogger(__name__)


class SpotPrices:
    """The current prices, queried every five minutes. A pool that EC2 does not mention keeps its last price and the
    time at which it was seen; the market decides how old is too old."""

    def __init__(self) -> None:
        self._known: dict[str, PoolPrices] = {}  # by cell
        self._next: dict[str, float] = {}  # by cell: when to ask again

    def of(self, cell: Cell, types: Iterable[str], now: float, check_time: CheckTime) -> PoolPrices:
        """Raises what `check_time` raises, and none of AWS_ERRORS."""
        known, wanted = self._known.setdefault(cell.name, {}), sorted(types)
        if not wanted or now < self._next.get(cell.name, 0.0):
            return known
        try:
            newest = newest_prices(cell.ec2, wanted, now, check_time)
        except AWS_ERRORS as error:
            # Prices are advice: the last known ones are used, or the on-demand prices (market/offers.py).
            log.warning("no spot prices of %s: %s", cell.name, classify(error).text)
            self._next[cell.name] = now + TRY_AGAIN_S
            return known
        self._next[cell.name] = now + PRICES_FRESH_S
        known.update((pool, (price, now)) for pool, price in newest.items())
        return known


def newest_prices(ec2: Any, types: list[str], now: float, check_time: CheckTime) -> dict[tuple[str, str], float]:
    """USD an hour by (type, zone); unusable prices are left out. Raises AWS_ERRORS, and what `check_time` raises."""
    newest: dict[tuple[str, str], tuple[float, float]] = {}
    request = {"InstanceTypes": types, "ProductDescriptions": [SPOT_PRODUCT], "MaxResults": 1000}

    def call(**asked: Any) -> Any:
        check_time()
        return ec2.describe_spot_price_history(**asked)

    # It is a log of changes: asked from now on, it holds the current price of each pool.
    for page in pages(call, StartTime=datetime.fromtimestamp(now, UTC), **request):
        for entry in page["SpotPriceHistory"]:
            key, at = (entry["InstanceType"], entry["AvailabilityZone"]), epoch_s(entry["Timestamp"])
            if at >= newest.get(key, (float("-inf"), 0.0))[0]:
                newest[key] = (at, float(entry.get("SpotPrice") or 0.0))
    found = {key: price for key, (_, price) in newest.items() if math.isfinite(price) and price > 0}
    if len(found) < len(newest):
        log.warning("EC2 quotes no usable price for %d of %d pools", len(newest) - len(found), len(newest))
    return found
