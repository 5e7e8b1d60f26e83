"""N3: on-demand prices come from AWS's price list while a deployment runs, and from the catalogue until then."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.api.cluster.views import fleet_view
from argosy.aws.on_demand_prices import FRESH_S, TRY_AGAIN_S, OnDemandPrices, by_type
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.price_list import PAGE, PriceList
from argosy.figures.market import market_page
from argosy.figures.numbers import money
from argosy.model.instances import Purchase
from argosy.model.stored import documents
from tests.builders import CELL, NOW, whole
from tests.fakes.aws import Clock, ScriptedClient, cell, refusal
from tests.fakes.cli import Pages, World
from tests.scenarios.controlled import Controlled

SHIPPED = load_catalogue()["c5.xlarge"].on_demand_usd_per_hour
NEW_USD = 0.31
AT = datetime.fromtimestamp(NOW, UTC)


def client(**prices: float) -> Any:
    """Of the emulated list; requests and replies have botocore's shapes."""
    return SimulatedClient(PriceList(lambda region: prices if region == CELL else {}), "pricing")


def fleets_of(cluster: Controlled) -> list[dict[str, Any]]:
    """As DescribeCluster shows them."""
    state = cluster.controllers[0].state
    assert state is not None
    return [fleet_view(pool, cluster.world.now, cluster.policy) for pool in state.pools.values()]


def prices_of(cluster: Controlled) -> set[float]:
    """On demand, of each fleet."""
    return {each["onDemandUsdPerHour"] for each in fleets_of(cluster)}


def listening(price_list: Any) -> Controlled:
    cluster = Controlled(zones=("us-east-1a",), work_s=900.0)
    cluster.price_list = price_list
    cluster.controllers = [cluster.controller()]
    cluster.submit(1, capacity={"purchase": "on-demand"})
    cluster.run_for(60)
    assert prices_of(cluster) == {SHIPPED}
    cluster.run_for(400)
    return cluster


def test_a_listed_price_counts_from_then_on_and_is_stored() -> None:
    cluster = listening(client(**{"c5.xlarge": NEW_USD}))
    assert prices_of(cluster) == {NEW_USD}
    cluster.submit(40, run_id="later-261121-062733-aaaa", capacity={"purchase": "on-demand"})
    cluster.run_for(120)
    state = cluster.controllers[0].state
    assert state is not None
    bought = [each for each in state.instances.values() if each.purchase is Purchase.ON_DEMAND]
    paid = sorted({each.price_usd_per_hour for each in bought})
    assert paid == pytest.approx([whole(SHIPPED), whole(NEW_USD)])
    cluster.controllers = [cluster.controller()]
    cluster.controllers[0].tick()
    assert prices_of(cluster) == {NEW_USD}


def test_users_see_the_controllers_price_and_where_it_comes_from() -> None:
    fleets = fleets_of(listening(client(**{"c5.xlarge": NEW_USD})))
    spot = [{"InstanceType": "c5.xlarge", "AvailabilityZone": "us-east-1a", "SpotPrice": "0.1", "Timestamp": AT}]
    ec2 = SimpleNamespace(
        meta=SimpleNamespace(region_name=CELL),
        get_paginator=lambda _: Pages(lambda **_: [{"SpotPriceHistory": spot}]),
    )
    told = World(others={"ec2": ec2}).answers("DescribeCluster", {"fleets": fleets}).document("prices")
    assert {row["onDemandUsdPerHour"] for row in told["prices"]} == {NEW_USD}
    assert "from AWS's price list" in told["notes"][0]
    page = market_page({"fleets": fleets, "cells": [CELL]}, {}, NOW)
    (verdicts,) = [each.table for each in page.figures if each.key == "verdicts"]
    assert verdicts is not None
    assert {row[2] for row in verdicts.rows} == {money(NEW_USD)}


@pytest.mark.parametrize(
    "price_list",
    [
        client(),
        client(**{"m5.large": 1.0}),
        ScriptedClient("pricing", get_products=refusal("AccessDeniedException")),
        ScriptedClient("pricing", get_products={"FormatVersion": "aws_v1", "PriceList": ["{", "[]", '{"product": 1}']}),
    ],
    ids=["empty", "without the type", "refused", "unreadable"],
)
def test_without_a_listed_price_the_shipped_one_stays(price_list: Any) -> None:
    cluster = listening(price_list)
    assert prices_of(cluster) == {SHIPPED}
    stored = documents.decode(cluster.store.items[documents.STATE, documents.POOLS])
    assert stored
    assert all("listed_usd_per_hour" not in each for each in stored)


def test_it_is_asked_once_a_day_page_by_page_and_an_hour_after_a_failure() -> None:
    names = {f"c5.{number}xlarge": 0.1 + number for number in range(2 * PAGE + 1)}
    listed = client(**names)
    answers: list[Any] = [refusal("ThrottlingException")]
    asked: list[dict[str, Any]] = []

    class Counting:
        def get_products(self, **request: Any) -> Any:
            asked.append(request)
            if answers:
                raise answers.pop()
            return listed.get_products(**request)

    prices, home = OnDemandPrices(Counting), cell(Clock())
    assert prices.of(home, NOW, lambda: None) == {}
    assert prices.of(home, NOW + TRY_AGAIN_S - 1, lambda: None) == {}
    assert len(asked) == 1
    assert prices.of(home, NOW + TRY_AGAIN_S, lambda: None) == names
    assert prices.of(home, NOW + TRY_AGAIN_S + FRESH_S - 1, lambda: None) == names
    assert len(asked) == 4
    assert {"Type": "TERM_MATCH", "Field": "regionCode", "Value": CELL} in asked[-1]["Filters"]


def test_of_a_product_the_hourly_price_in_dollars_counts() -> None:
    def product(**rate: Any) -> str:
        terms = {"OnDemand": {"a": {"priceDimensions": {"b": rate}}}}
        return json.dumps({"product": {"attributes": {"instanceType": "c5.large"}}, "terms": terms})

    assert by_type([product(unit="Hrs", pricePerUnit={"USD": "0.0850000000"})]) == {"c5.large": 0.085}
    for rate in (
        {"unit": "Hrs", "pricePerUnit": {"USD": "0.0000000000"}},
        {"unit": "Hrs", "pricePerUnit": {"USD": "inf"}},
        {"unit": "Hrs", "pricePerUnit": {"CNY": "1.0"}},
        {"unit": "Quantity", "pricePerUnit": {"USD": "1.0"}},
    ):
        assert by_type([product(**rate)]) == {}
