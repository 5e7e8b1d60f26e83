"""How likely does EC2 think it is that spot capacity can be had in a zone? GetSpotPlacementScores, once an hour.

Advice about a list of types, never about one: types with GPUs and types without are asked about apart, always with the
same request, because AWS limits how many new ones an account may make in a day. A score moves a pool's effective price
by a tenth at most (market/risk.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from argosy.aws.cell import Cell, pages
from argosy.aws.errors import AWS_ERRORS, classify
from argosy.catalogue.lookup import load_catalogue

SCORES_FRESH_S = 3_600.0
TARGET_CAPACITY = 20  # instances: what a run of some size orders
LEAST_TYPES = 3  # with fewer the score is always low (aws.md 10.3)
GoOn = Callable[[], None]

log = logging.getLogger(__name__)


class Scores(Protocol):
    """Where placement scores come from."""

    def of(self, cell: Cell, types: Iterable[str], now: float, go_on: GoOn) -> dict[tuple[str, str], int] | None:
        """1 to 10 by (type, zone), as far as there are scores; None when nobody asks for any. Raises what `go_on`
        raises."""


class NoScores:
    """The setting placementScores is off."""

    def of(self, cell: Cell, types: Iterable[str], now: float, go_on: GoOn) -> dict[tuple[str, str], int] | None:
        return None


class PlacementScores:
    """EC2's own, those of before when it does not answer."""

    def __init__(self) -> None:
        self._known: dict[str, dict[tuple[str, str], int]] = {}
        self._next: dict[str, float] = {}
        self._zones: dict[str, dict[str, str]] = {}  # by cell: zone id -> the account's own name for it

    def of(self, cell: Cell, types: Iterable[str], now: float, go_on: GoOn) -> dict[tuple[str, str], int] | None:
        wanted = sorted(types)
        if wanted and now >= self._next.get(cell.name, 0.0):
            self._next[cell.name] = now + SCORES_FRESH_S
            try:
                self._known[cell.name] = self._ask(cell, wanted, go_on)
            except AWS_ERRORS as error:
                log.warning("no placement scores of %s: %s", cell.name, classify(error).text)
        return self._known.get(cell.name, {})

    def _ask(self, cell: Cell, types: list[str], go_on: GoOn) -> dict[tuple[str, str], int]:
        """Raises AWS_ERRORS, and what `go_on` raises."""
        if cell.name not in self._zones:
            go_on()
            zones = cell.ec2.describe_availability_zones()["AvailabilityZones"]
            self._zones[cell.name] = {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
        catalogue = load_catalogue()
        with_gpus = [name for name in types if name in catalogue and catalogue[name].gpus]
        found: dict[tuple[str, str], int] = {}
        for alike in (with_gpus, [name for name in types if name not in with_gpus]):
            if len(alike) >= LEAST_TYPES:
                scores = self._scores(cell, alike, go_on)
                found |= {(name, zone): score for name in alike for zone, score in scores.items()}
        return found

    def _scores(self, cell: Cell, types: list[str], go_on: GoOn) -> dict[str, int]:
        def call(**asked: Any) -> Any:
            go_on()
            return cell.ec2.get_spot_placement_scores(**asked)

        names = self._zones[cell.name]
        request = {"InstanceTypes": types, "TargetCapacity": TARGET_CAPACITY, "SingleAvailabilityZone": True}
        return {
            names[each["AvailabilityZoneId"]]: int(each["Score"])
            for page in pages(call, RegionNames=[cell.name], **request)
            for each in page["SpotPlacementScores"]
            if each.get("AvailabilityZoneId") in names
        }
