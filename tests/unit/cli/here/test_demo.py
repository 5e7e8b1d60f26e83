"""`demo`: which instance is taken away and when, and that every figure of the summary is read from the runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argosy.cli.here.demo import report as demo_report
from argosy.cli.here.demo.command import RUN_FILES, slowed
from argosy.cli.here.demo.supervision import AGAIN_AFTER_S, TIME_LIMIT_S, RunSupervisor, StepLog, busiest_instance
from argosy.cli.here.examples import example
from argosy.cli.problems import CliError
from argosy.cli.session import Session, Tools
from argosy.client.aws_clients import Connection
from tests.fakes.cli import RUN_ID, World, ended, golden, instance, run_view, task_row, tasks

ROWS = [{"index": 900, "label": 3, "predicted": 3}, {"index": 901, "label": 5, "predicted": 8}]


def running(index: int, instance_id: str, seconds: float = 2.0) -> dict[str, Any]:
    return task_row(index, status="RUNNING", instance=instance_id, seconds=seconds)


def test_the_instance_with_the_most_running_tasks_is_taken() -> None:
    assert (
        busiest_instance([running(0, "i-a"), running(1, "i-b"), running(2, "i-b"), task_row(3, instance="i-a")])
        == "i-b"
    )


def test_of_equals_the_one_with_the_most_work_left() -> None:
    assert busiest_instance([running(0, "i-a", 9.0), running(1, "i-b", 2.0)]) == "i-b"


def test_while_nothing_runs_nothing_is_taken() -> None:
    assert busiest_instance([task_row(0), task_row(1, status="STARTING")]) is None


def test_an_instance_whose_tasks_have_only_begun_is_not_in_the_middle_of_its_work() -> None:
    assert busiest_instance([running(0, "i-a", 0.2)]) is None


class Cloud:
    endpoint_url = "http://127.0.0.1:1"
    region = "us-east-1"

    def __init__(self) -> None:
        self.interrupted: list[str] = []

    def interrupt(self, instance_id: str, notice_s: float) -> None:
        assert notice_s < 10
        self.interrupted.append(instance_id)


def play(world: World) -> tuple[RunSupervisor, Cloud]:
    cloud = Cloud()
    session = Session(Tools(world.client, lambda: world.now, world.sleep), Connection())
    return RunSupervisor(session, cloud, StepLog(session, world.now)), cloud


BUSY = run_view(interruptions=0, taskList=[running(0, "i-a")])


def test_one_interruption_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    world = World().answers("DescribeRun", BUSY, BUSY, run_view(interruptions=1), ended())
    stage, cloud = play(world)
    assert [view["status"] for view in stage.until_ended([RUN_ID])] == ["SUCCEEDED"]
    assert cloud.interrupted == ["i-a"]
    assert "spot interruption: i-a" in capsys.readouterr().out


def test_an_interruption_that_hit_nothing_is_followed_by_another() -> None:
    world = World().answers("DescribeRun", BUSY)
    stage, cloud = play(world)

    def end_after_the_second(_: float) -> None:
        if len(cloud.interrupted) > 1:
            world.answers("DescribeRun", ended())

    world.on_sleep = end_after_the_second
    begun = world.now
    stage.until_ended([RUN_ID])
    assert cloud.interrupted == ["i-a", "i-a"]
    assert world.now - begun >= AGAIN_AFTER_S


def test_a_demo_that_hangs_ends_with_exit_code_4() -> None:
    world = World().answers("DescribeRun", run_view())
    begun = world.now
    with pytest.raises(CliError) as stop:
        play(world)[0].until_ended([RUN_ID])
    assert stop.value.exit_code == 4
    assert world.now - begun <= TIME_LIMIT_S + 1


@pytest.mark.parametrize("name", RUN_FILES)
def test_the_run_files_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(Path(__file__).parents[4])
    assert example(name) == Path("containers") / name
    monkeypatch.chdir(tmp_path)
    assert example(name).is_file()


def test_accuracy_is_the_share_of_right_rows(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number, row in enumerate(ROWS):
        (tmp_path / "parts" / f"part-{number:07d}.jsonl").write_text(json.dumps(row) + "\n")
    rows = demo_report.rows_of(tmp_path)
    assert rows == ROWS
    assert demo_report.accuracy(rows) == 0.5
    assert demo_report.accuracy([]) == 0.0


def test_an_image_that_appears_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        demo_report.accuracy([ROWS[0], ROWS[0]])


def entry(index: int, where: str, *gpus: str) -> dict[str, Any]:
    return {"index": index, "instance": where, "gpuIds": list(gpus), "keys": [], "bytes": 1}


def measured() -> dict[str, Any]:
    ledger = {"byWaste": {"usefulUsd": 0.151, "bootUsd": 0.05, "idleUsd": 0.05, "redoneUsd": 0.0, "failedUsd": 0.0}}
    changes = {"tasks": tasks(succeeded=2), "attempts": 2, "interruptions": 0, "costUsd": 0.5, "cost": ledger}
    gpu_run = ended(runId="digits-gpu-1", gpus=1, **changes)
    cluster = {
        "instances": [instance(), instance(instanceId="i-2", instanceType="p3.8xlarge")],
        "peakUtilisation": {"cpu": 0.9, "memory": 0.5, "gpus": None},
        "spentUsd": 1.25,
        "onDemandUsd": 3.5,
    }
    manifests = [{"entries": [entry(0, "i-1")]}, {"entries": [entry(0, "i-2", "GPU-a"), entry(1, "i-2", "GPU-b")]}]
    return demo_report.summary([ended(cost=ledger), gpu_run], manifests, cluster, ROWS, ["i-0taken"]) | {
        "seconds": 61.5
    }


def test_the_summary_adds_up_both_runs_unrounded() -> None:
    found = measured()
    assert found["tasks"] == tasks(succeeded=20)
    assert (found["attempts"], found["interruptions"], found["costUsd"]) == (21, 1, 0.502134)
    assert found["gpuTasks"] == [
        {"index": 0, "instance": "i-2", "gpuIds": ["GPU-a"]},
        {"index": 1, "instance": "i-2", "gpuIds": ["GPU-b"]},
    ]
    assert (found["instances"], found["accuracy"], found["images"]) == (3, 0.5, 2)


def test_the_closing_table() -> None:
    from rich.console import Console

    console = Console(width=100, force_terminal=False)
    with console.capture() as capture:
        console.print(demo_report.closing_table(measured(), Path("out/demo/results")))
    golden("demo", capture.get())


def test_a_gpu_that_two_tasks_used_is_reported() -> None:
    rows = [{"index": i, "instance": "i-1", "gpuIds": ["GPU-a"]} for i in range(2)]
    assert demo_report.gpu_line(rows) == "2 tasks on 1 instance used 1 GPU, 1 of them by several tasks"


def test_slowed_images_keep_the_rest_of_the_spec() -> None:
    spec = {"name": "d", "container": {"image": "argosy/digits", "command": ["x"]}, "array": {"shardSize": 50}}
    slow = slowed(spec)
    assert slow["container"]["command"][:2] == ["x", "--seconds-per-image"]
    assert float(slow["container"]["command"][2]) * 50 < TIME_LIMIT_S / 10
    assert spec["container"] == {"image": "argosy/digits", "command": ["x"]}
    assert slow["array"] == spec["array"]


def test_an_instance_that_has_just_gone_is_not_counted_as_taken() -> None:
    class Gone(Cloud):
        def interrupt(self, instance_id: str, notice_s: float) -> None:
            raise ValueError("not running")

    world = World().answers("DescribeRun", BUSY, BUSY, ended())
    session = Session(Tools(world.client, lambda: world.now, world.sleep), Connection())
    stage = RunSupervisor(session, Gone(), StepLog(session, world.now))
    stage.until_ended([RUN_ID])
    assert stage.taken == []


def test_once_an_interruption_has_hit_no_further_one_follows() -> None:
    hit = run_view(interruptions=1, taskList=[running(0, "i-b")])
    world = World().answers("DescribeRun", BUSY, BUSY, *[hit] * 60, ended())
    stage, cloud = play(world)
    stage.until_ended([RUN_ID])
    assert world.slept
    assert cloud.interrupted == ["i-a"]
