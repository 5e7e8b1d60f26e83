"""Caps on money that no price allows are refused at once; a small budget gets a warning and is accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.api.admission.spending_caps import budget_warnings, hourly_faults, market_of
from argosy.model import inbox
from argosy.model.policy import Policy, VcpuQuota
from argosy.model.pools import Pool
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.spec.terms import terms_of_form
from tests.builders import NOW
from tests.fakes.api import SPEC, Desk, error_of

USUAL = Policy()
NAMED = {"version": 1, "name": "digits"}
SHAPE = {"vcpus": 1, "memory": 1024, "gpus": 0}


def said(pools: dict[str, float], resources: dict[str, Any] = SHAPE, **capacity: Any) -> list[str]:
    """pools: spot price by type."""
    return of_form({**NAMED, "resources": resources, "capacity": capacity}, pools)


def of_form(form: dict[str, Any], pools: dict[str, float], policy: Policy = USUAL) -> list[str]:
    known = [Pool("us-east-1", name, "us-east-1a", name, spot_usd_per_hour=usd) for name, usd in pools.items()]
    fleets = [] if pools else [("us-east-1", name, "us-east-1a") for name in ("c5.xlarge", "g4dn.xlarge")]
    market = market_of(State(pools={pool.key: pool for pool in known}), fleets, NOW, policy)
    return [
        *(fault.text() for fault in hourly_faults(terms_of_form(form), market)),
        *budget_warnings(terms_of_form(form), market),
    ]


def test_a_budget_below_an_hour_of_the_cheapest_instance_is_reported() -> None:
    assert said({"c5.xlarge": 0.07, "c5.2xlarge": 0.13}, budgetUsd=0.05) == [
        "capacity.budgetUsd: $0.05 is less than an hour of the cheapest instance that could take a task"
        " (c5.xlarge, about $0.0816 an hour): Argosy buys what fits"
    ]
    assert len(said({"c5.xlarge": 0.07}, budgetUsd=0.08)) == 1  # its disk and its address cost $0.0116 an hour
    assert said({"c5.xlarge": 0.07}, budgetUsd=0.082) == []


def test_an_hourly_cap_below_every_instance_is_reported() -> None:
    assert said({"c5.xlarge": 0.0712}, maxHourlyCost=0.07) == [
        "capacity.maxHourlyCost: $0.07 an hour is below the cheapest instance that could take a task"
        " (c5.xlarge, about $0.0828 an hour): nothing could be bought"
    ]
    assert said({"c5.xlarge": 0.07}, maxHourlyCost=0.09) == []
    assert said({}, {**SHAPE, "gpus": 8}, maxHourlyCost=0.07) == []  # nothing fits: admission says so


def test_only_what_has_room_for_a_task_and_may_be_bought_counts() -> None:
    gpu = {"vcpus": 1, "memory": 1024, "gpus": 1}
    [sentence] = said({"c5.xlarge": 0.07, "g4dn.xlarge": 0.2}, gpu, budgetUsd=0.1)
    assert "g4dn.xlarge, about $0.2283" in sentence
    [sentence] = said({"c5.xlarge": 0.07}, purchase="on-demand", budgetUsd=0.1)
    assert "c5.xlarge, about $0.1816" in sentence
    assert said({"c5.xlarge": 0.07}, gpu, budgetUsd=0.01) == []  # nothing fits: admission says so
    [sentence] = said({"c5.xlarge": 0.07}, purchase="spot-then-on-demand", budgetUsd=0.05)
    assert "about $0.0816" in sentence


def test_before_the_first_look_at_the_market_usual_prices_count() -> None:
    [sentence] = said({}, budgetUsd=0.001)
    assert "c5.xlarge" in sentence


def test_a_task_definition_gets_no_warning() -> None:
    form = {**NAMED, "taskDefinition": "mine:3", "capacity": {"budgetUsd": 0.0001, "maxHourlyCost": 0.0001}}
    assert of_form(form, {"c5.xlarge": 0.07}) == []


@pytest.mark.parametrize(
    ("asked", "cheapest"),
    [
        ({}, "c5.xlarge"),
        ({"resources": {**SHAPE, "architecture": "arm64"}}, "c6g.xlarge"),
        ({"resources": {**SHAPE, "gpus": 1, "gpuModel": "A10G"}}, "g5.xlarge"),
        ({"resources": {**SHAPE, "gpus": 1, "gpuMemoryMib": 20_000}}, "g5.xlarge"),
        ({"resources": {**SHAPE, "diskGiB": 300}}, "g5.xlarge"),
        ({"placement": {"constraints": ["attribute:ecs.instance-type =~ g5.*"]}}, "g5.xlarge"),
        ({"placement": {"constraints": ["attribute:team == vision"]}}, "g5.xlarge"),
        ({"placement": {"constraints": ["attribute:ecs.instance-type =~ p3.*"]}}, None),  # above the price caps
        ({"placement": {"affinity": ["run:other"]}}, None),  # nothing can be bought for it at any price
    ],
)
def test_only_offers_that_the_scheduler_would_buy_from_for_this_very_run_count(
    asked: dict[str, Any], cheapest: str | None
) -> None:
    policy = Policy(
        attributes_by_type=(("g5.*", (("team", "vision"),)),),
        disk_gib_by_type=(("g5.*", 400),),
        max_usd_per_hour=2.0,
    )
    prices = {"c5.xlarge": 0.05, "c6g.xlarge": 0.04, "g4dn.xlarge": 0.2, "g5.xlarge": 0.5, "p3.2xlarge": 2.5}
    form = {**NAMED, "resources": SHAPE, "capacity": {"budgetUsd": 0.001}, **asked}
    assert [sentence.partition("(")[2].partition(",")[0] for sentence in of_form(form, prices, policy)] == (
        [cheapest] if cheapest else []
    )


def test_a_cell_that_the_run_may_not_use_has_no_price_for_it() -> None:
    form = {**NAMED, "resources": SHAPE, "capacity": {"cells": ["eu-west-1"], "maxHourlyCost": 0.01}}
    assert of_form(form, {"c5.xlarge": 0.07}) == []


@pytest.mark.parametrize(("capacity", "found"), [({}, False), ({"budgetUsd": 1}, True), ({"maxHourlyCost": 1}, True)])
def test_a_run_has_caps_when_it_has_either(capacity: dict[str, float], found: bool) -> None:
    assert terms_of_form({**NAMED, "capacity": capacity}).has_caps is found


LIMITED: dict[str, Any] = {
    "version": 1,
    "limits": {"usdPerHour": 4},
    "queues": {"small": {"cap": {"vcpus": 1}}, "plain": {"cap": {"gpus": 1}}, "cheap": {"cap": {"usdPerHour": 0.05}}},
}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"queue": "small", "resources": {**SHAPE, "vcpus": 2}}, "a task needs 2 vCPUs, the cap of queue small is 1"),
        ({"queue": "plain", "resources": {**SHAPE, "gpus": 4}}, "a task needs 4 GPUs, the cap of queue plain is 1"),
        ({"queue": "cheap", "resources": SHAPE}, "an hour, the cap of queue cheap is $0.05"),
        ({"capacity": {"purchase": "on-demand"}}, "an hour, limits.usdPerHour is $4.00"),
    ],
)
def test_submit_validate_and_plan_agree_about_a_run_that_can_never_fit_a_limit(spec: dict[str, Any], told: str) -> None:
    desk = Desk()
    desk.body("ApplySharing", document=LIMITED)
    desk.fold_in()
    for action in ("SubmitRun", "ValidateRun"):
        (fault,) = error_of(desk.ask(action, spec={**SPEC, **spec}))["fieldList"]
        assert fault["path"] == "resources"
        assert told in fault["message"]
    plan = desk.body("PlanRun", spec={**SPEC, **spec})
    assert plan["possible"] is False
    assert any(told in sentence for sentence in plan["warnings"])
    assert desk.submit(queue="small", resources={**SHAPE, "vcpus": 1})["created"] is True


def test_a_limit_of_money_is_less_what_other_queues_are_guaranteed_and_do_not_lend() -> None:
    desk = Desk()
    kept = {"guarantee": {"usdPerHour": 18}, "lend": False}
    desk.body("ApplySharing", document={"version": 1, "limits": {"usdPerHour": 20}, "queues": {"kept": kept}})
    desk.fold_in()
    (fault,) = error_of(desk.ask("SubmitRun", spec={**SPEC, "capacity": {"purchase": "on-demand"}}))["fieldList"]
    assert "an hour, limits.usdPerHour less the guarantees that are not lent is $2.00" in fault["message"]
    assert desk.submit(queue="kept", capacity={"purchase": "on-demand"})["created"] is True


def test_submit_refuses_a_run_above_a_whole_quota() -> None:
    desk = Desk()
    desk.api.policy = replace(desk.api.policy, vcpu_quotas=(VcpuQuota("us-east-1", "spot", "p", 16),))
    (fault,) = error_of(desk.ask("SubmitRun", spec=SPEC))["fieldList"]
    quota = "the vCPU quota of spot P4, P3 and P2 in us-east-1"
    assert fault["message"] == f"a task needs an instance of 32 vCPUs, {quota} is 16"
    assert desk.submit(capacity={"purchase": "on-demand"})["created"] is True


def test_while_the_state_is_unreadable_only_the_controller_judges_limits() -> None:
    desk = Desk()
    desk.body("ApplySharing", document=LIMITED)
    desk.fold_in()
    desk.store.items[documents.STATE, documents.ROOT] = b"torn"
    assert desk.submit(queue="small", resources={**SHAPE, "vcpus": 2})["created"] is True


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
