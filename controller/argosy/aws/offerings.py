"""Which instance types EC2 still offers in each zone: DescribeInstanceTypeOfferings, every six hours for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.aws.cell import Cell, CheckTime
from argosy.aws.kept_answers import KeptAnswers
from argosy.catalogue.offerings import offered_by_zone

OFFERS_FRESH_S = 6 * 3_600.0
TRY_AGAIN_S = 600.0  # after EC2 did not answer, or refused

ZoneOffers = Mapping[str, set[str]]  # zone -> types


class Offerings:
    """The last answer for each cell. The settings and the catalogue may be as old as the deployment."""

    def __init__(self) -> None:
        self._kept = KeptAnswers[ZoneOffers]("list of offered types", OFFERS_FRESH_S, TRY_AGAIN_S)

    def of(self, cell: Cell, types: Iterable[str], now: float, check_time: CheckTime) -> ZoneOffers:
        """Zone -> those of `types` that it offers; empty as long as nothing is known, for an answer without any type
        is not believed. Raises what `check_time` raises, and none of AWS_ERRORS."""
        if not (wanted := sorted(types)):
            return {}

        def describe(**request: Any) -> Any:
            check_time()
            return cell.ec2.describe_instance_type_offerings(**request)

        return self._kept.of(cell, now, lambda: offered_by_zone(describe, wanted), {})
