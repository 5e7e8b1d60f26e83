"""`report benchmark`: the figures of 2019, runs of our own, measurements that are not compared, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.cli.runs.report import notes
from argosy.client.benchmarks import NoRecord, comparison, from_record, read
from tests.fakes.cli import OUTPUT, RUN_ID, World, ended, run_view, tasks

RECORDED = Path(__file__).resolve().parents[4] / "containers" / "tensorflow-benchmark" / "recorded"
OF_2019 = [str(RECORDED / f"2019-{count}-gpu.txt") for count in (1, 4, 8)]


def files(*names: str) -> list[str]:
    return [word for name in names for word in ("--file", name)]


def record(**changes: Any) -> dict[str, Any]:
    return {
        "record": "argosy-benchmark/1",
        "model": "resnet50",
        "imageSize": 224,
        "precision": "mixed",
        "xla": False,
        "gpus": 4,
        "pinnedGpus": ["GPU-a", "GPU-b", "GPU-c", "GPU-d"],
        "gpuNames": ["V100"] * 4,
        "emulated": False,
        "batchPerGpu": 64,
        "images": 25_600,
        "imagesPerSecond": 1280.0,
        "deviation": 3.0,
        "oneGpuImagesPerSecond": 330.0,
        "scalingEfficiency": 0.97,
        "startUpSeconds": 40.0,
        "warmUpSeconds": 2.0,
        "timedSeconds": 20.0,
        "totalSeconds": 64.0,
        **changes,
    }


def test_the_figures_of_2019_come_out_as_they_were_published_and_derived() -> None:
    answer = World().argosy("report", "benchmark", *files(*OF_2019), "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)["measurements"]
    assert [row["gpus"] for row in found] == [1, 4, 8]
    assert [row["imagesPerSecond"] for row in found] == [321.16, 1297.41, 1707.23]
    assert [round(row["wholeTaskImagesPerSecond"]) for row in found] == [102, 576, 720]
    assert [round(row["usdPerMillionImages"], 2) for row in found] == [2.65, 2.62, 3.98]


def test_unlike_batches_per_gpu_are_flagged_and_not_compared() -> None:
    answer = World().argosy("report", "benchmark", *files(*OF_2019), "--json")
    found = json.loads(answer.stdout)
    one, four, eight = found["measurements"]
    assert (one["scaling"], four["scaling"], four["shareOfLinear"]) == (None, None, None)
    assert eight["comparedWith"] == "2019-4-gpu"
    assert (round(eight["scaling"], 2), round(eight["shareOfLinear"], 2)) == (1.32, 0.66)
    assert found["notes"] == [
        "not compared: 2019-1-gpu (1 GPU) with 2019-4-gpu (4 GPUs), 2019-8-gpu (8 GPUs):"
        " different batches per GPU, 32 and 128 images"
    ]


def test_a_record_of_pytorch_may_count_tokens_and_is_not_compared_with_images(tmp_path: Path) -> None:
    setting = {"framework": "PyTorch", "model": "gpt", "emulated": "no"}
    counted = {"unit": "tokens", "setting": setting, "tokens": 2_000_000, "tokensPerSecond": 50_000.0, "gpus": 1}
    of_pytorch = {name: value for name, value in record(**counted).items() if not name.startswith("images")}
    both = tmp_path / "gpt.txt", tmp_path / "resnet.txt"
    both[0].write_text(f"# instance: g6.xlarge\n{json.dumps(of_pytorch)}\n")
    both[1].write_text(json.dumps(record()))
    found = json.loads(World().argosy("report", "benchmark", *files(*map(str, both)), "--json").stdout)
    gpt, resnet = found["measurements"]
    assert (gpt["tokensPerSecond"], gpt["wholeTaskTokensPerSecond"]) == (50_000, 2_000_000 / 64)
    hourly = load_catalogue()["g6.xlarge"].on_demand_usd_per_hour
    assert gpt["usdPerMillionTokens"] == pytest.approx(hourly / 50_000 / 3600 * 1e6)
    assert (resnet["imagesPerSecond"], resnet["comparedWith"]) == (1280, None)
    assert "framework PyTorch and unknown" in found["notes"][0]
    assert "TOKENS/S" in World().argosy("report", "benchmark", *files(str(both[0]))).stdout
    assert "UNITS/S" in World().argosy("report", "benchmark", *files(*map(str, both))).stdout


def test_a_person_sees_the_same_as_a_table() -> None:
    shown = World().argosy("report", "benchmark", *files(*OF_2019)).stdout
    assert "1707.23" in shown
    assert "1.32 x     66%" in shown
    assert "$2.65" in shown
    assert "not compared: 2019-1-gpu" in shown


def reported(**changes: Any) -> dict[str, Any]:
    """The row of a run of one task of 72 s that cost 0.64 USD, half of them useful; `changes` to its record."""
    view = ended(name="benchmark-4-gpu", gpus=4, tasks=tasks(succeeded=1), attempts=1, costUsd=0.64, usefulUsd=0.32)
    world = World().answers("DescribeRun", view)
    entry = {
        "index": 0, "status": "SUCCEEDED", "attempt": 1, "keys": [f"{RUN_ID}/parts/part-0000000.jsonl"], "bytes": 1,
        "seconds": 72.0, "instance": "i-1", "instanceType": "p3.8xlarge", "gpuIds": ["GPU-a"],
    }  # fmt: skip
    world.objects.put(f"{OUTPUT}manifest.json", json.dumps({"entries": [entry]}).encode())
    world.objects.put(f"{OUTPUT}parts/part-0000000.jsonl", json.dumps(record(**changes)).encode())
    [row] = json.loads(world.argosy("report", "benchmark", RUN_ID, "--json").stdout)["measurements"]
    return dict(row)


def test_a_run_is_reported_with_what_it_paid_at_work_and_as_a_whole() -> None:
    row = reported()
    assert (row["source"], row["instanceType"], row["batchPerGpu"]) == (RUN_ID, "p3.8xlarge", 64)
    assert row["wholeTaskUsdPerMillionImages"] == pytest.approx(0.64 / 25_600 * 1e6)
    assert row["usdPerMillionImages"] == pytest.approx(0.32 / 72 / 1280 * 1e6)
    assert row["wholeTaskImagesPerSecond"] == pytest.approx(25_600 / 72)


def test_the_one_gpu_that_others_are_held_against_is_no_part_of_the_task() -> None:
    row = reported(baselineSeconds=8.0)
    assert row["wholeTaskImagesPerSecond"] == pytest.approx(25_600 / 64)
    assert row["wholeTaskUsdPerMillionImages"] == pytest.approx(0.64 * 64 / 72 / 25_600 * 1e6)
    assert row["usdPerMillionImages"] == reported()["usdPerMillionImages"]


def test_a_run_that_has_not_ended_or_is_no_benchmark_is_refused() -> None:
    world = World().answers("DescribeRun", run_view())
    answer = world.argosy("report", "benchmark", RUN_ID)
    assert (answer.exit_code, "is RUNNING and has no results to report yet" in answer.stderr) == (2, True)
    world = World().answers("DescribeRun", ended(tasks=tasks(succeeded=1)))
    entry = {"index": 0, "status": "SUCCEEDED", "keys": [f"{RUN_ID}/x"], "seconds": 1.0, "instanceType": None}
    world.objects.put(f"{OUTPUT}manifest.json", json.dumps({"entries": [entry]}).encode())
    world.objects.put(f"{OUTPUT}x", b'{"index": 1}\n')
    answer = world.argosy("report", "benchmark", RUN_ID)
    assert (answer.exit_code, "is not a benchmark: it has no line" in answer.stderr) == (2, True)
    world.objects.put(f"{OUTPUT}manifest.json", json.dumps({"entries": [{**entry, "status": "FAILED"}]}).encode())
    answer = world.argosy("report", "benchmark", RUN_ID)
    assert (answer.exit_code, f"No task of {RUN_ID} succeeded" in answer.stderr) == (2, True)


def test_every_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "bare.txt").write_text("total images/sec: 12.5\n")
    (tmp_path / "cut.txt").write_text('{"record": "argosy-benchmark/1"}\n')
    names = [str(tmp_path / name) for name in ("none.txt", "empty.txt", "bare.txt", "cut.txt")]
    answer = World().argosy("report", "benchmark", *files(*names))
    assert answer.exit_code == 2
    for part in (
        "4 files cannot be used",
        "none.txt: No such file",
        "empty.txt: it has no line `total images/sec: N`",
        "bare.txt: it lacks the number of GPUs and the batch per GPU",
        "cut.txt: its record is damaged: KeyError",
    ):
        assert part in answer.stderr


def test_nothing_to_report_says_what_to_name() -> None:
    answer = World().argosy("report", "benchmark")
    assert (answer.exit_code, "Name runs, or give logs with --file" in answer.stderr) == (2, True)


def test_the_log_of_tf_cnn_benchmarks_speaks_for_itself() -> None:
    log = """\
Model:       resnet50
Batch size:  512 global
             128 per device
Num batches: 100
Devices:     ['/gpu:0', '/gpu:1', '/gpu:2', '/gpu:3']
total images/sec: 1297.41

real    1m28.90s
"""
    found = read(log, "log")
    assert (found.gpus, found.batch_per_gpu, found.units, found.total_s) == (4, 128, 51_200, 88.9)
    assert dict(found.setting) == {"model": "resnet50"}
    assert read(log.replace("real    1m28.90s", "1:28.90elapsed"), "log") == found
    without = log.replace("             128 per device\n", "")
    assert read(without, "log").batch_per_gpu == 128


def test_what_a_comment_says_wrongly_is_not_taken() -> None:
    log = "# gpus: 2\n# batch: 8\n# seconds: soon\ntotal images/sec: 3\n"
    assert read(log, "log").total_s is None
    with pytest.raises(NoRecord, match="the number of GPUs"):
        read(log.replace("gpus: 2", "gpus: two"), "log")


def test_a_record_wins_over_the_log_around_it() -> None:
    text = f"# instance: p3.8xlarge\nround 1\n{{broken\n{json.dumps(record())}\ntotal images/sec: 1\n"
    found = read(text, "log")
    assert (found.units_per_second, found.instance_type) == (1280.0, "p3.8xlarge")


def test_what_else_differs_is_not_compared_either() -> None:
    plain, mixed = from_record(record(precision="float32", gpus=1), "a"), from_record(record(), "b")
    emulated = from_record(record(emulated=True), "c")
    assert [row["scaling"] for row in comparison([plain, mixed, emulated])] == [None, None, None]
    said = notes([plain, mixed, emulated])
    assert len(said) == 3
    assert said[0] == "not compared: a (1 GPU) with b (4 GPUs): precision float32 and mixed"
    assert "emulated no and yes" in said[2]
    assert notes([mixed, mixed]) == []
