"""The pages of the cluster, the market, a plan, the costs and simulated trials say what the replies say."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest

from argosy.api.cluster.actions import at_work, in_columns
from argosy.figures.cluster import cluster_page
from argosy.figures.document import Page, parts
from argosy.figures.history import column, stored
from argosy.figures.market import market_page
from argosy.figures.plan import plan_page
from argosy.figures.runs import RunChoice, runs_page
from argosy.figures.spending import by_kind, cost_page
from argosy.model.state import State
from tests.fakes.cli import NOW, instance, run_view
from tests.fakes.histories import history
from tests.fakes.reader import PLAN, fleet
from tests.harness.simulation.campaign_page import campaign_page

REPORT = {
    "trials": 200,
    "violations": 0,
    "faultsSeen": {"throttling": 301, "crash": 12},
    "virtualHours": 812.3,
    "ticks": 90_123,
    "tasks": 12_000,
    "launchesPerTask": 1.2,
    "costUsd": 88.2,
    "instanceHours": 1200.3,
    "waste": 0.23,
    "makespanSeconds": 8200.0,
    "settledSeconds": 600.0,
    "instancesBought": {"c5.xlarge": 300},
    "runs": {},
}


def text_of(page: Page, key: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", parts(page)[key])))


def cluster(instances: list[Any], fleets: list[Any]) -> dict[str, Any]:
    money = {"usdPerHour": 1.0, "spentUsd": 12.3, "onDemandUsd": 40.0}
    told = {"cluster": "argosy", "cells": ["us-east-1"], "instances": instances, "fleets": fleets, **money}
    return in_columns({**told, "attempts": at_work(State(), {})})


def test_the_cluster_is_summed_by_type_and_zone() -> None:
    here = [
        instance(instanceId="i-1"),
        instance(instanceId="i-2", purchase="on-demand", tasks=1),
        instance(instanceId="i-3", status="GONE"),
        instance(instanceId="i-4", instanceType="g5.xlarge", gpus={"total": 1, "used": 1}),
    ]
    page = cluster_page(cluster(here, [fleet("c5.xlarge", "us-east-1a", spotTarget=4)]))
    assert "c5.xlarge us-east-1a 2 1 4 75 % 41 % - $0.142" in text_of(page, "map")
    assert "g5.xlarge us-east-1a 1 1 3 75 % 41 % 100 % $0.071" in text_of(page, "map")
    assert "c5.xlarge in us-east-1a 4 0 2" in text_of(page, "orders")
    data = next(each.data for each in page.figures if each.key == "map")
    assert data is not None
    assert (data["types"], data["ids"]) == (["c5.xlarge", "g5.xlarge"], ["i-1", "i-2", "i-4"])
    assert column(data["columns"]["gpu"]).tolist() == [255, 255, 100]


def test_drained_instances_are_shown_with_the_end_and_the_reason_and_ended_ones_are_not() -> None:
    until = "drained by a user until 2026-11-28 14:00 UTC"
    told = [
        instance(instanceId="i-0a", noWorkBecause=until, tasks=2),
        instance(instanceId="i-0b", noWorkBecause="impaired: ecs says <b>", tasks=0),
        instance(instanceId="i-0c", noWorkBecause=until, status="GONE"),
        instance(instanceId="i-0d", noWorkBecause=None),
    ]
    page = cluster_page(cluster(told, []))
    said = text_of(page, "without-work")
    assert f"i-0a c5.xlarge in us-east-1a 2 {until}" in said
    assert "impaired: ecs says <b>" in said
    assert "i-0c" not in said
    assert "i-0d" not in said
    assert text_of(cluster_page(cluster(told[2:], [])), "without-work").endswith("None. ")


def shared_cluster() -> dict[str, Any]:
    """An instance of three GPUs: two tasks share the first, one has the second, the third is free."""
    mib = {"totalMib": 22_000}
    devices = [
        {"gpuId": "GPU-0", "mode": "NVIDIA_MPS", "freeMib": 5_616, **mib},
        {"gpuId": "GPU-1", "mode": "DEDICATED", "freeMib": 0, **mib},
        {"gpuId": "GPU-2", "mode": "IDLE", "freeMib": 22_000, **mib},
    ]
    shares = instance(instanceId="i-0b", instanceType="g5.12xlarge", gpus={"total": 3, "used": 2}, gpuDevices=devices)
    view = cluster([instance(instanceId="i-0a"), shares], [])
    work = [(0, 5, 0), (1, 3, 0b001), (1, 4, 0b001), (1, 9, 0b010)]
    columns = {
        "instance": stored(np.array([row for row, _, _ in work], "u4")),
        "run": {**stored(np.zeros(4, "u2")), "values": ["<b>run"]},
        "index": stored(np.array([index for _, index, _ in work], "u4")),
        "gpuMask": stored(np.array([mask for _, _, mask in work], "u4")),
    }
    return {**view, "attempts": {"rows": 4, "left": 0, "columns": columns}}


def test_shared_gpus_are_shown_with_their_mode_memory_and_tasks() -> None:
    page = cluster_page(shared_cluster())
    said = text_of(page, "shared-gpus")
    assert "i-0b GPU 0 shared 16.0 of 21.5 <b>run: 3, 4" in said
    assert "i-0b GPU 1 of one task 21.5 of 21.5 <b>run: 9" in said
    assert "i-0b GPU 2 idle 0.0 of 21.5" in said
    assert "i-0a" not in said
    assert "shared-gpus" not in [each.key for each in cluster_page(cluster([instance()], [])).figures]


def test_an_empty_cluster_and_an_empty_market_say_so() -> None:
    page = cluster_page(cluster([], []))
    assert "No instances." in text_of(page, "map")
    assert "Nothing is ordered" in text_of(page, "orders")
    page = market_page(cluster([], []), {}, NOW)
    assert "No spot price" in text_of(page, "prices")
    assert "no pools yet" in text_of(page, "verdicts")


def test_the_market_gives_a_verdict_on_every_pool_the_chosen_first() -> None:
    pools = [
        fleet("c5.xlarge", "us-east-1a", noOfferBecause="its price is above on-demand"),
        fleet("c5.xlarge", "us-east-1b", coolingOffUntil="2026-11-21T08:00:00Z", coolingOffAfter="no capacity"),
        fleet("c5.xlarge", "us-east-1c", spotTarget=2, onDemandTarget=1),
        fleet("m5.large", "us-east-1a", spotUsdPerHour=None),
    ]
    prices = {("c5.xlarge", "us-east-1c"): ([NOW - 7200, NOW - 3600], [0.06, 0.08])}
    page = market_page(cluster([], pools), prices, NOW)
    verdicts = text_of(page, "verdicts")
    for said in (
        "bought from: 3 ordered",
        "cools off: no capacity",
        "no: its price is above on-demand",
        "not needed now",
    ):
        assert said in verdicts
    assert verdicts.index("us-east-1c") < verdicts.index("us-east-1a")
    assert "1 is bought from now" in text_of(page, "summary")
    reasons = text_of(page, "reasons")
    assert "1 no: its price is above on-demand c5.xlarge in us-east-1a" in reasons
    assert "ordered" not in reasons
    assert "c5.xlarge on demand $0.0425" in text_of(page, "prices")  # what spot is compared with
    assert "c5.xlarge in us-east-1c $0.0150 $0.0200 $0.0200" in text_of(page, "prices")


def test_of_many_pools_those_passed_over_are_grouped_and_the_table_says_how_to_get_the_rest() -> None:
    pools = [fleet("c5.xlarge", f"us-east-1{number}", noOfferBecause="too dear") for number in range(300)]
    page = market_page(cluster([], pools), {}, NOW)
    assert "300 no: too dear" in text_of(page, "reasons")
    assert "100 more pools with more expensive vCPUs: argosy prices" in text_of(page, "verdicts")
    assert "None is." in text_of(market_page(cluster([], [fleet("c5.xlarge", "a", spotTarget=1)]), {}, NOW), "reasons")
    unknown = market_page(cluster([], [fleet("x9.huge", "a")]), {("x9.huge", "a"): ([NOW - 60], [0.1])}, NOW)
    assert "No spot price" in text_of(unknown, "prices")  # of a vCPU: the type is in no catalogue


def test_a_plan_shows_each_variant_at_its_cost_and_time() -> None:
    page = plan_page(PLAN)
    frontier = text_of(page, "frontier")
    for said in ("this plan $1.20 31m 40s", "on demand $3.40 28m 20s", "in any cell $1.06 30m 50s"):
        assert said in frontier
    assert "in any cell $0.140, 12 % $1.06 30m 50s" in text_of(page, "relaxations")
    assert "needs 4 GPUs" in text_of(page, "rejected")
    assert page.warnings == ["the run may miss its deadline"]
    (start_up,) = [each for each in page.tiles if each.label == "Start-up"]
    assert (start_up.value, start_up.note) == ("$0.00360", "boot 1m 30s, start 5.0 s")


def test_a_plan_that_is_impossible_or_buys_nothing_says_so() -> None:
    none = {"low": None, "expected": None, "high": None}
    never = {**PLAN, "possible": False, "costUsd": none, "seconds": none, "instances": [], "onDemand": None}
    relaxed = [{"sentence": "in any cell", "saves": None, "costUsd": None, "seconds": None}]
    page = plan_page({**never, "relaxations": relaxed, "rejected": [], "instanceHours": None})
    assert "No forecast" in text_of(page, "frontier")
    assert "it could run" in text_of(page, "relaxations")
    page = plan_page({**PLAN, "instances": [], "placesHere": 9, "relaxations": []})
    assert "9 places on current instances" in text_of(page, "bought")
    assert "No small change" in text_of(page, "relaxations")


def test_costs_add_up_in_every_cut() -> None:
    view, _, _ = history(5, 60)
    pool = {"instanceType": "c5.xlarge", "availabilityZone": None, "purchase": None, "instanceHours": 1.5}
    view["cost"]["byPool"] = [{**pool, "costUsd": 1.0, "usefulUsd": 0.5, "onDemandCostUsd": 2.0}]
    page = cost_page(view)
    total = f"${view['costUsd']:.3f}"
    assert total in text_of(page, "cost")
    assert "c5.xlarge - 1.500 $1.00 50 % $2.00" in text_of(page, "pools")
    assert "estimated, beyond the ledger" in text_of(page, "bill")


def test_a_run_that_has_cost_nothing_has_no_bars() -> None:
    assert by_kind(run_view(cost={"byWaste": {}})).empty == "Nothing has been spent yet."


def test_the_list_of_runs_leads_to_each_and_says_when_there_are_others() -> None:
    page = runs_page([run_view()], more=True)
    assert 'href="/runs/digits-261121-062733-k3f9"' in parts(page)["runs"]
    assert "older runs" in text_of(page, "runs")
    assert "No run has been submitted" in text_of(runs_page([], more=False), "runs")


def test_runs_are_filtered_and_sorted_as_the_address_says_and_the_address_keeps_it() -> None:
    named = [
        ("a-1", 3.0, None, "alice"),
        ("b-2", 1.0, "2026-11-21T07:00:00Z", "bob"),
        ("ab-3", 2.0, "2026-11-21T07:00:00Z", "alice"),
    ]
    runs = [
        run_view(runId=name, costUsd=usd, stoppedAt=ended, owner=owner, ownerProven=True)
        for name, usd, ended, owner in named
    ]

    def found(query: str) -> list[str]:
        choice = RunChoice.of(query)
        assert RunChoice.of(choice.address().removeprefix("?")) == choice
        return [view["runId"] for view in choice.among(runs)]

    assert found("sort=cost") == ["b-2", "ab-3", "a-1"]
    assert found("sort=-cost&text=ALICE") == ["a-1", "ab-3"]
    assert found("state=ended&text=b") == ["b-2", "ab-3"]
    assert found("state=open") == ["a-1"]
    assert found("state=failed") == []
    assert len(found("state=x&sort=y&" + "&".join(["a=1"] * 30))) == 3
    page = runs_page(runs, more=True, choice=RunChoice(text="nothing"))
    assert "None of the newest 3 runs is like this." in text_of(page, "runs")
    hostile = RunChoice(text='"><script>')
    assert "<script>" not in parts(runs_page(runs, more=False, choice=hostile))["choose"]


@pytest.mark.parametrize("violations", [0, 1])
def test_simulated_trials_show_their_faults_and_what_was_violated(violations: int) -> None:
    story = {"seed": 7, "invariant": "twice", "sentence": "ran twice", "replay": "simulate", "story": ["<a>"]}
    page = campaign_page({**REPORT, "violations": violations}, [story][:violations])
    assert page.status == ("violations" if violations else "no violation")
    assert "throttling 301" in text_of(page, "faults")
    assert "None." in text_of(page, "runs")
    assert ("found-0" in parts(page)) == bool(violations)
