"""What does `bench shares` count as the part of the GPUs that is in use?"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.harness.bench.__main__ import app
from tests.harness.bench.shares import Device, Node, Task

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-1,64000,262144,2,T4\nn-2,64000,262144,0,\n"


def filled(tmp_path: Path, tasks: str, *options: str) -> dict[str, Any]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "tasks.csv").write_text(f"name,cpu_milli,num_gpu,gpu_milli\n{tasks}")
    files = ["--nodes", str(tmp_path / "nodes.csv"), "--tasks", str(tmp_path / "tasks.csv")]
    answer = CliRunner().invoke(app, ["shares", *files, "--seeds", "2", "--json", *options], catch_exceptions=False)
    found: dict[str, Any] = json.loads(answer.output)
    return found


@pytest.mark.parametrize("device", Device)
@pytest.mark.parametrize("together", ["1", "9"])
def test_rests_that_no_task_fits_into_are_not_in_use(tmp_path: Path, device: str, together: str) -> None:
    found = filled(tmp_path, "a,1000,1,600\n", "--arrivals", "300", "--device", device, "--together", together)
    assert (found["gpusAllocatedPct"], found["refusedByEcs"]) == (60.0, 0)
    assert found["started"] == [2, 2]


def test_whole_gpus_and_tasks_without_one_are_placed_too(tmp_path: Path) -> None:
    found = filled(tmp_path, "a,1000,2,1000\nb,1000,0,0\nc,1000,1,1000\n", "--arrivals", "150")
    assert found["gpusAllocatedPct"] in (75.0, 100.0)


def test_cpu_can_be_what_is_short(tmp_path: Path) -> None:
    assert filled(tmp_path, "a,40000,1,500\n")["started"] == [1, 1]


@pytest.mark.parametrize(("device", "taken"), [(Device.FULLEST, [800, 0]), (Device.EMPTIEST, [500, 300])])
def test_ecs_chooses_the_gpu(device: Device, taken: list[int]) -> None:
    node, chance = Node("n", 9_999, [0, 0]), random.Random(0)
    assert [node.start(Task(1, 0, share), device, chance) for share in (500, 300)] == [True, True]
    assert sorted(node.taken, reverse=True) == taken
    assert node.start(Task(1, 1, 0), device, chance) is (device is Device.FULLEST)
