"""AWS's price list, as far as on-demand prices of plain Linux instances go."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from argosy.emulator.operations import Refusal

PAGE = 100  # products; the most that GetProducts returns


class PriceList:
    """prices: Region -> USD an hour by instance type."""

    def __init__(self, prices: Callable[[str], Mapping[str, float]]) -> None:
        self._prices = prices

    def get_products(
        self, *, ServiceCode: str, Filters: list[dict[str, str]], MaxResults: int = PAGE, NextToken: str = "0"
    ) -> dict[str, Any]:
        """Every type of the Region that a filter names; other filters have to be of TERM_MATCH and change nothing."""
        asked = {each["Field"]: each["Value"] for each in Filters if each["Type"] == "TERM_MATCH"}
        if ServiceCode != "AmazonEC2" or "regionCode" not in asked or len(asked) != len(Filters):
            refusal = Refusal("InvalidParameterException", "only AmazonEC2 with a regionCode is modelled")
            raise refusal.as_client_error("GetProducts")
        found = sorted(self._prices(asked["regionCode"]).items())
        first, last = int(NextToken), int(NextToken) + min(MaxResults, PAGE)
        more = {"NextToken": str(last)} if last < len(found) else {}
        return {"FormatVersion": "aws_v1", "PriceList": [_product(*each, asked) for each in found[first:last]], **more}


def _product(name: str, usd: float, attributes: Mapping[str, str]) -> str:
    sku = f"SKU{name.upper()}"
    rate = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd:.10f}"}, "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7"}
    term = {"priceDimensions": {rate["rateCode"]: rate}, "sku": sku, "offerTermCode": "JRTCKXETXF"}
    product = {"productFamily": "Compute Instance", "attributes": {**attributes, "instanceType": name}, "sku": sku}
    terms = {"OnDemand": {f"{sku}.JRTCKXETXF": term}}
    return json.dumps({"product": product, "serviceCode": "AmazonEC2", "terms": terms})
