"""Tasks share the GPUs of this machine one at a time, as they would share those of an instance."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.local.deployment import local_settings
from argosy.local.gpus import Gpu, fitting_types
from argosy.local.options import LocalOptions
from argosy.settings.settings import Settings
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws
from tests.fakes.mps import install_mps
from tests.fakes.nvidia_smi import install_nvidia_smi
from tests.fakes.waiting import until

pytestmark = pytest.mark.e2e

ONE = (Gpu("GPU-11111111-2222-3333-4444-555555555555", "0", "NVIDIA H200", 143_771),)
MAPPED = """
import argosy, json, os, time
def use(x):
    begun = time.time()
    while time.time() < begun + 0.3:  # as one that computes
        pass
    return os.environ["CUDA_VISIBLE_DEVICES"], begun, time.time()
print(json.dumps(list(argosy.map(use, range(4), gpus=1, batch=1))))
"""


SHARED = """
import argosy, json, os, time
from pathlib import Path
def use(x):
    folder = Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
    (folder / str(x)).touch()
    until = time.time() + 60
    while not (folder / str((x + 1) % 8)).exists():  # another task uses the GPU at the same time
        assert time.time() < until
        time.sleep(0.05)
    limits = {name: value for name, value in os.environ.items() if name.startswith("CUDA_MPS_P")}
    return os.environ["CUDA_VISIBLE_DEVICES"], limits
print(json.dumps(list(argosy.map(use, range(8), gpu_share=10_000, vcpus=0.1, memory=100, batch=1))))
"""


PROGRAMS: list[str] = []  # the folder of the stand-ins


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = local_settings(fitting_types(ONE, cores=2))
    programs = tmp_path_factory.mktemp("bin")
    PROGRAMS.append(str(programs))
    install_mps(programs)
    (programs / "listed").write_text(f"0, {ONE[0].id}, NVIDIA H200, 143771, Disabled")
    use = "37, 9216, 143771, 120.50, NVIDIA H200"
    listed = f'while read -r line; do echo "$line"; done < {programs}/listed'
    install_nvidia_smi(programs, use=use, listed=listed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        yield from _local_mode(settings)


def _local_mode(settings: Settings) -> Iterator[str]:
    with local_aws(LocalOptions(settings, gpus=ONE, boot_s=0.2, tick_s=0.3, processes=8)) as aws:
        yield aws.endpoint_url


def test_tasks_that_want_the_only_gpu_run_one_after_the_other(endpoint: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MAPPED)
    without = [f"--unset={name}" for name in os.environ if name.startswith(("AWS_", "ARGOSY_"))]
    reached = {"ARGOSY_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1"}
    told = outcome_of(["env", *without, "script", "program.py"], tmp_path, **reached)
    assert told.returncode == 0, told.stderr
    used = sorted(json.loads(told.stdout), key=lambda each: each[1])
    assert [visible for visible, _, _ in used] == [ONE[0].id] * 4
    assert all(ended <= begun for (_, _, ended), (_, begun, _) in itertools.pairwise(used)), used


def test_tasks_with_a_share_use_the_only_gpu_together(endpoint: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SHARED)
    without = [f"--unset={name}" for name in os.environ if name.startswith(("AWS_", "ARGOSY_"))]
    reached = {"ARGOSY_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1"}
    told = outcome_of(["env", *without, "script", "program.py"], tmp_path, **reached)
    assert told.returncode == 0, told.stderr
    used = json.loads(told.stdout)
    assert [visible for visible, _ in used] == [ONE[0].id] * 8
    assert {limits["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] for _, limits in used} == {"0=10000M"}
    assert len({limits["CUDA_MPS_PIPE_DIRECTORY"] for _, limits in used}) == 1


def test_a_task_that_wants_more_gpus_than_there_are_is_refused_at_submit(endpoint: str) -> None:
    told = outcome_of(["argosy", "run", "--gpus", "2", "--endpoint-url", endpoint, "--", "true"])
    assert told.returncode == 2
    assert "--gpus: asks for 2 GPUs" in told.stderr


def argosy(endpoint: str, *words: str) -> str:
    told = outcome_of(["argosy", words[0], "--endpoint-url", endpoint, *words[1:]])
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_what_a_task_uses_of_its_gpu_is_shown(endpoint: str) -> None:
    told = json.loads(argosy(endpoint, "run", "--gpus", "1", "--result", "none", "--json", "--", "sleep", "1.5"))
    run = str(told["runId"])
    (used,) = json.loads(argosy(endpoint, "status", run, "--json"))["gpuUse"]
    assert (used["index"], used["use"], used["memoryMib"], used["name"]) == (0, [37], [9216], "NVIDIA H200")
    assert not [each for each in told["warnings"] if "simulates" in each], told
    assert "9.0 of 140.4 GiB, 37 % of the time, 120 W" in argosy(endpoint, "status", run)


def test_a_gpu_that_falls_off_the_bus_is_a_loss_and_no_other_task_gets_it(endpoint: str) -> None:
    """The last test here: there is no GPU afterwards."""
    falls = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(''); os.abort()"
    listed = Path(PROGRAMS[0]) / "listed"
    words = ["run", "--gpus", "1", "--result", "none", "--detach", "--json", "--", "python", "-c", falls, str(listed)]
    run = str(json.loads(argosy(endpoint, *words))["runId"])
    until(lambda: json.loads(argosy(endpoint, "status", run, "--json"))["interruptions"] == 1, 60)
    view = json.loads(argosy(endpoint, "status", run, "--tasks", "--json"))
    assert (view["tasks"]["failed"], view["taskList"][0]["status"]) == (0, "PENDING")
    until(lambda: "no longer answers" in argosy(endpoint, "explain", run), 60)
    argosy(endpoint, "cancel", run)
