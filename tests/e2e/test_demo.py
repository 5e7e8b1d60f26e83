"""`argosy demo` works as the README says, from an installed wheel in an empty folder, and reports its measurements."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from argosy.figures.numbers import money
from tests.fakes.commands import outcome_of
from tests.wheels import bring_byte_code, copy_of_the_checkout, unpacked_wheel

ROUNDING_USD = 1e-9  # the two sums are taken in different orders
ARGOSY = [sys.executable, "-c", "from argosy.cli.main import main; main()"]

pytestmark = [pytest.mark.e2e, pytest.mark.pages]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkout = copy_of_the_checkout(tmp_path_factory.mktemp("checkout"))
    site = unpacked_wheel(checkout, tmp_path_factory.mktemp("wheel"))
    bring_byte_code(site)
    empty: Path = tmp_path_factory.mktemp("demo")
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [*ARGOSY, "demo"], cwd=empty, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(site / "argosy/containers/digits/run.yaml") in done.stdout
    return empty / "out/demo"


@pytest.fixture(scope="module")
def summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def test_every_task_succeeded_although_an_instance_was_taken_away(summary: dict[str, Any]) -> None:
    assert summary["tasks"]["succeeded"] == summary["tasks"]["total"]
    assert summary["interruptions"] >= 1
    assert summary["attempts"] > summary["tasks"]["total"]
    assert summary["instancesInterrupted"] >= 1


def test_the_parts_hold_every_image_once(out: Path, summary: dict[str, Any]) -> None:
    parts = sorted((out / "results").glob("**/part-*.jsonl"))
    rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    assert sorted(row["index"] for row in rows) == list(range(900, 1797))
    assert summary["accuracy"] == sum(row["label"] == row["predicted"] for row in rows) / 897
    assert summary["accuracy"] >= 0.9


def test_gpu_tasks_on_one_instance_have_gpus_of_their_own(summary: dict[str, Any]) -> None:
    assert len(summary["gpuTasks"]) == 8
    assert len({task["instance"] for task in summary["gpuTasks"]}) < 8  # otherwise nothing could be shared
    assert all(len(task["gpuIds"]) == 1 for task in summary["gpuTasks"])
    tasks = sorted(summary["gpuTasks"], key=lambda task: (task["instance"], task["gpuIds"]))
    assert all((a["instance"], a["gpuIds"]) != (b["instance"], b["gpuIds"]) for a, b in pairwise(tasks))


def test_spot_costs_less_than_on_demand(summary: dict[str, Any]) -> None:
    assert 0 < summary["costUsd"] < summary["onDemandCostUsd"]
    assert summary["costUsd"] <= summary["clusterCostUsd"] + ROUNDING_USD
    assert summary["clusterCostUsd"] < summary["clusterOnDemandCostUsd"]


def test_the_ledger_says_what_all_of_the_cost_was_for(summary: dict[str, Any]) -> None:
    assert sum(summary["spentOn"].values()) == pytest.approx(summary["costUsd"])
    assert all(summary["spentOn"][f"{kind}Usd"] > 0 for kind in ("useful", "boot", "idle", "redone"))


def test_the_reports_say_what_the_summary_says(out: Path, summary: dict[str, Any]) -> None:
    for run, name in zip(summary["runs"], ("report.html", "gpu-report.html"), strict=True):
        page = (out / name).read_text()
        tiles = dict(re.findall(r'<dt>([^<]+)</dt><dd class="number">([^<]+)</dd>', page))
        assert f"<h1>{run['runId']} " in page
        assert tiles["Succeeded"] == f"{run['tasks']['succeeded']:,}"
        assert tiles["Attempts"] == f"{run['attempts']:,}"
        assert tiles["Cost"] == money(run["costUsd"])
        series = re.findall(r'<li><span class="key s-succeeded"></span>succeeded<span class="value">([\d,]+)<', page)
        assert series[0] == tiles["Succeeded"]  # the last sample of the run's course
        histogram = re.findall(r">(?:succeeded|failed|lost and repeated)<span class=\"value\">([\d,]+), median", page)
        assert sum(int(each.replace(",", "")) for each in histogram) == run["attempts"]


def test_a_port_that_is_taken_is_refused_with_another_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = outcome_of(["argosy", "local", "--no-state", "--port", str(port)])
    assert done.returncode == 2
    assert f"next: choose another port: argosy local --port {port + 1}" in done.stderr
