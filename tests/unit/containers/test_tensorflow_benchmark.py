"""The benchmark image's program as far as it needs no TensorFlow, its run specs and its task definitions."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any

import pytest
from benchmark import devices
from benchmark.arguments import Request, read_request
from benchmark.measuring import effective_precision

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parents[3] / "containers" / "tensorflow-benchmark"
SLOWEST_CPU_IMAGES_PER_S = 0.5  # of ResNet-50 in float32 on the two vCPUs of `tensorflow-cpu`
DEFINITIONS: dict[str, Any] = json.loads((FOLDER / "task-definitions.json").read_text())


def request(*arguments: str, **environment: str) -> Request:
    return read_request(arguments, environment)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as ended:
        read_request(arguments, environment)
    assert ended.value.code == 64
    return capsys.readouterr().err.splitlines()[-1]


def test_the_variables_of_the_example_of_2019_are_understood() -> None:
    found = request(GPU="4", BATCH_SIZE="128", NVIDIA_VISIBLE_DEVICES="GPU-a,GPU-b,GPU-c,GPU-d")
    assert (found.gpu_count, found.batch_size, len(found.gpus)) == (4, 128, 4)
    assert request(BATCH_SIZE="128", BENCHMARK_BATCH_SIZE="64").batch_size == 64
    assert request("--batch-size", "16", BENCHMARK_BATCH_SIZE="64").batch_size == 16


def test_the_model_says_how_large_its_images_are() -> None:
    assert (request().image_size, request("--model", "tiny").image_size) == (224, 8)
    assert request("--image-size", "96").image_size == 96


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--model", "vgg"], "--model must be resnet50 or mobilenetv2 or tiny, not 'vgg'"),
        (["--precision", "half"], "--precision must be auto or float32 or mixed, not 'half'"),
        (["--xla", "yes"], "--xla must be on or off, not 'yes'"),
        (["--steps", "15", "--rounds", "10"], "--steps 15 must be a multiple of --rounds 10"),
        (["--batch-size", "0"], "--batch-size must be a whole number from 1"),
        (["--num-gpus", "four"], "--num-gpus must be a whole number from 0 to 64, not 'four'"),
        (["--speed", "9"], "unrecognized arguments"),
    ],
)
def test_a_bad_argument_is_refused_in_one_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in refusal(capsys, *arguments)


def test_every_fault_is_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "--xla", "x", "--warm-up", "-", BENCHMARK_MODLE="x", ARGOSY_TASK_ATTEMPT="0")
    for part in ("--xla", "--warm-up", "BENCHMARK_MODLE (do you mean BENCHMARK_MODEL?)", "ARGOSY_TASK_ATTEMPT '0'"):
        assert part in said


def tensorflow(*, cuda: bool, gpus: int = 0) -> Any:
    """As much of TensorFlow as `devices` uses; `logical` counts the CPUs asked for."""
    found = types.SimpleNamespace(logical=0)

    def divide(cpu: str, configurations: list[Any]) -> None:
        found.logical = len(configurations)

    found.config = types.SimpleNamespace(
        set_visible_devices=lambda chosen, kind: None,
        list_physical_devices=lambda kind: ["CPU"] if kind == "CPU" else [f"V100-{k}" for k in range(gpus)],
        set_logical_device_configuration=divide,
        LogicalDeviceConfiguration=object,
        experimental=types.SimpleNamespace(get_device_details=lambda each: {"device_name": each}),
    )
    found.test = types.SimpleNamespace(is_built_with_cuda=lambda: cuda)
    return found


PINNED = {"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}


def test_it_trains_on_exactly_the_gpus_that_the_task_was_given() -> None:
    found = devices.find(tensorflow(cuda=True, gpus=2), request(**PINNED))
    assert (found.names, found.kinds, found.emulated) == (("/gpu:0", "/gpu:1"), ("V100-0", "V100-1"), False)
    assert devices.find(tensorflow(cuda=True, gpus=2), request()).names == ("/cpu:0",)


def test_all_gpus_are_those_that_tensorflow_sees() -> None:
    everything = {"NVIDIA_VISIBLE_DEVICES": "all"}
    assert devices.find(tensorflow(cuda=True, gpus=2), request(**everything)).names == ("/gpu:0", "/gpu:1")
    assert devices.find(tensorflow(cuda=True), request(**everything)).names == ("/cpu:0",)
    with pytest.raises(devices.WrongImage, match="--num-gpus asks for 4, but the task was given 2"):
        devices.find(tensorflow(cuda=True, gpus=2), request("--num-gpus", "4", **everything))


@pytest.mark.parametrize(
    ("asked", "found", "effective"),
    [
        ("auto", devices.Devices(("/cpu:0",), ("CPU",)), "float32"),
        ("auto", devices.Devices(("/cpu:0",), ("logical CPU",), emulated=True), "float32"),
        ("auto", devices.Devices(("/gpu:0",), ("V100",)), "mixed"),
        ("mixed", devices.Devices(("/cpu:0",), ("CPU",)), "mixed"),
        ("float32", devices.Devices(("/gpu:0",), ("V100",)), "float32"),
    ],
)
def test_half_precision_is_for_gpus_unless_it_is_asked_for(asked: str, found: devices.Devices, effective: str) -> None:
    assert effective_precision(request("--precision", asked), found) == effective
    assert request().precision == "auto"


def test_gpus_that_do_not_show_up_may_work_elsewhere() -> None:
    with pytest.raises(devices.NoDevice, match=r"2 GPUs are wanted \(GPU-a, GPU-b\), but TensorFlow sees 1"):
        devices.find(tensorflow(cuda=True, gpus=1), request(**PINNED))


def test_what_would_not_work_anywhere_is_refused_for_good() -> None:
    with pytest.raises(devices.WrongImage, match="this image is the CPU flavour"):
        devices.find(tensorflow(cuda=False), request(**PINNED))
    with pytest.raises(devices.WrongImage, match="--num-gpus asks for 4, but the task was given 2"):
        devices.find(tensorflow(cuda=True, gpus=2), request("--num-gpus", "4", **PINNED))


@pytest.mark.parametrize(("asked", "got"), [("1", 1), ("2", 2), ("8", 2)])
def test_no_more_cpus_stand_in_than_gpus_were_given(asked: str, got: int) -> None:
    tf = tensorflow(cuda=False)
    found = devices.find(tf, request("--cpu-devices", asked, **PINNED))
    assert (len(found.names), tf.logical, found.emulated) == (got, got, True)


@pytest.mark.parametrize(("name", "gpus"), [("cpu", 0), ("1-gpu", 1), ("4-gpu", 4), ("8-gpu", 8)])
def test_each_run_spec_names_its_task_definition(name: str, gpus: int) -> None:
    from argosy.spec import parse as spec
    from argosy.spec import shards
    from argosy.spec.file import check_text

    form = spec.to_json(check_text((FOLDER / f"run-{name}.yaml").read_text())[0])
    assert (shards.task_count(form), shards.expects_result(form)) == (1, True)
    definition = DEFINITIONS[form["taskDefinition"]]
    assert (form["taskDefinition"], definition["gpus"]) == (f"tensorflow-{name}", gpus)
    asked = request("--output", "x", **definition["environment"])
    assert asked.model == "resnet50"
    images = asked.batch_size * (asked.rounds * asked.steps_per_round + asked.warm_up + 1)
    assert gpus or images / SLOWEST_CPU_IMAGES_PER_S < form["timeout"]["attemptDurationSeconds"]


def test_the_gpu_definitions_train_the_same_batch_on_each_gpu() -> None:
    """In the example of 2019 they did not, so its figures could not be compared."""
    sizes = {each["environment"]["BENCHMARK_BATCH_SIZE"] for each in DEFINITIONS.values() if each["gpus"]}
    assert len(sizes) == 1


def test_local_mode_registers_the_definitions_with_their_gpus() -> None:
    from argosy.local.deployment import Names, definitions

    found = {each["family"]: each for each in definitions(FOLDER.parent, Names("argosy", "1", "us-east-1"), 10)}
    assert {"tensorflow-cpu", "tensorflow-1-gpu", "tensorflow-4-gpu", "tensorflow-8-gpu"} <= set(found)
    [container] = found["tensorflow-4-gpu"]["containerDefinitions"]
    assert (container["name"], container["image"]) == ("main", "argosy/tensorflow-benchmark")
    assert container["resourceRequirements"] == [{"type": "GPU", "value": "4"}]
    assert "resourceRequirements" not in found["tensorflow-cpu"]["containerDefinitions"][0]
