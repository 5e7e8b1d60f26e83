"""Of a task that shares a GPU, only the memory of its processes is counted, where the runner can see these."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.runner.gpu_use import MOST_SAMPLES, GpuSamples, in_group_of, measured
from tests.fakes.nvidia_smi import install_nvidia_smi
from tests.fakes.signed_s3 import ACCESS_KEY, BUCKET, SECRET_KEY, signed_s3
from tests.fakes.waiting import until


@pytest.mark.slow
def test_the_memory_of_a_sharer_is_that_of_its_processes(tmp_path: Path) -> None:
    apps = f"echo '{os.getpid()}, 512'; echo '1, 4096'; echo '{os.getpid()}, 100'; touch {tmp_path}/asked"
    install_nvidia_smi(tmp_path, apps=apps)
    with signed_s3() as s3, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        task = {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_ENDPOINT_URL": s3.endpoint,
            "ARGOSY_OUTPUT_URI": f"s3://{BUCKET}/run/attempts/0000007/2/", "NVIDIA_VISIBLE_DEVICES": "GPU-1",
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=8000M",
        }  # fmt: skip
        with measured(task, in_group_of(lambda: os.getpgid(0))):
            until((tmp_path / "asked").exists)
        told = json.loads(s3.body("run/attempts/gpu-use/0000007/2.json"))
    assert (told["memoryMib"], told["use"], told["shareMib"]) == ([612], [37], 8000)
    assert not [each for each in threading.enumerate() if each.name == "argosy-gpu-use"]


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), max_size=2000))
def test_many_samples_become_few_and_the_most_memory_and_the_times_stay(values: list[int | None]) -> None:
    samples = GpuSamples()
    for at, value in enumerate(values):
        samples.add((float(at), value, value, value))
    assert len(samples.rows) < MOST_SAMPLES
    times = [row[0] for row in samples.rows]
    assert times == sorted(set(times))
    assert times[-1:] == [float(len(values) - 1)][: len(values)]
    known = [value for value in values if value is not None]
    assert max((row[2] for row in samples.rows if row[2] is not None), default=None) == max(known, default=None)
