"""`argosy cost`, and the money in `status` and `watch`: the ledger of a real run as the api answers it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from argosy.api import views
from argosy.api.runs.costs import estimates
from argosy.cli.runs.live import frame
from argosy.model.costs import Costs
from argosy.model.run_record import RunRecord
from tests.fakes.cli import NOW, RUN_ID, World, ended, golden, run_view

SPOT = "us-east-1/c5.xlarge/us-east-1a|spot"
LEDGER = {
    SPOT: Costs(0.9, 0.2, 0.1, 0.15, 0.05, 4.0, 72_000.0, 0.13, 0.1),
    "us-east-1/g4dn.xlarge/us-east-1b|on-demand": Costs(0.526, 0, 0, 0, 0, 0.526, 3_600.0, 0.0164, 0.005),
    "(other pools)": Costs(0.001, 0, 0, 0, 0, 0.002, 36.0),
}
CAPS = {
    "budgetUsd": 5.0, "spentUsd": 1.927, "reservedUsd": 0.35, "maxHourlyCost": 2.0, "usdPerHour": 0.85,
    "onCap": "drain", "usedUp": False,
}  # fmt: skip


def view(ledger: dict[str, Costs] = LEDGER, **changes: Any) -> dict[str, Any]:
    """What DescribeRun answers with include: ["cost"]."""
    record = replace(
        RunRecord.of_unreadable(RUN_ID), costs=ledger, attempts=1000, image="argosy/digits", instances=("i-1", "i-2")
    )
    total = sum(row.total for row in ledger.values())
    money = {"costUsd": total, "onDemandCostUsd": sum(row.on_demand for row in ledger.values())}
    useful = {"usefulUsd": sum(row.useful for row in ledger.values())}
    cost = {**views.cost_view(record), "estimates": estimates(record, "eu-west-1")}
    return run_view(**money, **useful, cost=cost, **changes)


def printed(*words: str, **changes: Any) -> str:
    world = World().answers("DescribeRun", view(**changes))
    result = world.argosy("cost", RUN_ID, *words)
    assert (result.exit_code, result.stderr) == (0, "")
    assert world.functions.requests[-1] == {"action": "DescribeRun", "runId": RUN_ID, "include": ["cost"]}
    return str(result.stdout)


def test_a_cost_is_divided_by_use() -> None:
    golden("cost-waste", printed(budget=CAPS))


def test_a_cost_is_divided_by_pool() -> None:
    golden("cost-pool", printed("--by", "pool"))


def test_a_cost_is_divided_by_bill_items_with_the_estimated_ones_marked() -> None:
    golden("cost-line", printed("--by", "line"))


def test_the_cost_of_an_ended_run_is_not_called_so_far() -> None:
    assert "so far" in printed()
    assert "so far" not in printed(status="SUCCEEDED")


def test_a_run_without_instances_has_cost_nothing_yet() -> None:
    assert printed(ledger={}).splitlines() == [
        f"{RUN_ID}: $0.00 so far for 0.000 instance-hours",
        "No instance has run its tasks yet.",
    ]


@pytest.mark.parametrize("by", [[], ["--by", "pool"]])
def test_json_has_all_of_the_ledger_whichever_table_was_asked_for(by: list[str]) -> None:
    document = json.loads(printed("--json", *by))
    assert document["runId"] == RUN_ID
    assert document["costUsd"] == pytest.approx(sum(document["byWaste"].values()))
    assert document["costUsd"] == pytest.approx(sum(pool["costUsd"] for pool in document["byPool"]))
    assert document["costUsd"] == pytest.approx(sum(document["byLine"].values()))
    assert document["estimates"]["logsUsd"] == pytest.approx(1000 * 10e-6 * 0.5)
    assert document["byPool"][0] == {
        "cell": "us-east-1", "instanceType": "c5.xlarge", "availabilityZone": "us-east-1a", "purchase": "spot",
        "instanceHours": 20.0, "costUsd": pytest.approx(1.4), "usefulUsd": 0.9, "onDemandCostUsd": 4.0,
    }  # fmt: skip
    assert document["byPool"][2]["instanceType"] == "(other pools)"


def test_an_unknown_way_to_cut_it_is_a_usage_error() -> None:
    assert World().argosy("cost", RUN_ID, "--by", "colour").exit_code == 2


def test_status_shows_the_useful_share_and_the_budget() -> None:
    shown = World().answers("DescribeRun", view(budget=CAPS)).argosy("status", RUN_ID).stdout
    lines = [line.rstrip() for line in shown.splitlines()]
    assert "cost         $1.93 (on-demand $4.53, 57 % less), 74 % useful" in lines
    assert "limits       $1.93 of the $5.00 budget spent, $0.350 reserved; $0.850 an hour, at most $2.00" in lines


def test_watch_shows_the_budget_in_every_line() -> None:
    world = World().answers("DescribeRun", view(budget=CAPS), ended("PARTIAL", budget={**CAPS, "usedUp": True}))
    first, last = world.argosy("watch", RUN_ID).stdout.splitlines()[:2]
    assert "74 % useful, $1.93 of the $5.00 budget spent, $0.350 reserved; $0.850 an hour, at most $2.00" in first
    assert "$1.93 of the $5.00 budget spent, $0.350 reserved" in last
    assert "an hour" not in last


def test_a_frame_shows_the_budget() -> None:
    console = Console(width=120, file=io.StringIO())
    console.print(frame(view(budget={**CAPS, "budgetUsd": None, "onCap": None}), "", NOW))
    assert "limits       $0.850 an hour, at most $2.00" in console.file.getvalue()  # type: ignore[attr-defined]


def test_of_an_environment_all_of_its_runs_are_added_up() -> None:
    runs = [f"web-26112{day}-062733-k3f9" for day in (2, 1)]
    views = [view(name="web", environment="web") | {"runId": each} for each in runs]
    listed = {"runs": [{"runId": each, "name": "web", "environment": "web"} for each in runs], "nextToken": None}
    world = World().answers("ListRuns", listed).answers("DescribeRun", *views)
    told = world.document("cost", "web")
    assert [each["runId"] for each in world.functions.requests[1:]] == runs
    assert (told["runId"], [each["runId"] for each in told["runs"]]) == ("web", runs)
    one = views[0]
    assert told["costUsd"] == pytest.approx(2 * one["costUsd"])
    assert [each["costUsd"] for each in told["byPool"]] == pytest.approx(
        [2 * each["costUsd"] for each in one["cost"]["byPool"]]
    )
    assert told["byWaste"]["usefulUsd"] == pytest.approx(2 * one["cost"]["byWaste"]["usefulUsd"])
    world.answers("DescribeRun", *views)
    assert world.argosy("cost", "web").stdout.startswith("web: $")


def test_of_very_many_runs_of_an_environment_the_newest_are_added_up_and_that_is_reported() -> None:
    names = [f"web-261121-0627{number:02d}-k3f9" for number in range(55)]
    listed = {"runs": [{"runId": each, "name": "web", "environment": "web"} for each in names], "nextToken": None}
    world = World().answers("ListRuns", listed).answers("DescribeRun", view())
    assert "5 older runs of web are left out" in world.argosy("cost", "web").stdout
