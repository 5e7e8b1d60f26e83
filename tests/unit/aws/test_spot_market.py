"""Spot prices and placement scores as EC2 tells them: cached, merged, and never the reason for a failure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.aws.account_rates import FRESH_S, HOURS, INTERRUPTIONS, AccountRates
from argosy.aws.placement_scores import SCORES_FRESH_S, PlacementScores
from argosy.aws.spot_prices import PRICES_FRESH_S, TRY_AGAIN_S, SpotPrices
from argosy.model.pools import SpotRecord
from tests.builders import CELL, NOW
from tests.fakes.aws import Clock, ScriptedClient, cell, refusal

A, B = ("c5.xlarge", "us-east-1a"), ("c5.xlarge", "us-east-1b")
TYPES = ["c5.large", "c5.xlarge", "c5.2xlarge", "g4dn.xlarge"]


def nothing() -> None:
    """There is always time."""


def page(*entries: tuple[str, str, Any], token: str = "") -> dict[str, Any]:
    rows = [
        {
            "InstanceType": name,
            "AvailabilityZone": zone,
            "SpotPrice": price,
            "Timestamp": datetime.fromtimestamp(NOW, UTC),
        }
        for name, zone, price in entries
    ]
    return {"SpotPriceHistory": rows, **({"NextToken": token} if token else {})}


def asked(source: SpotPrices | PlacementScores, ec2: Any, now: float, check_time: Callable[[], None] = nothing) -> Any:
    return source.of(cell(Clock(), ec2=ec2), TYPES, now, check_time)


def test_prices_are_asked_for_once_in_five_minutes_with_the_time_they_were_asked_for() -> None:
    ec2 = ScriptedClient("ec2", describe_spot_price_history=[page((*A, "0.05")), page((*A, "0.06"))])
    prices = SpotPrices()
    assert asked(prices, ec2, NOW) == {A: (0.05, NOW)}
    assert asked(prices, ec2, NOW + PRICES_FRESH_S - 1) == {A: (0.05, NOW)}
    assert asked(prices, ec2, NOW + PRICES_FRESH_S) == {A: (0.06, NOW + PRICES_FRESH_S)}


def test_a_pool_that_ec2_says_nothing_about_keeps_its_price_and_its_time() -> None:
    ec2 = ScriptedClient("ec2", describe_spot_price_history=[page((*A, "0.05"), (*B, "0.07")), page((*A, "0.06"))])
    prices = SpotPrices()
    asked(prices, ec2, NOW)
    assert asked(prices, ec2, NOW + 400) == {A: (0.06, NOW + 400), B: (0.07, NOW)}


@pytest.mark.parametrize("quoted", ["0", "0.0", "-0.05", "nan", "inf", "", None])
def test_an_invalid_price_is_ignored(quoted: str | None) -> None:
    ec2 = ScriptedClient("ec2", describe_spot_price_history=page((*A, quoted), (*B, "0.07")))
    assert asked(SpotPrices(), ec2, NOW) == {B: (0.07, NOW)}


def test_when_ec2_refuses_the_prices_of_before_stay_and_it_is_asked_again_soon() -> None:
    refused = refusal("UnauthorizedOperation", "no")
    ec2 = ScriptedClient("ec2", describe_spot_price_history=[page((*A, "0.05")), refused, page((*A, "0.06"))])
    prices = SpotPrices()
    asked(prices, ec2, NOW)
    later = NOW + PRICES_FRESH_S
    assert asked(prices, ec2, later) == asked(prices, ec2, later + TRY_AGAIN_S - 1) == {A: (0.05, NOW)}
    assert asked(prices, ec2, later + TRY_AGAIN_S) == {A: (0.06, later + TRY_AGAIN_S)}


def test_a_listing_that_has_no_time_left_breaks_off_before_the_next_page() -> None:
    ec2 = ScriptedClient("ec2", describe_spot_price_history=[page((*A, "0.05"), token="more")])
    left = [None]

    def check_time() -> None:
        if not left:
            raise TimeoutError
        left.pop()

    with pytest.raises(TimeoutError):
        asked(SpotPrices(), ec2, NOW, check_time)
    assert len(ec2.calls) == 1


ZONES = {
    "AvailabilityZones": [
        {"ZoneId": "use1-az4", "ZoneName": "us-east-1a"},
        {"ZoneId": "use1-az1", "ZoneName": "us-east-1b"},
    ]
}


def scored(*rows: tuple[str, int]) -> dict[str, Any]:
    return {"SpotPlacementScores": [{"Region": CELL, "AvailabilityZoneId": zone, "Score": n} for zone, n in rows]}


def test_scores_are_asked_for_by_class_with_the_same_request_and_read_by_this_accounts_zone_names() -> None:
    ec2 = ScriptedClient(
        "ec2",
        describe_availability_zones=ZONES,
        get_spot_placement_scores=scored(("use1-az4", 9), ("use1-az1", 2), ("use1-az9", 5)),
    )
    scores = PlacementScores()
    found = asked(scores, ec2, NOW)
    assert found[A] == 9
    assert found[B] == 2
    assert ("g4dn.xlarge", "us-east-1a") not in found  # one type alone always scores low: it is not asked about
    assert asked(scores, ec2, NOW + SCORES_FRESH_S - 1) is found
    asked(scores, ec2, NOW + SCORES_FRESH_S)
    first, second = ec2.requests("get_spot_placement_scores")
    assert first == second
    assert first["InstanceTypes"] == ["c5.2xlarge", "c5.large", "c5.xlarge"]
    assert len(ec2.requests("describe_availability_zones")) == 1


def test_when_ec2_gives_no_scores_the_old_ones_stay_and_the_next_request_waits_an_hour() -> None:
    ec2 = ScriptedClient(
        "ec2",
        describe_availability_zones=ZONES,
        get_spot_placement_scores=[scored(("use1-az4", 9)), refusal("MaxConfigLimitExceeded", "enough for today")],
    )
    scores = PlacementScores()
    before = asked(scores, ec2, NOW)
    assert asked(scores, ec2, NOW + SCORES_FRESH_S) == asked(scores, ec2, NOW + SCORES_FRESH_S + 9) == before


def test_without_an_answer_there_are_no_scores() -> None:
    ec2 = ScriptedClient("ec2", describe_availability_zones=refusal("UnauthorizedOperation", "no"))
    assert asked(PlacementScores(), ec2, NOW) == {}
    assert len(ec2.calls) == 1


MORE = {"NextToken": "more"}


def counted(*rows: tuple[str, str, str, float]) -> dict[str, Any]:
    """Rows of type, zone id, metric and value, as EC2 Capacity Manager answers for one day."""
    return {
        "MetricDataResults": [
            {
                "Dimension": {"InstanceType": name, "AvailabilityZoneId": zone},
                "MetricValues": [{"Metric": m, "Value": v}],
            }
            for name, zone, m, v in rows
        ]
    }


def test_the_accounts_interruptions_are_summed_over_two_weeks_and_asked_for_once_a_day() -> None:
    ec2 = ScriptedClient(
        "ec2",
        describe_availability_zones=ZONES,
        get_capacity_manager_metric_data=[
            {**counted(("c5.large", "use1-az4", HOURS, 30.0), ("c5.large", "use1-az4", INTERRUPTIONS, 2.0)), **MORE},
            counted(("c5.large", "use1-az4", HOURS, 20.0), ("c5.large", "use1-az9", HOURS, 9.0)),
            refusal("UnauthorizedOperation", "no"),
        ],
    )
    rates, here = AccountRates(), cell(Clock(), ec2=ec2)
    found = rates.of(here, NOW, nothing)
    assert found == {("c5.large", "us-east-1a"): SpotRecord(2.0, 50.0)}
    assert rates.of(here, NOW + FRESH_S - 1.0, nothing) == found
    assert rates.of(here, NOW + FRESH_S, nothing) == found  # the last known ones
    assert len(ec2.requests("get_capacity_manager_metric_data")) == 3
