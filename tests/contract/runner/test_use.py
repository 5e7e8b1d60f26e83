"""A runner measures its task and its GPUs while the program runs, and whatever goes wrong with that harms no task."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from tests.fakes.nvidia_smi import install_nvidia_smi
from tests.fakes.signed_s3 import BUCKET
from tests.runners import RUN, RunnerUnderTest

pytestmark = pytest.mark.slow

USE = f"{RUN}attempts/gpu-use/0000007/2.json"
LONG_ENOUGH = "sleep 1.5"  # for the first sample, after a second


def on_a_gpu(runner: RunnerUnderTest, **changes: str) -> dict[str, str]:
    path = f"{runner.folder / 'bin'}:{os.environ['PATH']}"
    return {"NVIDIA_VISIBLE_DEVICES": "GPU-1111", "PATH": path, **changes}


def told(runner: RunnerUnderTest) -> Any:
    return json.loads(runner.s3.buckets[BUCKET][USE].body)


def test_use_memory_and_power_of_its_gpus_are_written_beside_the_attempts(runner: RunnerUnderTest) -> None:
    two = "37, 9216, 24576, 120.50, NVIDIA A10G\n63, 1024, 24576, 79.50, NVIDIA A10G"
    install_nvidia_smi(runner.folder / "bin", use=two)
    assert runner.shell(LONG_ENOUGH, on_a_gpu(runner), result="none").code == 0
    document = told(runner)
    assert document.pop("at")[0] >= 1.0
    assert document == {
        "version": 1, "gpus": 2, "name": "NVIDIA A10G", "totalMib": 24576, "shareMib": 0,
        "use": [50], "memoryMib": [9216], "watts": [200],
    }  # fmt: skip


def test_a_plain_init_measures_as_well(runner: RunnerUnderTest) -> None:
    install_nvidia_smi(runner.folder / "bin")
    output = runner.protocol()["ARGOSY_OUTPUT_URI"]
    ended = runner.run("sh", "-c", f"{LONG_ENOUGH}; exit 5", changes=on_a_gpu(runner, ARGOSY_OUTPUT_URI=output))
    assert ended.code == 5
    assert told(runner)["use"] == [37]


def test_the_memory_of_one_of_several_sharers_is_not_known_in_a_container(runner: RunnerUnderTest) -> None:
    install_nvidia_smi(runner.folder / "bin")
    shared = on_a_gpu(runner, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=8000M")
    assert runner.shell(LONG_ENOUGH, shared, result="none").code == 0
    assert (told(runner)["shareMib"], told(runner)["memoryMib"]) == (8000, [None])


def test_what_the_driver_does_not_say_is_not_known(runner: RunnerUnderTest) -> None:
    install_nvidia_smi(runner.folder / "bin", use="[N/A], 512, 18432, [N/A], NVIDIA H200 MIG 1g.18gb")
    assert runner.shell(LONG_ENOUGH, on_a_gpu(runner), result="none").code == 0
    assert (told(runner)["use"], told(runner)["memoryMib"], told(runner)["watts"]) == ([None], [512], [None])


@pytest.mark.parametrize(
    "script", ["exec sleep 60", "echo 'Unable to determine the device handle for GPU 0000:1E:00.0'; exit 255", "echo ?"]
)
def test_a_driver_that_hangs_or_has_lost_the_gpu_changes_nothing_of_the_task(
    runner: RunnerUnderTest, script: str
) -> None:
    install_nvidia_smi(runner.folder / "bin", script=script)
    ended = runner.shell(f"{LONG_ENOUGH}; exit 3", on_a_gpu(runner), result="none")
    assert (ended.code, ended.err) == (3, b"")
    assert USE not in runner.s3.buckets[BUCKET]


def test_figures_that_s3_does_not_take_are_dropped(runner: RunnerUnderTest) -> None:
    install_nvidia_smi(runner.folder / "bin")
    nowhere = on_a_gpu(runner, AWS_ENDPOINT_URL="http://127.0.0.1:9")
    ended = runner.shell(LONG_ENOUGH, nowhere, result="none")
    assert (ended.code, ended.err) == (0, b"")


def test_vcpus_and_memory_of_all_its_processes_are_written_beside_the_attempts(runner: RunnerUnderTest) -> None:
    child = "held = b'x' * (64 << 20); sum(range(4_000_000)); import time; time.sleep(1.5)"
    ended = runner.shell(f'{sys.executable} -Sc "{child}" & wait; exit 4', result="none")
    assert ended.code == 4
    document = json.loads(runner.s3.uses[f"{RUN}attempts/use/0000007/2.json"].body)
    (at,), (vcpus,), (memory_mib,) = document.pop("at"), document.pop("vcpus"), document.pop("memoryMib")
    assert document == {"version": 1}
    assert at >= 1.0
    assert 0.0 < vcpus < 2.0
    assert 64 <= memory_mib < 256


@pytest.mark.parametrize("devices", [None, "all"])
def test_nothing_is_measured_without_a_gpu_of_its_own(runner: RunnerUnderTest, devices: str | None) -> None:
    install_nvidia_smi(runner.folder / "bin", script="touch asked")
    changes: dict[str, str | None] = {**on_a_gpu(runner), "NVIDIA_VISIBLE_DEVICES": devices}
    assert runner.shell(LONG_ENOUGH, changes, result="none").code == 0
    assert not (runner.folder / "asked").exists()
