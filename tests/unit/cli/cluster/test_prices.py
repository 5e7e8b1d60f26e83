"""`prices`: the price in force per pool, cheapest unit first, its week, and what the controller makes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.client.price_history import BLOCKS, SPARK_CELLS, PriceSeries, sparkline
from tests.fakes.cli import NOW, Pages, World, golden, refusal

DAY = 86_400


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
    ("c5.large", "us-east-1a", "0.0900", 3 * DAY),
    ("c5.large", "us-east-1a", "0.0700", 6 * DAY),
    ("c5.large", "us-east-1b", "0.0321", 2 * DAY),
    ("c5.large", "us-east-1b", "0.0321", 8 * DAY),
    ("c5.xlarge", "us-east-1a", "0.0700", 60),
    ("g4dn.xlarge", "us-east-1a", "0.2100", 60),
)


def fleet(instance_type: str = "c5.large", zone: str = "us-east-1a", **changes: Any) -> dict[str, Any]:
    return {
        "instanceType": instance_type,
        "availabilityZone": zone,
        "cell": "us-east-1",
        "spotTarget": 0,
        "onDemandTarget": 0,
        "pricedAt": "2026-11-21T06:25:00Z",
        "priceIsStale": False,
        "interruptionsPerHour": 0.00003,
        "coolingOffUntil": None,
        "coolingOffAfter": None,
        "unsettledUntil": None,
        "noOfferBecause": None,
        **changes,
    }


def world(market: Market, *fleets: dict[str, Any]) -> World:
    return World(others={"ec2": market}).answers("DescribeCluster", {"fleets": list(fleets)})


def test_prices_table() -> None:
    market = Market(*ROWS)
    fleets = (
        fleet(coolingOffUntil="2026-11-21T06:30:33Z", coolingOffAfter="no capacity", noOfferBecause="cooling off"),
        fleet(zone="us-east-1b", interruptionsPerHour=0.244, unsettledUntil="2026-11-21T06:29:00Z"),
        fleet("c5.xlarge", noOfferBecause="$0.07 an hour is above priceCaps.perInstanceHour ($0.05)"),
        fleet("g4dn.xlarge", zone="us-east-1b"),
        fleet("g4dn.xlarge", cell="eu-west-1", coolingOffUntil="2026-11-21T06:30:33Z"),
    )
    result = world(market, *fleets).argosy("prices")
    assert result.exit_code == 0, result.output
    golden("prices", result.stdout)
    assert market.requests[0]["ProductDescriptions"] == ["Linux/UNIX"]
    assert market.requests[0]["StartTime"] == datetime.fromtimestamp(NOW - 7 * DAY, UTC)


def test_the_json_has_the_history_and_all_units() -> None:
    document = world(Market(*ROWS)).document("prices", "--type", "c5.large")
    first, second = document["prices"]
    assert (first["availabilityZone"], first["unchangedForSeconds"]) == ("us-east-1b", 8 * DAY)
    assert (second["spotUsdPerVcpuHour"], second["spotUsdPerGpuHour"]) == (0.02, None)
    assert [each["usdPerHour"] for each in second["history"]] == [0.07, 0.09, 0.04]
    assert second["interruptionBand"] == "<5%"
    assert len(second["sparkline"]) == SPARK_CELLS


@pytest.mark.parametrize(
    ("listed", "source"),
    [
        ((), "on-demand prices of 2026-07-20; monthly"),
        (
            ("us-east-1a",),
            "on-demand prices of 1 pool from AWS's price list, read daily, others of 2026-07-20; monthly",
        ),
        (("us-east-1a", "us-east-1b"), "on-demand prices of 2 pools from AWS's price list, read daily; monthly"),
    ],
)
def test_on_demand_prices_are_the_controllers_with_their_source(listed: tuple[str, ...], source: str) -> None:
    fleets = [fleet(zone=zone, onDemandUsdPerHour=0.1, onDemandFrom="priceList") for zone in listed]
    document = world(Market(*ROWS), *fleets).document("prices", "--type", "c5.large")
    assert document["notes"][0].startswith(source)
    prices = {row["availabilityZone"]: (row["onDemandUsdPerHour"], row["saving"]) for row in document["prices"]}
    spot = {"us-east-1a": 0.04, "us-east-1b": 0.0321}
    for zone, found in prices.items():
        usd = 0.1 if zone in listed else 0.085
        assert found == pytest.approx((usd, 1 - spot[zone] / usd))


def test_types_that_the_deployment_does_not_have_are_listed_only_when_they_are_named() -> None:
    market, has = Market(*ROWS), fleet("c5.xlarge")
    listed = world(market, has).document("prices")["prices"]
    assert [row["instanceType"] for row in listed] == ["c5.xlarge"]
    assert market.requests[0]["InstanceTypes"] == ["c5.xlarge"]
    named = world(market, has).document("prices", "--type", "*.large")["prices"]
    assert {row["instanceType"] for row in named} == {"c5.large"}


def test_a_glob_chooses_types() -> None:
    document = world(Market(*ROWS)).document("prices", "--type", "c5.x*")
    assert [row["instanceType"] for row in document["prices"]] == ["c5.xlarge"]
    assert document["prices"][0]["spotUsdPerUnitHour"] == 0.07 / 4


def test_more_types_than_one_call_takes_are_asked_in_several() -> None:
    market = Market()
    world(market).argosy("prices", "--type", "*")
    asked = [len(request["InstanceTypes"]) for request in market.requests]
    assert len(asked) > 1
    assert max(asked) <= 100


def test_the_limit_says_how_many_rows_are_left() -> None:
    result = world(Market(*ROWS)).argosy("prices", "--limit", "1")
    assert "--limit 4 shows 3 more rows" in result.stdout


def test_no_type_matches() -> None:
    result = world(Market()).argosy("prices", "--type", "z9.*")
    assert result.exit_code == 2
    assert "known families: c5, " in result.stderr


def test_a_region_without_prices_says_so() -> None:
    result = world(Market()).argosy("prices")
    assert result.stdout == "AWS quotes no spot price for these types in us-east-1, so they are not offered there.\n"


def test_what_is_no_price_is_left_out_and_counted() -> None:
    market = Market(*ROWS, ("c5.large", "us-east-1c", "0.0", 60), ("c5.large", "us-east-1c", "nan", 60))
    result = world(market).argosy("prices", "--type", "c5.large")
    assert "us-east-1c" not in result.stdout
    assert "2 entries of EC2's price history are not prices" in result.stdout


def test_prices_that_are_too_old_are_reported() -> None:
    old = fleet(pricedAt="2026-11-18T06:00:00Z", priceIsStale=True)
    result = world(Market(*ROWS), old, fleet(zone="us-east-1b")).argosy("prices")
    assert "prices of 1 of the controller's 2 pools are too old (since 2026-11-18T06:00:00Z)" in result.stdout
    assert "it assumes their on-demand prices" in result.stdout


def test_without_a_deployment_prices_are_still_shown() -> None:
    here = World(others={"ec2": Market(*ROWS)})
    here.functions.error = "boom"
    result = here.argosy("prices")
    assert result.exit_code == 0
    assert (
        "cool-offs are not shown, because no deployment answers: The function argosy-api failed: boom" in result.stdout
    )


def test_without_rights_to_the_deployment_prices_are_still_shown() -> None:
    here = World(others={"ec2": Market(*ROWS)}).answers("DescribeCluster", refusal("AccessDeniedException", "not you"))
    result = here.argosy("prices")
    assert result.exit_code == 0
    assert "cool-offs are not shown" in result.stdout


def test_a_fault_of_our_own_is_not_hidden() -> None:
    here = World(others={"ec2": Market(*ROWS)}).answers("DescribeCluster", ZeroDivisionError("ours"))
    assert isinstance(here.argosy("prices").exception, ZeroDivisionError)


def week(*prices: tuple[float, float]) -> PriceSeries:
    """(days ago, price), oldest first."""
    return PriceSeries([NOW - days * DAY for days, _ in prices], [price for _, price in prices])


@pytest.mark.parametrize(
    ("series", "blocks"),
    [
        (week((8, 0.1)), "▁" * 14),
        (week((8, 0.1), (3.5, 0.1005)), "▁" * 14),  # less than one per cent
        (week((8, 0.1), (3.5, 0.2)), "▁▁▁▁▁▁▁███████"),
        (week((2, 0.1), (0, 0.2)), "▁▁▁▁▁▁▁▁▁▁▁▁▁█"),  # young, and the last block is the price now
        (week(*((7 - n / 2, 1 + n / 13) for n in range(14))), "▁▁▂▂▃▄▄▅▅▆▇▇██"),
    ],
)
def test_the_week_is_drawn_in_eight_levels_from_lowest_to_highest(series: PriceSeries, blocks: str) -> None:
    assert sparkline(series, NOW) == blocks
    assert set(blocks) <= set(BLOCKS)
