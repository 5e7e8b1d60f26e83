"""The PyTorch training image's program with PyTorch: what it learns, its record, its checkpoints and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from argosy.client.benchmarks import from_record, read
from tests.containers import s3
from tests.readmes import needs_pytorch

pytestmark = [pytest.mark.engine, needs_pytorch]

IMAGE = "pytorch-training"
DIGITS = ("--model", "resnet-tiny", "--data", "real", "--warm-up", "10")
LONG = (*DIGITS, "--steps", "100000", "--steps-per-round", "5")


def training(*arguments: str, **environment: str) -> s3.Ended:
    return s3.run(IMAGE, "training", *arguments, **environment)


def record_of(ended: s3.Ended) -> dict[str, Any]:
    assert ended.code == 0, ended.err
    return dict(json.loads(ended.out.splitlines()[-2]))


def stopped_after_a_round(*arguments: str, **environment: str) -> s3.Ended:
    process = s3.start(IMAGE, "training", *arguments, **environment)
    assert process.stdout is not None
    assert any(line.startswith("step 5") for line in process.stdout)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    return s3.Ended(process.returncode, out, err)


def test_a_tiny_resnet_learns_digits_and_its_record_is_a_benchmark(tmp_path: Path) -> None:
    part, model = tmp_path / "part.jsonl", tmp_path / "model.pt"
    where = ("--output", str(part), "--save-model", str(model))
    ended = training(*DIGITS, "--steps", "600", *where, NVIDIA_VISIBLE_DEVICES="GPU-a", TRAINING_CPU_PROCESSES="1")
    [record] = s3.rows(part.read_text())
    assert record_of(ended) == record
    assert record["accuracy"] > 0.9
    assert (record["gpus"], record["batchPerGpu"], record["pinnedGpus"]) == (1, 32, ["GPU-a"])
    assert record["images"] == 32 * (600 - 10)
    assert record["imagesPerSecond"] == pytest.approx(record["images"] / record["timedSeconds"])
    phases = record["startUpSeconds"] + record["warmUpSeconds"] + record["timedSeconds"]
    assert 0 < phases <= record["totalSeconds"] < phases + 1
    assert ended.out.splitlines()[-1] == f"total images/sec: {record['imagesPerSecond']:.2f}"
    measured = read(ended.out, "log")
    assert measured == from_record(record, "log")
    assert dict(measured.setting)["emulated"] == "yes"
    assert model.stat().st_size > 10_000
    again = training(*DIGITS, "--steps", "20", "--output", str(part))
    assert (again.code, f"already there: {part}" in again.out) == (0, True)


def test_a_tiny_gpt_learns_text() -> None:
    record = record_of(training("--model", "gpt-tiny", "--data", "real", "--steps", "150"))
    assert record["loss"] < 3  # of 5.5 = log(256) at the start
    assert record["tokens"] == 8 * 64 * 130
    assert record["setting"]["sequence"] == "64"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_stopped_training_ends_as_one_that_was_never_stopped(processes: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "attempts")
    work = ("--cpu-processes", processes, "--checkpoints", folder)
    stopped = stopped_after_a_round(*LONG, *work)
    assert stopped.code == 143
    assert "stopped by SIGTERM after step" in stopped.err
    assert "Traceback" not in stopped.err
    kept = tmp_path / "attempts" / "1" / "checkpoint.pt"
    assert f"checkpoint {kept}" in stopped.err
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    after = int(stopped.err.split("after step ")[1].split()[0])
    rest = (*DIGITS, "--steps", str(after + 30), "--cpu-processes", processes)
    continued = training(*rest, "--checkpoints", folder, ARGOSY_TASK_ATTEMPT="2")
    assert f"continues after step {after} of {after + 30}, from {kept}" in continued.out
    assert record_of(continued)["resumedAfter"] == after
    assert record_of(continued)["loss"] == record_of(training(*rest))["loss"]


def test_a_checkpoint_that_is_damaged_or_of_other_work_is_passed_over(tmp_path: Path) -> None:
    small = (*DIGITS, "--steps", "60", "--checkpoint-seconds", "0.001", "--checkpoints", str(tmp_path))
    assert "kept step" in training(*small).out
    for attempt, content in (("2", b""), ("3", (tmp_path / "1" / "checkpoint.pt").read_bytes()[:3000])):
        (tmp_path / attempt).mkdir()
        (tmp_path / attempt / "checkpoint.pt").write_bytes(content)
    other = training(*small, "--batch-size", "16", ARGOSY_TASK_ATTEMPT="4")
    assert record_of(other)["resumedAfter"] == 0
    assert f"{tmp_path}/1/checkpoint.pt belongs to other work" in other.err
    assert other.err.count("cannot be read and is passed over") == 2
    none_left = training(*DIGITS, "--steps", "20", "--checkpoints", str(tmp_path), "--batch-size", "16")
    assert (none_left.code, "--steps asks for no more" in none_left.err) == (64, True)


def test_checkpoints_are_in_s3_next_to_the_attempts_and_the_next_one_continues() -> None:
    with s3.bucket() as bucket:
        folder = f"s3://{s3.BUCKET}/run/attempts/0000000/"
        aws = {"AWS_ENDPOINT_URL": bucket.endpoint}
        assert stopped_after_a_round(*LONG, ARGOSY_OUTPUT_URI=f"{folder}1/", **aws).code == 143
        assert bucket.keys("run/") == ["run/attempts/0000000/checkpoints/1/checkpoint.pt"]
        second = aws | {"ARGOSY_TASK_ATTEMPT": "2", "ARGOSY_OUTPUT_URI": f"{folder}2/"}
        part = f"s3://{s3.BUCKET}/run/parts/part-0000000.jsonl"
        ended = training(*DIGITS, "--steps", "2000", ARGOSY_PART_URI=part, **second)
        assert (ended.code, "continues after step" in ended.out) == (0, True), ended.err
        assert bucket.metadata("run/parts/part-0000000.jsonl")["argosy-attempt"] == "2"


def test_a_process_that_dies_takes_the_others_along() -> None:
    process = s3.start(IMAGE, "training", *LONG, "--cpu-processes", "2")
    assert process.stdout is not None
    assert any(line.startswith("step 5") for line in process.stdout)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[1]), signal.SIGKILL)
    began = time.monotonic()
    process.communicate(timeout=60)
    assert (process.returncode, time.monotonic() - began < 30) == (9, True)
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []


def test_two_processes_of_torchrun_train_together() -> None:
    """Its environment, set by hand: Debian's torchrun 1.13 does not work with Python 3.11."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        s3.start(IMAGE, "training", *DIGITS, "--steps", "20", **address, WORLD_SIZE="2", RANK=rank, LOCAL_RANK=rank)
        for rank in "01"
    ]
    (out, err), (silent, _) = [each.communicate(timeout=s3.PATIENCE_S) for each in started]
    assert [each.returncode for each in started] == [0, 0], err
    assert (json.loads(out.splitlines()[-2])["gpus"], silent) == (2, "")


def test_bfloat16_is_used_where_it_is_asked_for() -> None:
    record = record_of(training(*DIGITS, "--steps", "40", "--precision", "bf16"))
    assert (record["setting"]["precision"], record["loss"] < 2.3) == ("bf16", True)


def test_what_cannot_work_anywhere_exits_64() -> None:
    pinned = training(*DIGITS, NVIDIA_VISIBLE_DEVICES="GPU-a,GPU-b")
    assert (pinned.code, "2 GPUs were given, but this image is the CPU flavour" in pinned.err) == (64, True)


def test_resnet_50_is_the_one_of_the_paper_and_attention_sees_no_later_token() -> None:
    """25,557,032 parameters, as torchvision's has, with the same names."""
    words, folder = [str(s3.PYTORCH), "-c", LOOKED_AT], s3.CONTAINERS / IMAGE
    said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (said.stdout, said.stderr) == ("25557032 True True\n", "")


LOOKED_AT = """
import torch, pytorch_networks as networks
resnet = networks.image_network("resnet50", 1000)
names = dict(resnet.named_parameters())
named = {"conv1.weight", "layer1.0.downsample.0.weight", "layer4.2.bn3.bias", "fc.weight"} <= set(names)
gpt = networks.text_network("gpt-tiny", 256, 16).eval()
one = torch.arange(16)[None]; other = one.clone(); other[0, 9:] += 1
print(sum(each.numel() for each in names.values()), named, torch.equal(gpt(one)[0, :9], gpt(other)[0, :9]))
"""
