"""Caps on money that no price allows are refused at once; a small budget is warned of and accepted all the same."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.caps import Market, budget_warnings, hourly_faults
from argosy.catalogue.lookup import load_catalogue
from argosy.model import inbox
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.purchases import PurchaseMode
from argosy.model.run_terms import RunTerms
from tests.fakes.api import SPEC, Desk, error_of

SHAPE = {"vcpus": 1, "memory": 1024, "gpus": 0}


def said(pools: dict[str, float], resources: dict[str, Any] = SHAPE, **capacity: Any) -> list[str]:
    """pools: spot price by type."""
    known = [Pool("us-east-1", name, "us-east-1a", name, spot_usd_per_hour=usd) for name, usd in pools.items()]
    form = {"name": "digits", "resources": resources, "capacity": capacity}
    market = Market(known, ["c5.xlarge", "g4dn.xlarge"], load_catalogue(), Policy())
    return [*(fault.text() for fault in hourly_faults(form, market)), *budget_warnings(form, market)]


def test_a_budget_below_an_hour_of_the_cheapest_instance_is_said() -> None:
    assert said({"c5.xlarge": 0.07, "c5.2xlarge": 0.13}, budgetUsd=0.05) == [
        "capacity.budgetUsd: $0.05 is less than an hour of the cheapest instance that could take a task"
        " (c5.xlarge, about $0.0816 an hour): what fits is bought"
    ]
    assert len(said({"c5.xlarge": 0.07}, budgetUsd=0.08)) == 1  # its disk and its address cost $0.0116 an hour
    assert said({"c5.xlarge": 0.07}, budgetUsd=0.082) == []


def test_an_hourly_cap_below_every_instance_is_said() -> None:
    assert said({"c5.xlarge": 0.0712}, maxHourlyCost=0.07) == [
        "capacity.maxHourlyCost: $0.07 an hour is below the cheapest instance that could take a task"
        " (c5.xlarge, about $0.0828 an hour): nothing could be bought"
    ]
    assert said({"c5.xlarge": 0.07}, maxHourlyCost=0.09) == []
    assert said({}, {**SHAPE, "gpus": 8}, maxHourlyCost=0.07) == []  # nothing fits: admission says so


def test_only_what_has_room_for_a_task_and_may_be_bought_counts() -> None:
    gpu = {"vcpus": 1, "memory": 1024, "gpus": 1}
    [sentence] = said({"c5.xlarge": 0.07, "g4dn.xlarge": 0.2}, gpu, budgetUsd=0.1)
    assert "g4dn.xlarge, about $0.2214" in sentence
    [sentence] = said({"c5.xlarge": 0.07}, purchase="on-demand", budgetUsd=0.1)
    assert "c5.xlarge, about $0.1816" in sentence
    assert said({"c5.xlarge": 0.07}, gpu, budgetUsd=0.01) == []  # nothing fits: admission says so
    [sentence] = said({"c5.xlarge": 0.07}, purchase="spot-then-on-demand", budgetUsd=0.05)
    assert "about $0.0816" in sentence


def test_before_the_first_look_at_the_market_usual_prices_count() -> None:
    [sentence] = said({}, budgetUsd=0.001)
    assert "c5.xlarge" in sentence


def test_nothing_is_said_of_a_task_definition() -> None:
    form = {"name": "digits", "taskDefinition": "mine:3", "capacity": {"budgetUsd": 0.0001, "maxHourlyCost": 0.0001}}
    market = Market([], ["c5.xlarge"], load_catalogue(), Policy())
    assert (hourly_faults(form, market), budget_warnings(form, market)) == ([], [])


@pytest.mark.parametrize(("capacity", "found"), [({}, False), ({"budgetUsd": 1}, True), ({"maxHourlyCost": 1}, True)])
def test_a_run_has_caps_when_it_has_either(capacity: dict[str, float], found: bool) -> None:
    assert RunTerms.of({"name": "digits", "capacity": capacity}).has_caps is found


def test_what_an_attempt_costs_counts_its_boot_and_its_stop() -> None:
    pool = Pool("us-east-1", "c5.xlarge", "us-east-1a", "f", spot_usd_per_hour=0.36)
    market = Market([pool], [], load_catalogue(), Policy(boot_s=100, wind_down_s=60))
    needs = RunTerms.of({"name": "digits", "resources": SHAPE}).needs
    usd_per_hour, _ = market.cheapest(needs, PurchaseMode.SPOT) or (0.0, "")
    assert 0.36 < usd_per_hour < 0.38  # its disk and its address are in it
    assert market.attempt_usd(needs, PurchaseMode.SPOT, 40) == pytest.approx(usd_per_hour * 200 / 3600)
    assert Market([], [], load_catalogue(), Policy()).attempt_usd(needs, PurchaseMode.SPOT, 40) == 0


def test_submit_and_validate_refuse_an_hourly_cap_that_nothing_is_below() -> None:
    desk = Desk()
    spec = {**SPEC, "capacity": {"maxHourlyCost": 0.01}}
    for action in ("SubmitRun", "ValidateRun"):
        error = error_of(desk.ask(action, spec=spec))
        assert (error["code"], [each["path"] for each in error["fieldList"]]) == (
            "ValidationException",
            ["capacity.maxHourlyCost"],
        )
        assert "$0.01 an hour is below the cheapest instance that could take a task" in error["fieldList"][0]["message"]
    assert not desk.store.read_partition(inbox.INBOX)
    assert desk.submit(capacity={"maxHourlyCost": 100})["created"] is True
