"""On-demand prices by AWS's price list, read once a day for each cell.

The catalogue's prices are as old as the checkout, and outside us-east-1 years older. The list is free of charge, and
few Regions serve it. The plain Linux instances of a Region fill about ten pages of 100.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from argosy.aws.cell import Cell, CheckTime, pages
from argosy.aws.kept_answers import KeptAnswers

PRICE_LIST_REGION = "us-east-1"  # one of the few Regions that serve the price list
HOURS = ("Hrs", "Hours")
FRESH_S, TRY_AGAIN_S = 86_400.0, 3_600.0
# Linux, shared tenancy, nothing preinstalled, not part of a reservation: the price of a plain on-demand instance.
_PLAIN = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}


class OnDemandPrices:
    """The last list of each cell; an empty list is ignored. pricing: makes the boto3 client, at the first use."""

    def __init__(self, pricing: Callable[[], Any]) -> None:
        self._pricing = pricing
        self._kept = KeptAnswers[Mapping[str, float]]("on-demand prices", FRESH_S, TRY_AGAIN_S)

    def of(self, cell: Cell, now: float, check_time: CheckTime) -> Mapping[str, float]:
        """USD an hour by type; empty as long as nothing is known. Raises what `check_time` raises, and none of
        AWS_ERRORS."""

        def call(**request: Any) -> Any:
            check_time()
            return self._pricing().get_products(**request)

        def ask() -> Mapping[str, float]:
            asked = pages(call, ServiceCode="AmazonEC2", Filters=filters_of(cell.name))
            return by_type(text for page in asked for text in page["PriceList"])

        return self._kept.of(cell, now, ask, {})


def filters_of(region: str) -> list[dict[str, str]]:
    """Of GetProducts, for a Region's plain Linux instances."""
    wanted = {**_PLAIN, "regionCode": region}
    return [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]


def by_type(products: Iterable[str]) -> dict[str, float]:
    """USD an hour by instance type. products: as GetProducts has them; one that cannot be read is left out."""
    found: dict[str, float] = {}
    for text in products:
        try:
            product = json.loads(text)
            name, prices = product["product"]["attributes"]["instanceType"], [*usd_of(product, HOURS)]
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
        if prices:
            found[name] = max(prices)
    return found


def usd_of(product: Mapping[str, Any], units: Collection[str]) -> Iterator[float]:
    """Its on-demand prices for one of these units, in US dollars."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            price = float(dimension.get("pricePerUnit", {}).get("USD", 0))
            if dimension.get("unit") in units and 0 < price < float("inf"):
                yield price
