"""Which instance types EC2 still offers in each zone: DescribeInstanceTypeOfferings, every six hours for each cell."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.aws.cell import Cell, CheckTime
from argosy.aws.errors import AWS_ERRORS, classify
from argosy.catalogue.offerings import offered_by_zone

OFFERS_FRESH_S = 6 * 3_600.0
TRY_AGAIN_S = 600.0  # after EC2 did not answer, or refused

log = logging.getLogger(__name__)


class Offerings:
    """The last answer for each cell. The settings and the catalogue may be as old as the deployment."""

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, set[str]]] = {}
        self._next: dict[str, float] = {}

    def of(self, cell: Cell, types: Iterable[str], now: float, check_time: CheckTime) -> Mapping[str, set[str]]:
        """Zone -> those of `types` that it offers; empty as long as nothing is known, for an answer without any type
        is not believed. Raises what `check_time` raises, and none of AWS_ERRORS."""
        wanted = sorted(types)
        if not wanted or now < self._next.get(cell.name, 0.0):
            return self._known.get(cell.name, {})

        def describe(**request: Any) -> Any:
            check_time()
            return cell.ec2.describe_instance_type_offerings(**request)

        self._next[cell.name] = now + TRY_AGAIN_S
        try:
            found = offered_by_zone(describe, wanted)
        except AWS_ERRORS as error:
            log.warning("no list of the types that %s offers: %s", cell.name, classify(error).text)
            return self._known.get(cell.name, {})
        self._next[cell.name] = now + OFFERS_FRESH_S
        self._known[cell.name] = found or self._known.get(cell.name, {})
        return self._known[cell.name]
