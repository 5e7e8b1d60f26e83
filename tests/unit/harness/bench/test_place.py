"""What does `bench place` measure, and what does it say of files that are wrong?"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.harness.bench.__main__ import app

INSTANCES = """instanceId,instanceType,availabilityZone,cpu,memory,gpus,price,attr:rack
i-1,c5.large,a,2048,4096,0,0.1,r1
i-2,p3.2xlarge,b,8192,62464,1,1.0,
i-3,c5.xlarge,b,4096,8192,0,0.2,r2
"""
TASKS = """taskId,cpu,memory,gpus,count
small,1024,1024,0,3
gpu,1024,1024,1,2
large,4096,4096,0,1
"""


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    def run(*options: str, instances: str | bytes = INSTANCES, tasks: str | bytes = TASKS) -> Any:
        for name, text in (("instances", instances), ("tasks", tasks)):
            (tmp_path / f"{name}.csv").write_bytes(text.encode() if isinstance(text, str) else text)
        files = ["--instances", str(tmp_path / "instances.csv"), "--tasks", str(tmp_path / "tasks.csv")]
        return CliRunner().invoke(app, ["place", *files, *options], catch_exceptions=False)

    return run


def test_the_figures_are_those_of_the_plan(bench: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    answer = bench("--strategy", "best-fit", "--json", "--assignments", str(out), "--repeat", "2")
    report = json.loads(answer.output)
    assert {key: report[key] for key in ("placed", "unplaced", "instancesUsed")} == {
        "placed": 5,
        "unplaced": 1,
        "instancesUsed": 3,
    }
    assert report["cpuAllocatedPct"] == pytest.approx(100 * (3 * 1024 + 1024 + 4096) / 14336, abs=1e-3)
    assert report["gpuAllocatedPct"] == 100.0
    assert report["secondsMedian"] > 0
    assert report["peakRssMib"] > 10
    with out.open() as file:
        assert list(csv.reader(file)) == [
            ["taskId", "instanceId", "count"], ["small", "i-1", "2"], ["small", "i-3", "1"], ["gpu", "i-2", "1"],
            ["large", "i-2", "1"],
        ]  # fmt: skip


def test_best_fit_is_the_smallest_weighted_sum_left_ties_to_the_lower_row(bench: Any) -> None:
    tied = "instanceId,instanceType,availabilityZone,cpu,memory,gpus\nb,x,z,1,9,0\na,x,z,2,1,0\n"
    answer = bench(
        "--strategy", "best-fit", "--json", instances=tied, tasks="taskId,cpu,memory,gpus,count\nt,1,1,0,1\n"
    )
    assert json.loads(answer.output)["memoryAllocatedPct"] == 10.0


def test_without_a_strategy_gpu_instances_are_kept_free(bench: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    one = "taskId,cpu,memory,gpus,count\nt,4096,4096,0,1\n"
    assert bench("--assignments", str(out), tasks=one).exit_code == 0
    assert "t,i-3,1" in out.read_text()


def test_constraints_strategies_and_ports_may_be_per_task(bench: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    tasks = (
        "taskId,cpu,memory,gpus,count,constraint,strategy,hostPorts\n"
        "a,1,1,0,2,attribute:rack == r2,,\nb,1,1,0,2,,spread:instanceId,80/tcp;53/udp\nc,1,1,0,9,,cheapest,\n"
    )
    assert bench("--assignments", str(out), "--constraint", "attribute:rack exists", tasks=tasks).exit_code == 0
    assert out.read_text().splitlines()[1:] == ["a,i-3,2", "b,i-1,1", "b,i-3,1", "c,i-1,9"]


def test_header_lines_alone_are_an_empty_answer(bench: Any) -> None:
    nothing = json.loads(bench("--json", instances=INSTANCES.splitlines()[0] + "\n").output)
    assert (nothing["placed"], nothing["unplaced"], nothing["cpuAllocatedPct"]) == (0, 6, 0.0)
    assert json.loads(bench("--json", tasks=TASKS.splitlines()[0] + "\n").output)["placed"] == 0


HEAD = "taskId,cpu,memory,gpus,count\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"tasks": ""}, "tasks.csv: is empty"),
        ({"tasks": "taskId,cpu,memory,count\n"}, "tasks.csv:1: has no column gpus"),
        ({"tasks": "taskId,cpu,cpu,memory,gpus,count\n"}, "names a column twice"),
        ({"tasks": HEAD + "a,1,1,0\n"}, "tasks.csv:2: 4 cells, the header has 5"),
        ({"tasks": HEAD + "a,1,1,0,1\na,1,1,0,1\n"}, "tasks.csv:3: taskId 'a' is listed twice"),
        ({"tasks": HEAD + ",1,1,0,1\n"}, "taskId is empty"),
        ({"tasks": HEAD + "a,-1,1,0,1\n"}, "tasks.csv:2: cpu '-1' is not a whole number"),
        ({"tasks": HEAD + "a,NaN,1,0,1\n"}, "cpu 'NaN' is not a whole number"),
        ({"tasks": HEAD + "a,1.5,1,0,1\n"}, "cpu '1.5' is not a whole number"),
        ({"tasks": HEAD + "a,1," + "9" * 30 + ",0,1\n"}, "memory is above"),
        ({"tasks": HEAD + "a,1,1,0," + "9" * 15 + "\n"}, "count is above"),
        ({"tasks": HEAD + "".join(f"t{n},1,1,0,{2**40}\n" for n in range(2))}, "can be placed at once"),
        ({"tasks": HEAD + 'a,"1,1,0,1\n'}, "is not a CSV in UTF-8"),
        ({"tasks": HEAD.encode() + b"\xff,1,1,0,1\n"}, "is not a CSV in UTF-8"),
        ({"tasks": HEAD.replace("\n", ",strategy\n") + "a,1,1,0,1,fastest\n"},
         "tasks.csv:2: 'fastest' is not a strategy"),
        ({"tasks": HEAD.replace("\n", ",constraint\n") + "a,1,1,0,1,zone == a\n"},
         "tasks.csv:2: 'zone == a' is not a cluster query"),
        ({"tasks": HEAD.replace("\n", ",hostPorts\n") + "a,1,1,0,1,http\n"}, "hostPorts 'http'"),
        ({"tasks": HEAD.replace("\n", ",hostPorts\n") + "a,1,1,0,1,99999\n"}, "is not a host port"),
        ({"instances": INSTANCES + "i-1,x,a,1,1,0,0,\n"}, "instances.csv:5: instanceId 'i-1' is listed twice"),
        ({"instances": INSTANCES + "i-4,x,a,1,1,0,nan,\n"}, "price 'nan'"),
        ({"instances": INSTANCES + "i-4,x,a,1,1,0,dear,\n"}, "price 'dear'"),
        ({"instances": INSTANCES + "i-4,x,a,1,1,99999999,1,\n"}, "gpus is above"),
    ],
)  # fmt: skip
def test_a_faulty_file_is_refused_with_its_place(bench: Any, files: dict[str, Any], said: str) -> None:
    answer = bench(**files)
    assert answer.exit_code == 2
    assert said in answer.output.replace("\n", " ")


def test_a_missing_file_and_an_unwritable_one_are_reported(bench: Any, tmp_path: Path) -> None:
    assert bench("--assignments", str(tmp_path / "no" / "out.csv")).exit_code == 2
    answer = CliRunner().invoke(app, ["place", "--instances", str(tmp_path / "none"), "--tasks", "none"])
    assert answer.exit_code == 2
    assert "No such file" in answer.output


@pytest.mark.parametrize(
    "options",
    [
        ("--strategy", "fastest"),
        ("--strategy", ""),
        ("--constraint", "attribute:a =="),
        ("--strategy", ",".join(["random"] * 6)),
    ],
)
def test_a_faulty_option_is_refused(bench: Any, options: tuple[str, ...]) -> None:
    assert bench(*options).exit_code == 2


def test_people_get_lines(bench: Any) -> None:
    assert "placed               5" in bench().output
