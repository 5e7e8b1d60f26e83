"""EC2's own estimate of spot capacity in a zone: GetSpotPlacementScores, once an hour.

A score is about a list of types, never about one. Types with and without GPUs are queried separately, always with
the same request, because AWS limits how many different ones an account may make in a day. A score moves a pool's
effective price by a tenth at most (market/risk.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.aws.cell import Cell, CheckTime, pages
from argosy.aws.kept_answers import KeptAnswers
from argosy.catalogue.lookup import load_catalogue

SCORES_FRESH_S = 3_600.0
PoolScores = dict[tuple[str, str], int]  # (type, zone) -> 1 to 10
TARGET_CAPACITY = 20  # instances: what a run of moderate size orders
LEAST_TYPES = 3  # with fewer the score is always low (aws.md 10.3)


class PlacementScores:
    """EC2's scores; the last known ones when it does not answer."""

    def __init__(self) -> None:
        self._kept = KeptAnswers[PoolScores]("placement scores", SCORES_FRESH_S, SCORES_FRESH_S)
        self._zones: dict[str, dict[str, str]] = {}  # by cell: zone id -> the account's name for it

    def of(self, cell: Cell, types: Iterable[str], now: float, check_time: CheckTime) -> PoolScores:
        """As far as there are scores. Raises what `check_time` raises."""
        wanted = sorted(types)
        return self._kept.of(cell, now, lambda: self._ask(cell, wanted, check_time), {}) if wanted else {}

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
