"""Do tasks share a GPU of this machine through a daemon, and are they told their limits? Against a stand-in for it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.local.agents.agent import Host
from argosy.local.containers import cleanup_process
from argosy.local.containers.container import HostSettings, container_of
from argosy.local.containers.images import Image
from argosy.local.containers.process import MARK
from argosy.local.deployment import Names
from argosy.local.gpus import Gpu, Maker
from argosy.local.lambdas.functions import specs
from argosy.local.mps import MpsDaemon, MpsError, can_share, limits_of, why_not_shared
from argosy.local.options import LocalOptions
from tests.fakes.mps import install_mps

GPU = Gpu("GPU-a", "0", "NVIDIA H200", 143_771)
SHARING = {"nvidiaMps": {"memory": 8_000, "maxComputePercent": 12}}
TASK = {
    "taskArn": "arn:aws:ecs:us-east-1:123456789012:task/argosy/0123",
    "containers": [{"name": "main", "gpuIds": ["GPU-a"], "gpuSharingStrategy": SHARING}],
}


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH; the stand-in is there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    install_mps(folder)
    return folder


@pytest.fixture
def daemon(bin_folder: Path, tmp_path: Path) -> MpsDaemon:
    return MpsDaemon(GPU, tmp_path / "mps")


def test_one_daemon_that_shows_the_gpu_alone_serves_all_its_tasks_and_ends_when_asked(daemon: MpsDaemon) -> None:
    assert [daemon.start() for _ in range(3)] == [1, 1, 1]
    assert (daemon.pipes / "control").read_text() == "GPU-a"
    assert daemon.why_lost(1) == ""
    daemon.end()
    assert not (daemon.pipes / "control").exists()


def test_a_daemon_that_was_never_needed_is_not_asked_to_end(daemon: MpsDaemon, bin_folder: Path) -> None:
    install_mps(bin_folder, "echo asked > asked")
    daemon.end()
    assert not Path("asked").exists()


def test_a_killed_daemon_is_started_again_and_its_tasks_are_lost(daemon: MpsDaemon) -> None:
    first = daemon.start()
    (daemon.pipes / "control").unlink()
    lost = "the MPS daemon of GPU-a, which the task shared, has ended"
    assert daemon.why_lost(first) == lost
    second = daemon.start()
    assert (daemon.why_lost(first), daemon.why_lost(second)) == (lost, "")


def test_the_daemons_of_a_killed_local_mode_are_ended(daemon: MpsDaemon, bin_folder: Path, tmp_path: Path) -> None:
    daemon.start()
    cleanup_process.clean([], [], [str(tmp_path / "never-started"), str(daemon.pipes)])
    assert not (daemon.pipes / "control").exists()
    (bin_folder / "nvidia-cuda-mps-control").unlink()
    cleanup_process.clean([], [], [str(daemon.pipes)])


@pytest.mark.parametrize(("script", "said"), [("exit 3", "ended with 3"), (None, "No such file")])
def test_a_daemon_that_does_not_start_is_a_sentence(
    daemon: MpsDaemon, bin_folder: Path, script: str | None, said: str
) -> None:
    if script is None:
        (bin_folder / "nvidia-cuda-mps-control").unlink()
    else:
        install_mps(bin_folder, script)
    with pytest.raises(MpsError, match=f"the MPS daemon of GPU-a cannot be started: .*{said}"):
        daemon.start()


def test_only_whole_gpus_of_nvidia_are_shared_and_only_with_the_daemons_program(bin_folder: Path) -> None:
    assert can_share([GPU, replace(GPU, id="GPU-b")])
    assert not can_share([GPU, replace(GPU, id="MIG-c")])
    assert not can_share([replace(GPU, maker=Maker.AMD)])
    assert why_not_shared([GPU, replace(GPU, id="MIG-c")]) == "that takes whole GPUs of NVIDIA"
    assert why_not_shared([GPU]) == why_not_shared([]) == ""
    (bin_folder / "nvidia-cuda-mps-control").unlink()
    assert not can_share([GPU])
    assert why_not_shared([]) == ""


def test_the_controller_of_local_mode_knows_what_is_missing_to_share_gpus(bin_folder: Path) -> None:
    def told(*gpus: Gpu) -> str:
        made = specs(LocalOptions(gpus=gpus), Names("argosy", "1", "us-east-1"), {}, "queue")
        return str(json.loads(made[1].environment["ARGOSY_POLICY"])["gpus_unshared"])

    (bin_folder / "nvidia-cuda-mps-control").unlink()
    assert told(GPU) == "nvidia-cuda-mps-control is not installed"
    assert told() == ""


def test_a_container_is_told_its_limits_and_its_daemon(daemon: MpsDaemon, tmp_path: Path) -> None:
    around = HostSettings({}, ("GPU-a",), gpus=(GPU,), daemons={"GPU-a": daemon})
    image = Image(("run",), (), {}, tmp_path)
    made = container_of({"name": "main"}, TASK, image, around)
    assert {name: value for name, value in made.program.environment.items() if name != MARK} == {
        "CUDA_VISIBLE_DEVICES": "GPU-a",
        "NVIDIA_VISIBLE_DEVICES": "GPU-a",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=8000M",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "12",
        "CUDA_MPS_PIPE_DIRECTORY": str(daemon.pipes),
    }
    assert made.why_lost() == ""
    boxed = container_of({"name": "main"}, TASK, replace(image, reference="i"), around).program.isolation
    assert boxed is not None
    assert boxed.mps_pipes == daemon.pipes
    (daemon.pipes / "control").unlink()
    assert "has ended" in made.why_lost()


def test_a_container_on_a_simulated_gpu_is_told_its_limits_alone(tmp_path: Path) -> None:
    image = Image(("run",), (), {}, tmp_path)
    told = container_of({"name": "main"}, TASK, image, HostSettings({}, ("GPU-a",))).program.environment
    assert {name: value for name, value in told.items() if "MPS" in name} == limits_of(SHARING)


def test_a_container_without_a_share_starts_no_daemon(daemon: MpsDaemon, tmp_path: Path) -> None:
    around = HostSettings({}, ("GPU-a",), gpus=(GPU,), daemons={"GPU-a": daemon})
    whole = {**TASK, "containers": [{"name": "main", "gpuIds": ["GPU-a"]}]}
    made = container_of({"name": "main"}, whole, Image(("run",), (), {}, tmp_path), around)
    assert not any("MPS" in name for name in made.program.environment)
    assert not daemon.pipes.exists()


def test_an_instance_registers_the_memory_of_the_gpus_that_it_really_has(daemon: MpsDaemon) -> None:
    kind = load_catalogue()["g6.xlarge"]
    real = Host("i-1", kind, "us-east-1a", gpus=(GPU,), daemons={"GPU-a": daemon})
    without = replace(real, daemons={})
    pretended = replace(without, gpus=())
    old = Host("i-1", load_catalogue()["p3.2xlarge"], "us-east-1a")
    memory = [
        each.registration("c", None)["platformDevices"][0]["gpuInfo"]["memoryInMiB"] for each in (real, pretended)
    ]
    assert memory == [143_771, kind.shared_gpu_mib]
    for host, shares in ((real, True), (without, False), (pretended, True), (old, False)):
        names = {each["name"] for each in host.registration("c", None)["attributes"]}
        assert ("ecs.capability.gpu-sharing-mps" in names) == shares
