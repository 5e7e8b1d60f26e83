"""The PyTorch training image's program as far as it needs no PyTorch, its run specs and its task definitions."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any

import pytest
from training import data, places
from training.arguments import Request, read_request

FOLDER = Path(__file__).resolve().parents[3] / "containers" / "pytorch-training"
DEFINITIONS: dict[str, Any] = json.loads((FOLDER / "task-definitions.json").read_text())
PINNED = {"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}


def request(*arguments: str, **environment: str) -> Request:
    return read_request(arguments, environment)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as ended:
        read_request(arguments, environment)
    assert ended.value.code == 64
    return capsys.readouterr().err.splitlines()[-1]


def test_a_model_has_a_batch_a_size_and_a_learning_rate_of_its_own() -> None:
    assert (request().batch_size, request().size, request().unit) == (128, 224, "images")
    gpt = request("--model", "gpt", TRAINING_BATCH_SIZE="4")
    assert (gpt.batch_size, gpt.size, gpt.unit, gpt.learning_rate) == (4, 1024, "tokens", 3e-4)
    assert request("--data", "real").size == 32
    assert request("--batch-size", "16", TRAINING_BATCH_SIZE="64").batch_size == 16
    assert request("--learning-rate", "1e-3").learning_rate == 0.001


def test_checkpoints_are_next_to_the_attempts_folders_and_may_be_left_out() -> None:
    on_argosy = {"ARGOSY_OUTPUT_URI": "s3://b/run/attempts/0000007/2/"}
    assert request(**on_argosy).checkpoints == "s3://b/run/attempts/0000007/checkpoints/"
    assert request("--checkpoints", "kept", **on_argosy).checkpoints == "kept/"
    assert request("--checkpoint-seconds", "0", **on_argosy).checkpoints == ""
    assert request().checkpoints == ""


def test_two_attempts_belong_together_if_a_step_of_both_is_the_same() -> None:
    assert request().work(1) == request("--steps", "9", "--precision", "bf16").work(1)
    different = [("--batch-size", "3"), ("--size", "64"), ("--model", "gpt"), ("--learning-rate", "0.5")]
    assert request().work(1) not in [request(*each).work(1) for each in different]
    assert request().work(1) != request().work(2)


def test_the_memory_of_a_shared_gpu_is_what_mps_allows() -> None:
    assert request(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=8000M").share_mib == 8000
    assert request().share_mib == 0


def test_every_fault_is_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(
        capsys, "--model", "vgg", "--steps", "0", "--learning-rate", "-1", "--compile", "x",
        TRAINING_STEP="9", ARGOSY_TASK_ATTEMPT="0",
    )  # fmt: skip
    for part in (
        "--model must be resnet50 or resnet-tiny or gpt or gpt-tiny, not 'vgg'",
        "--steps must be a whole number from 1",
        "--learning-rate must be a number, 0 or more, not '-1'",
        "--compile must be auto or on or off, not 'x'",
        "unknown setting TRAINING_STEP (known: ",
        "ARGOSY_TASK_ATTEMPT must be a whole number from 1",
    ):
        assert part in said
    assert "unrecognized arguments: --speed" in refusal(capsys, "--speed", "9")


def pytorch(*, cuda: str | None, gpus: int = 0, capability: tuple[int, int] = (8, 0)) -> Any:
    """As much of PyTorch as `places` uses."""
    seen = types.SimpleNamespace(
        device_count=lambda: gpus,
        get_device_name=lambda rank: f"L4-{rank}",
        get_device_capability=lambda device: capability,
    )
    return types.SimpleNamespace(cuda=seen, version=types.SimpleNamespace(cuda=cuda))


def test_one_process_trains_on_each_gpu_that_the_task_was_given() -> None:
    both = pytorch(cuda="13.2", gpus=2)
    assert places.count(both, request(**PINNED)) == 2
    assert [places.place(both, request(**PINNED), rank, 2).device for rank in (0, 1)] == ["cuda:0", "cuda:1"]
    assert places.count(both, request()) == places.count(both, request(NVIDIA_VISIBLE_DEVICES="all")) == 2
    assert places.count(pytorch(cuda=None), request()) == 1
    assert places.place(pytorch(cuda=None), request(), 0, 1).device == "cpu"
    assert places.place(both, request("--cpu-processes", "3"), 2, 3).kind == "CPU"
    assert places.count(pytorch(cuda=None), request("--cpu-processes", "3", **PINNED)) == 3


def test_gpus_that_do_not_show_up_may_work_elsewhere_and_the_cpu_flavour_never_uses_any() -> None:
    with pytest.raises(places.NoDevice, match=r"2 GPUs were given \(GPU-a, GPU-b\), but PyTorch sees 1"):
        places.count(pytorch(cuda="13.2", gpus=1), request(**PINNED))
    with pytest.raises(places.WrongImage, match="1 GPU was given, but this image is the CPU flavour"):
        places.count(pytorch(cuda=None), request(NVIDIA_VISIBLE_DEVICES="GPU-a"))


@pytest.mark.parametrize(
    ("asked", "gpus", "capability", "used"),
    [
        ("auto", 1, (8, 0), "bf16"),
        ("auto", 1, (7, 5), "float32"),  # a T4 only imitates bfloat16
        ("auto", 0, (9, 0), "float32"),
        ("bf16", 0, (9, 0), "bf16"),
        ("float32", 1, (9, 0), "float32"),
    ],
)
def test_bfloat16_is_for_gpus_that_compute_in_it(asked: str, gpus: int, capability: tuple[int, int], used: str) -> None:
    torch = pytorch(cuda="13.2", gpus=gpus, capability=capability)
    asking = request("--precision", asked)
    assert places.precision(torch, asking, places.place(torch, asking, 0, 1)) == used


def test_a_real_set_that_is_not_installed_is_named() -> None:
    with pytest.raises(data.NoData, match="Python's words cannot be trained on: the package nowhere is not installed"):
        data.folder("nowhere", "Python's words")
    assert (data.folder("pydoc_data", "Python's words") / "topics.py").is_file()


@pytest.mark.parametrize(("name", "gpus"), [("cpu", 0), ("1-gpu", 1), ("4-gpu", 4), ("8-gpu", 8), ("share", 0)])
def test_each_run_spec_asks_for_its_gpus_and_for_the_same_work_on_each(name: str, gpus: int) -> None:
    from argosy.spec import parse as spec
    from argosy.spec import shards
    from argosy.spec.file import check_text

    form = spec.to_json(check_text((FOLDER / f"run-{name}.yaml").read_text())[0])
    assert shards.expects_result(form)
    assert form["checkpoint"] == {"everySeconds": 300}
    definition = DEFINITIONS[form["taskDefinition"]] if gpus > 1 else form["resources"]
    assert definition.get("gpus", 0) == gpus
    assert ("gpuShare" in definition) == (name == "share")
    asked = request(*form["container"]["command"], **definition.get("environment", {}))
    assert not gpus or (asked.model, asked.data, asked.batch_size) == ("resnet50", "synthetic", 128)
