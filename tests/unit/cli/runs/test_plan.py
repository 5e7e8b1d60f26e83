"""`argosy plan`: what would be bought, a forecast with its range, and the reasons behind both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli import World, api_error, golden

ROOT = Path(__file__).parents[4]
SPEC = "containers/digits/run.yaml"

REPLY: dict[str, Any] = {
    "name": "digits",
    "tasks": 18,
    "possible": True,
    "placesHere": 2,
    "places": 10,
    "instances": [
        {
            "pool": "us-east-1/c5.xlarge/us-east-1a",
            "cell": "us-east-1",
            "zone": "us-east-1a",
            "instanceType": "c5.xlarge",
            "purchase": "spot",
            "count": 2,
            "tasksAtATime": 4,
            "priceUsdPerHour": 0.0712,
        }
    ],
    "costUsd": {"low": 0.0021, "expected": 0.0042, "high": 0.0093},
    "seconds": {"low": 40.0, "expected": 75.0, "high": 180.0},
    "instanceHours": 0.05,
    "startUp": {"bootSeconds": 90.0, "pullSeconds": 100.0, "startSeconds": 5.0, "usd": 0.0075},
    "taskSeconds": {"low": 3.5, "expected": 7.0, "high": 14.0},
    "onDemand": {"region": "us-east-1", "costUsd": 0.0126, "seconds": 70.0, "instanceTypes": ["c5.xlarge"]},
    "rejected": [
        {"reason": "needs 1024 cpu units", "pools": 1, "instanceTypes": ["t3.nano"]},
        {"reason": "cooling off", "pools": 12, "instanceTypes": ["c5.large", "c6i.large", "c7i.large", "m5.large"]},
        *({"reason": f"reason {number}", "pools": 2, "instanceTypes": ["p3.2xlarge"]} for number in range(6)),
    ],
    "relaxations": [{"sentence": "900 MiB instead of 1,024 MiB lets one more task fit on an instance", "saves": 0.21}],
    "assumptions": ["seconds of a task: array.expectedSeconds says 7.0 s"],
    "warnings": ["the run may reach its budget of $0.01 before its end"],
}


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_forecast_as_a_person_reads_it() -> None:
    result = World().answers("PlanRun", REPLY).argosy("plan", SPEC)
    assert (result.exit_code, result.stderr) == (0, "")
    golden("plan", result.stdout)


def test_json_is_the_reply_as_it_is() -> None:
    result = World().answers("PlanRun", REPLY).argosy("plan", SPEC, "--json")
    assert json.loads(result.stdout) == REPLY


def test_what_cannot_run_has_no_forecast_but_its_reasons() -> None:
    nothing = dict.fromkeys(("low", "expected", "high"))
    reply = REPLY | {"possible": False, "instances": [], "costUsd": nothing, "seconds": nothing, "onDemand": None}
    reply |= {"relaxations": [{"sentence": "in any cell", "saves": None}]}
    text = World().answers("PlanRun", reply).argosy("plan", SPEC).stdout
    assert "none: no instance type of this deployment could run it" in text
    assert "in any cell: it could run" in text


def test_changes_on_the_command_line_reach_the_plan() -> None:
    world = World().answers("PlanRun", REPLY)
    world.argosy("plan", SPEC, "--set", "resources.vcpus=2", "--batch-size", "10")
    (request,) = [request for request in world.functions.requests if request["action"] == "PlanRun"]
    assert request["spec"]["resources"]["vcpus"] == 2
    assert request["spec"]["array"]["shardSize"] == 10


def test_what_is_suggested_next_is_what_was_planned() -> None:
    text = World().answers("PlanRun", REPLY).argosy("plan", SPEC, "--set", "resources.vcpus=2", "-b", "10").stdout
    assert "next: argosy submit containers/digits/run.yaml --num-batches 10 --set resources.vcpus=2" in text


def test_faults_that_only_the_deployment_finds_name_their_line() -> None:
    fault = api_error(400, "ValidationException", "1 field is invalid", ("container.image", "is not known"))
    result = World().answers("PlanRun", fault).argosy("plan", SPEC)
    assert result.exit_code == 2
    assert "container.image" in result.stderr
    assert "run.yaml:7" in result.stderr


@pytest.mark.parametrize("name", ["SubmitRun", "CancelRun"])
def test_nothing_is_started(name: str) -> None:
    world = World().answers("PlanRun", REPLY)
    world.argosy("plan", SPEC)
    assert name not in {request["action"] for request in world.functions.requests}
