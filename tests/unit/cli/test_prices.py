"""`prices`: the price in force per pool, cheapest unit first, beside on-demand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.unit.cli.fakes import NOW, Pages, World, golden


class Market:
    """EC2's spot price history."""

    def __init__(self, *rows: tuple[str, str, str, int]) -> None:
        self._rows = rows
        self.requests: list[dict[str, Any]] = []
        self.meta = type("Meta", (), {"region_name": "us-east-1"})

    def get_paginator(self, operation: str) -> Pages:
        assert operation == "describe_spot_price_history"
        return Pages(self._history)

    def _history(self, **request: Any) -> list[dict[str, Any]]:
        self.requests.append(request)
        return [
            {
                "SpotPriceHistory": [
                    {
                        "InstanceType": name,
                        "AvailabilityZone": zone,
                        "SpotPrice": price,
                        "Timestamp": datetime.fromtimestamp(NOW - age_s, UTC),
                    }
                    for name, zone, price, age_s in self._rows
                    if name in request["InstanceTypes"]
                ]
            }
        ]


ROWS = (
    ("c5.large", "us-east-1a", "0.0400", 600),
    ("c5.large", "us-east-1a", "0.0900", 90_000),
    ("c5.large", "us-east-1b", "0.0321", 60),
    ("c5.xlarge", "us-east-1a", "0.0700", 60),
    ("g4dn.xlarge", "us-east-1a", "0.2100", 60),
)


def test_prices_table() -> None:
    market = Market(*ROWS)
    result = World(others={"ec2": market}).argosy("prices")
    assert result.exit_code == 0, result.output
    golden("prices", result.stdout)
    assert market.requests[0]["ProductDescriptions"] == ["Linux/UNIX"]
    assert market.requests[0]["StartTime"] == datetime.fromtimestamp(NOW, UTC)


def test_a_glob_chooses_types() -> None:
    document = World(others={"ec2": Market(*ROWS)}).document("prices", "--type", "c5.x*")
    assert [row["instanceType"] for row in document["prices"]] == ["c5.xlarge"]
    assert document["prices"][0]["spotUsdPerUnitHour"] == 0.07 / 4


def test_more_types_than_one_call_takes_are_asked_in_several() -> None:
    market = Market()
    World(others={"ec2": market}).argosy("prices", "--type", "*")
    asked = [len(request["InstanceTypes"]) for request in market.requests]
    assert len(asked) > 1
    assert max(asked) <= 100


def test_the_limit_says_how_many_rows_are_left() -> None:
    result = World(others={"ec2": Market(*ROWS)}).argosy("prices", "--limit", "1")
    assert "3 more rows with --limit 4" in result.stdout


def test_no_type_matches() -> None:
    result = World(others={"ec2": Market()}).argosy("prices", "--type", "z9.*")
    assert result.exit_code == 2
    assert "families there are: c5, " in result.stderr


def test_a_region_without_prices_says_so() -> None:
    result = World(others={"ec2": Market()}).argosy("prices")
    assert result.stdout == "AWS quotes no spot price for these types in us-east-1: they are not offered there.\n"
