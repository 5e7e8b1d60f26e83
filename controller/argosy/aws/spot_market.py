"""What EC2 says of its spot market: the price of each pool, and placement scores, its estimate of capacity in a zone.

Both are cached for each cell: prices for five minutes, scores for an hour. A score is about a list of types, never
about one. Types with and without GPUs are asked about separately, always with the same request, because AWS limits how
many different ones an account may make in a day. A score moves a pool's effective price by a tenth at most
(market/risk.py).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from argosy.aws.cell import Cell, CheckTime, pages
from argosy.aws.errors import AWS_ERRORS, classify
from argosy.catalogue.lookup import load_catalogue
from argosy.messages.ecs import epoch_s

PRICES_FRESH_S = 300.0
TRY_AGAIN_S = 60.0  # after EC2 did not answer
SPOT_PRODUCT = "Linux/UNIX"
PoolPrices = dict[tuple[str, str], tuple[float, float]]
"""(type, zone) -> USD an hour, and when EC2 was asked for it."""

log = logging.getLogger(__name__)


class SpotPrices:
    """The current prices, asked for every five minutes. A pool that EC2 does not mention keeps its last price and the
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


SCORES_FRESH_S = 3_600.0
PoolScores = dict[tuple[str, str], int]  # (type, zone) -> 1 to 10
TARGET_CAPACITY = 20  # instances: what a run of moderate size orders
LEAST_TYPES = 3  # with fewer the score is always low (aws.md 10.3)


class PlacementScores:
    """EC2's scores; the last known ones when it does not answer."""

    def __init__(self) -> None:
        self._known: dict[str, PoolScores] = {}
        self._next: dict[str, float] = {}
        self._zones: dict[str, dict[str, str]] = {}  # by cell: zone id -> the account's name for it

    def of(self, cell: Cell, types: Iterable[str], now: float, check_time: CheckTime) -> PoolScores:
        """As far as there are scores. Raises what `check_time` raises."""
        wanted = sorted(types)
        if wanted and now >= self._next.get(cell.name, 0.0):
            self._next[cell.name] = now + SCORES_FRESH_S
            try:
                self._known[cell.name] = self._ask(cell, wanted, check_time)
            except AWS_ERRORS as error:
                log.warning("no placement scores of %s: %s", cell.name, classify(error).text)
        return self._known.get(cell.name, {})

    def _ask(self, cell: Cell, types: list[str], check_time: CheckTime) -> PoolScores:
        """Raises AWS_ERRORS, and what `check_time` raises."""
        if cell.name not in self._zones:
            check_time()
            zones = cell.ec2.describe_availability_zones()["AvailabilityZones"]
            self._zones[cell.name] = {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
        catalogue = load_catalogue()
        with_gpus = [name for name in types if name in catalogue and catalogue[name].gpus]
        found: PoolScores = {}
        for alike in (with_gpus, [name for name in types if name not in with_gpus]):
            if len(alike) >= LEAST_TYPES:
                scores = self._scores(cell, alike, check_time)
                found |= {(name, zone): score for name in alike for zone, score in scores.items()}
        return found

    def _scores(self, cell: Cell, types: list[str], check_time: CheckTime) -> dict[str, int]:
        def call(**asked: Any) -> Any:
            check_time()
            return cell.ec2.get_spot_placement_scores(**asked)

        names = self._zones[cell.name]
        request = {"InstanceTypes": types, "TargetCapacity": TARGET_CAPACITY, "SingleAvailabilityZone": True}
        return {
            names[each["AvailabilityZoneId"]]: int(each["Score"])
            for page in pages(call, RegionNames=[cell.name], **request)
            for each in page["SpotPlacementScores"]
            if each.get("AvailabilityZoneId") in names
        }
