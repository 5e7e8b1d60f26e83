"""The PyTorch inference image's program with PyTorch: a trained network, real images, an S3, a stop and a retry.

What it shares with the TensorFlow image has its tests in test_inference.py and tests/unit/containers.
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from argosy.client.benchmarks import read
from tests.containers import s3
from tests.readmes import needs_pytorch

pytestmark = [pytest.mark.engine, needs_pytorch]

IMAGE = "pytorch-inference"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """images/, truth.json and model.pt."""
    folder: Path = tmp_path_factory.mktemp("digits")
    words = [str(s3.PYTORCH), "examples/digits.py", str(folder)]
    subprocess.run(words, cwd=s3.CONTAINERS / IMAGE, check=True, capture_output=True, timeout=s3.PATIENCE_S)
    what = ("--model", "resnet-tiny", "--data", "real", "--steps", "600", "--save-model", str(folder / "model.pt"))
    assert s3.run("pytorch-training", "training", *what).code == 0
    return folder


def inference(*arguments: str, **environment: str) -> s3.Ended:
    return s3.run(IMAGE, "inference", *arguments, **environment)


def task(digits: Path, bucket: s3.Bucket, run: str, attempt: int = 1) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": bucket.endpoint,
        "ARGOSY_PART_URI": f"s3://{s3.BUCKET}/{run}/parts/part-0000000.jsonl",
        "ARGOSY_OUTPUT_URI": f"s3://{s3.BUCKET}/{run}/attempts/0/{attempt}/",
        "ARGOSY_TASK_ATTEMPT": str(attempt),
        "INFERENCE_IMAGES": str(digits / "images"),
        "INFERENCE_MODEL": bucket.put("models/digits/model.pt", (digits / "model.pt").read_bytes()),
        "INFERENCE_BATCH_SIZE": "10",
    }


def test_a_task_writes_its_rows_once_and_next_to_them_what_report_benchmark_reads(
    digits: Path, bucket: s3.Bucket
) -> None:
    ended = inference("1500:1797", **task(digits, bucket, "classified"))
    assert ended.code == 0, ended.err
    rows, truth = bucket.rows("classified/parts/part-0000000.jsonl"), json.loads((digits / "truth.json").read_text())
    assert [row["index"] for row in rows] == list(range(1500, 1797))
    assert sum(row["top"][0]["label"] == str(truth[row["index"]]) for row in rows) > 0.9 * 297
    assert all(row["top"][k]["score"] >= row["top"][k + 1]["score"] for row in rows for k in range(4))
    [record] = bucket.rows("classified/attempts/0/1/benchmark.json")
    measured = read(json.dumps(record), "task")
    assert (measured.units, measured.batch_per_gpu, measured.unit) == (297, 10, "images")
    speed = float(bucket.metadata("classified/parts/part-0000000.jsonl")["argosy-images-per-second"])
    assert measured.units_per_second == pytest.approx(speed, abs=0.01)
    again = inference("1500:1797", **task(digits, bucket, "classified", attempt=2))
    assert (again.code, "already there" in again.out) == (0, True)
    assert len(bucket.keys("classified/")) == 2


def test_a_stopped_task_is_taken_up_by_its_retry_and_no_image_is_done_twice(digits: Path, bucket: s3.Bucket) -> None:
    slow = {"INFERENCE_SECONDS_PER_IMAGE": "0.1"}
    process = s3.start(IMAGE, "inference", "100:300", **task(digits, bucket, "stop"), **slow)
    assert process.stdout is not None
    assert any(line.startswith("classified ") for line in process.stdout)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    kept = bucket.rows("stop/attempts/0/checkpoints/1/checkpoint.jsonl")[1:]
    assert 0 < len(kept) < 200
    ended = inference("100:300", **task(digits, bucket, "stop", attempt=2))
    assert f"continues after {len(kept)} of 200 images" in ended.out
    found = bucket.rows("stop/parts/part-0000000.jsonl")
    assert (found[: len(kept)], [row["index"] for row in found]) == (kept, list(range(100, 300)))


def test_broken_images_are_rows_and_the_others_are_classified(digits: Path, tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for number, content in enumerate([b"no image", b"", (digits / "images" / "0001.png").read_bytes()[:60]]):
        (images / f"{number}.png").write_bytes(content)
    (images / "3.png").write_bytes((digits / "images" / "0001.png").read_bytes())
    part = tmp_path / "part"
    ended = inference("0:4", str(part), "--images", str(images), "--model", str(digits))
    assert ended.code == 0, ended.err
    rows = s3.rows(part.read_text())
    assert [row.get("error", "").partition(":")[0] for row in rows] == ["not an image"] * 3 + [""]
    assert rows[3]["top"][0]["label"] == "1"


def made(folder: Path, program: str) -> Path:
    """A model that a line of Python saves as `path`."""
    path = folder / "model.pt"
    text = f"import torch, pytorch_networks as networks\npath = {str(path)!r}\n{program}"
    subprocess.run([str(s3.PYTORCH), "-c", text], cwd=s3.CONTAINERS / IMAGE, check=True, timeout=s3.PATIENCE_S)
    return path


def test_weights_with_the_names_of_torchvision_s_resnet_50_fit(digits: Path, tmp_path: Path) -> None:
    model = made(tmp_path, "torch.save(networks.image_network('resnet50', 3).state_dict(), path)")
    (tmp_path / "labels.txt").write_text("cat\ndog\nship\n")
    part = tmp_path / "part"
    where = ("--images", str(digits / "images"), "--model", str(model))
    assert inference("0:2", str(part), *where).code == 0
    rows: list[Any] = s3.rows(part.read_text())
    assert [sorted(label["label"] for label in row["top"]) for row in rows] == [["cat", "dog", "ship"]] * 2
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    ended = inference("0:2", str(tmp_path / "other"), *where)
    assert (ended.code, "has 3 classes, but 2 lines in labels.txt" in ended.err) == (64, True)


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("", "there is no model at"),
        ("open(path, 'w').write('nothing')", "cannot be read: "),
        ("torch.save({'model': 'gpt', 'size': 64, 'weights': {}}, path)", "is gpt, which takes no images"),
        ("torch.save({'model': 'resnet50', 'size': 8, 'weights': {'fc.bias': torch.ones(3)}}, path)", "other weights"),
        ("import os; torch.save(os.system, path)", "cannot be read: "),  # nothing in it may be called
    ],
)
def test_a_model_that_cannot_be_used_exits_64(program: str, complaint: str, digits: Path, tmp_path: Path) -> None:
    model = made(tmp_path, program)
    ended = inference("0:2", str(tmp_path / "part"), "--images", str(digits / "images"), "--model", str(model))
    assert (ended.code, complaint in ended.err) == (64, True), ended.err


def test_a_pinned_gpu_in_the_cpu_flavour_exits_64(digits: Path, tmp_path: Path) -> None:
    what = ("0:2", str(tmp_path / "part"), "--images", str(digits / "images"), "--model", str(digits))
    ended = inference(*what, NVIDIA_VISIBLE_DEVICES="GPU-a")
    assert (ended.code, "1 GPU is pinned to this task, but this image is the CPU flavour" in ended.err) == (64, True)
    on_cpu = inference(*what, "--device", "cpu", NVIDIA_VISIBLE_DEVICES="GPU-a")
    assert on_cpu.code == 0, on_cpu.err
