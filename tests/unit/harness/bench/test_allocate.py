"""What does `bench allocate` plan and measure, and what does it say of files that are wrong?"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.allocation_checks import faults_of_plan
from tests.benchmarks.market_files import main
from tests.harness.bench.__main__ import app

POOL_HEAD = "region,availabilityZone,instanceType,cpu,memory,gpus,priceUsdPerHour,maxInstances\n"
POOLS = POOL_HEAD + (
    "us-east-1,us-east-1a,c5.large,2048,3635,0,0.03,10\n"
    "us-east-1,us-east-1b,c5.large,2048,3635,0,0.04,10\n"
    "us-east-1,us-east-1a,m5.xlarge,4096,15308,0,0.07,10\n"
    "us-west-2,us-west-2a,p3.2xlarge,8192,58000,1,0.9,3\n"
)
BACKLOG_HEAD = "shapeId,cpu,memory,gpus,count\n"
BACKLOG = BACKLOG_HEAD + "small,1024,1024,0,30\nlarge,2048,8192,0,6\ngpu,1024,4096,1,2\n"


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    def run(*options: str, pools: str = POOLS, backlog: str = BACKLOG) -> Any:
        for name, text in (("pools", pools), ("backlog", backlog)):
            (tmp_path / f"{name}.csv").write_text(text)
        files = ["--pools", str(tmp_path / "pools.csv"), "--backlog", str(tmp_path / "backlog.csv")]
        return CliRunner().invoke(app, ["allocate", *files, *options], catch_exceptions=False)

    return run


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def planned(bench: Any, tmp_path: Path, *options: str, **files: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    out = tmp_path / "plan.json"
    answer = bench("--json", "--plan", str(out), *options, **files)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout), json.loads(out.read_text()), answer.stderr


def test_no_instance_of_a_plan_has_more_tasks_than_its_pool_says(bench: Any, tmp_path: Path) -> None:
    rows = [f"{row},{most}" for row, most in zip(POOLS.splitlines()[1:], ("1", "", "2", "1"), strict=True)]
    pools = "\n".join([f"{POOL_HEAD.strip()},maxTasks", *rows]) + "\n"
    report, plan, _ = planned(bench, tmp_path, pools=pools)
    assert faults_of_plan(plan, records(pools), records(BACKLOG), report) == []
    assert report["instances"] > planned(bench, tmp_path)[0]["instances"]


def test_the_plan_holds_every_task_and_adds_up(bench: Any, tmp_path: Path) -> None:
    report, plan, said = planned(bench, tmp_path)
    assert faults_of_plan(plan, records(POOLS), records(BACKLOG), report) == []
    assert report["unplaced"] == {}
    assert said == ""
    assert 0 < report["lowerBoundUsdPerHour"] <= report["usdPerHour"]
    assert report["gapPct"] == pytest.approx(
        100 * (report["usdPerHour"] / report["lowerBoundUsdPerHour"] - 1), abs=1e-2
    )
    assert set(plan["pools"][0]) == {"region", "availabilityZone", "instanceType", "patterns"}
    assert report["seconds"] < 10


def test_a_shape_no_pool_can_hold_is_named_and_the_rest_is_planned(bench: Any, tmp_path: Path) -> None:
    backlog = BACKLOG + "huge,999999,1,0,4\n"
    report, plan, said = planned(bench, tmp_path, backlog=backlog)
    assert report["unplaced"] == {"huge": 4}
    assert "no pool can hold a task of shape huge: 999999 cpu units, 1 MiB, 0 GPUs" in said
    assert faults_of_plan(plan, records(POOLS), records(backlog), report) == []


def test_a_sold_out_pool_is_reported_with_the_number_of_tasks_it_leaves_out(bench: Any, tmp_path: Path) -> None:
    backlog = BACKLOG_HEAD + "gpu,1024,4096,1,5\n"
    report, plan, said = planned(bench, tmp_path, backlog=backlog)
    assert report["unplaced"] == {"gpu": 2}
    assert "2 tasks of shape gpu have no place: their pools are sold out" in said
    assert faults_of_plan(plan, records(POOLS), records(backlog), report) == []


def test_no_type_gets_more_than_its_share_of_the_cpu(bench: Any, tmp_path: Path) -> None:
    backlog = BACKLOG_HEAD + "small,1024,1024,0,24\n"
    alone, _, _ = planned(bench, tmp_path, backlog=backlog)
    report, plan, _ = planned(bench, tmp_path, "--max-share", "0.6", backlog=backlog)
    cpu: dict[str, int] = {}
    size = {pool["instanceType"]: int(pool["cpu"]) for pool in records(POOLS)}
    for entry in plan["pools"]:
        kind = entry["instanceType"]
        cpu[kind] = cpu.get(kind, 0) + size[kind] * sum(pattern["instances"] for pattern in entry["patterns"])
    assert max(cpu.values()) <= 0.6 * sum(cpu.values())
    assert report["unplaced"] == {}
    assert report["usdPerHour"] >= alone["usdPerHour"]


def test_without_time_the_answer_is_the_greedy_one_and_still_whole(bench: Any, tmp_path: Path) -> None:
    report, plan, _ = planned(bench, tmp_path, "--seconds", "0")
    assert report["method"] == "greedy"
    assert report["lowerBoundUsdPerHour"] > 0
    assert faults_of_plan(plan, records(POOLS), records(BACKLOG), report) == []


def test_empty_sizes_come_from_the_catalogue(bench: Any, tmp_path: Path) -> None:
    pools = POOL_HEAD + "us-east-1,us-east-1a,c5.xlarge,,,,0.07,10\n"
    report, _, _ = planned(bench, tmp_path, pools=pools, backlog=BACKLOG_HEAD + "a,1024,1024,0,8\n")
    assert report["instances"] == 2


def test_work_that_no_pool_can_hold_at_all_is_named_and_nothing_is_bought(bench: Any, tmp_path: Path) -> None:
    report, plan, said = planned(bench, tmp_path, backlog=BACKLOG_HEAD + "huge,999999,1,0,3\n")
    assert (report["usdPerHour"], report["instances"], plan) == (0, 0, {"pools": []})
    assert report["unplaced"] == {"huge": 3}
    assert "no pool can hold a task of shape huge" in said


@pytest.mark.slow
def test_the_next_plan_is_measured_too_when_asked_for(bench: Any, tmp_path: Path) -> None:
    many = BACKLOG.replace(",30\n", ",30000\n")  # too many for dives alone
    report, _, _ = planned(bench, tmp_path, "--warm", backlog=many)
    assert report["patternsKept"] > 0
    assert report["warmSeconds"] > 0
    assert report["warmGapPct"] >= 0


@pytest.mark.slow
def test_a_generated_backlog_of_distinct_sizes_is_planned_with_its_gap(bench: Any, tmp_path: Path) -> None:
    """The files that docs/maintainers/decisions/0006 measures, in small; CPU time is counted if asked for."""
    main([str(tmp_path / "drawn"), "--sizes", "160", "--pools", "30", "--gpu-share", "0.1"])
    pools, backlog = ((tmp_path / "drawn" / f"{name}.csv").read_text() for name in ("pools", "backlog"))
    report, plan, _ = planned(bench, tmp_path, "--cpu-time", "--seconds", "0.5", pools=pools, backlog=backlog)
    assert faults_of_plan(plan, records(pools), records(backlog), report) == []
    assert len(records(backlog)) == 160
    assert report["gapPct"] > 0


def test_people_get_lines(bench: Any) -> None:
    assert "usdPerHour             " in bench().stdout


RATED_HEAD = POOL_HEAD.replace("\n", ",interruptionRate\n")
ROW = "us-east-1,us-east-1a,c5.large,2048,3635,0,{price},{depth}\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"pools": POOL_HEAD + ROW.format(price=0, depth=1)}, "pools.csv:2: priceUsdPerHour '0' is not a number"),
        ({"pools": POOL_HEAD + ROW.format(price="", depth=1)}, "pools.csv:2: priceUsdPerHour is missing"),
        ({"pools": POOL_HEAD + ROW.format(price="nan", depth=1)}, "priceUsdPerHour 'nan' is not a number"),
        ({"pools": POOL_HEAD + ROW.format(price="cheap", depth=1)}, "priceUsdPerHour 'cheap' is not a number"),
        ({"pools": POOLS + ROW.format(price=1, depth=-1)}, "pools.csv:6: maxInstances '-1' is not a whole number"),
        ({"pools": POOLS + ROW.format(price=1, depth=9**30)}, "maxInstances is above"),
        ({"pools": POOL_HEAD + "r,a,x9.huge,,,,1,1\n"}, "pools.csv:2: instanceType 'x9.huge' is unknown"),
        ({"pools": POOL_HEAD + "r,,t,1,1,0,1,1\n"}, "pools.csv:2: availabilityZone is empty"),
        ({"pools": POOL_HEAD}, "pools.csv: offers no instances"),
        ({"pools": POOL_HEAD + ROW.format(price=1, depth=0)}, "pools.csv: offers no instances"),
        ({"pools": ""}, "pools.csv: is empty"),
        ({"pools": POOL_HEAD.replace("region", "cpu") + "\n"}, "has no column region"),
        ({"pools": POOL_HEAD.replace("\n", ",cpu\n")}, "names a column twice"),
        ({"pools": POOL_HEAD + "r,z\n"}, "pools.csv:2: 2 cells, the header has 8"),
        ({"pools": POOL_HEAD + 'r,"z,\n'}, "is not a CSV in UTF-8"),
        ({"pools": RATED_HEAD + ROW.format(price=1, depth="1,2")}, "interruptionRate '2' is not a number"),
        ({"backlog": BACKLOG_HEAD}, "backlog.csv: has no tasks"),
        ({"backlog": BACKLOG_HEAD + "a,1,1,0,0\n"}, "backlog.csv: has no tasks"),
        ({"backlog": BACKLOG_HEAD + "a,1,1,0,1\na,1,1,0,1\n"}, "backlog.csv:3: shapeId 'a' is listed twice"),
        ({"backlog": BACKLOG_HEAD + ",1,1,0,1\n"}, "backlog.csv:2: shapeId is empty"),
        ({"backlog": BACKLOG_HEAD + "a,0,0,0,1\n"}, "backlog.csv:2: asks for nothing"),
        ({"backlog": BACKLOG_HEAD + "a,1,1,0,-5\n"}, "backlog.csv:2: count '-5' is not a whole number"),
        ({"backlog": BACKLOG_HEAD + "a,1.5,1,0,1\n"}, "backlog.csv:2: cpu '1.5' is not a whole number"),
        ({"backlog": BACKLOG_HEAD + "".join(f"t{n},1,1,0,{2**40}\n" for n in range(2))}, "can be planned at once"),
    ],
)  # fmt: skip
def test_a_faulty_file_is_refused_with_its_place(bench: Any, files: dict[str, str], said: str) -> None:
    answer = bench(**files)
    assert answer.exit_code == 2
    assert said in answer.output.replace("\n", " ")


def test_every_fault_of_a_file_is_reported_at_once(bench: Any) -> None:
    answer = bench(pools=POOL_HEAD + ROW.format(price=0, depth=-1) * 15)
    assert "pools.csv:2: priceUsdPerHour" in answer.output
    assert "pools.csv:2: maxInstances" in answer.output
    assert "and 10 more" in answer.output


@pytest.mark.parametrize("share", ["0", "-1", "1.5", "nan"])
def test_a_share_that_is_none_is_refused(bench: Any, share: str) -> None:
    assert bench("--max-share", share).exit_code == 2


def test_a_missing_file_and_an_unwritable_one_are_reported(bench: Any, tmp_path: Path) -> None:
    assert bench("--plan", str(tmp_path / "no" / "out.json")).exit_code == 2
    answer = CliRunner().invoke(app, ["allocate", "--pools", str(tmp_path / "none"), "--backlog", "none"])
    assert answer.exit_code == 2
    assert "No such file" in answer.output
