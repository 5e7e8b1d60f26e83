"""A submitter who gives a run too little money is warned at once, and the run is accepted all the same."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.warnings import money_warnings
from argosy.catalogue.lookup import load_catalogue
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.run_terms import RunTerms

SHAPE = {"vcpus": 1, "memory": 1024, "gpus": 0}


def said(pools: dict[str, float], resources: dict[str, Any] = SHAPE, **capacity: Any) -> list[str]:
    """pools: spot price by type."""
    known = [Pool("us-east-1", name, "us-east-1a", name, spot_usd_per_hour=usd) for name, usd in pools.items()]
    form = {"name": "digits", "resources": resources, "capacity": capacity}
    return money_warnings(form, known, ["c5.xlarge", "g4dn.xlarge"], load_catalogue(), Policy())


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
        " (c5.xlarge, about $0.0828 an hour): nothing can be bought"
    ]


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
    form = {"name": "digits", "taskDefinition": "mine:3", "capacity": {"budgetUsd": 0.0001}}
    assert money_warnings(form, [], ["c5.xlarge"], load_catalogue(), Policy()) == []


@pytest.mark.parametrize(("capacity", "found"), [({}, False), ({"budgetUsd": 1}, True), ({"maxHourlyCost": 1}, True)])
def test_a_run_has_caps_when_it_has_either(capacity: dict[str, float], found: bool) -> None:
    assert RunTerms.of({"name": "digits", "capacity": capacity}).has_caps is found
