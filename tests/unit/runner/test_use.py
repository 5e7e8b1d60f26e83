"""Figures of use: what is counted, which stay of many samples, and when they are worth a request."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.runner.measuring import MOST_SAMPLES, Samples
from argosy.runner.process_trees import ProcessTrees
from argosy.runner.task_use import CHEAP_S, ProcessMeter, measured
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
        with measured(task, lambda: os.getpgid(0), sees_processes=True):
            until((tmp_path / "asked").exists)
        told = json.loads(s3.body("run/attempts/gpu-use/0000007/2.json"))
    assert (told["memoryMib"], told["use"], told["shareMib"]) == ([612], [37], 8000)
    assert not [each for each in threading.enumerate() if each.name.startswith("argosy-") and each.name.endswith("use")]


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), max_size=2000))
def test_many_samples_become_few_and_the_most_memory_and_the_times_stay(values: list[int | None]) -> None:
    samples = Samples(2)
    for at, value in enumerate(values):
        samples.add((float(at), value, value, value))
    assert len(samples.rows) < MOST_SAMPLES
    times = [row[0] for row in samples.rows]
    assert times == sorted(set(times))
    assert times[-1:] == [float(len(values) - 1)][: len(values)]
    known = [value for value in values if value is not None]
    assert max((row[2] for row in samples.rows if row[2] is not None), default=None) == max(known, default=None)


def test_a_short_program_is_worth_no_request_where_requests_cost_money() -> None:
    assert ProcessMeter({}, lambda: None).least_s == CHEAP_S
    assert ProcessMeter({"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, lambda: None).least_s == 0.0


def test_vcpus_are_the_mean_since_the_last_sample() -> None:
    meter = ProcessMeter({}, os.getpid)
    before = time.process_time()
    first = meter.look(1e6)
    while time.process_time() - before < 0.05:
        pass
    second = meter.look(1e6 + 0.1)
    assert first is not None
    assert second is not None
    assert first[0] == 0.0
    assert 0.3 <= (second[0] or 0.0) < 5
    assert (second[1] or 0.0) > 20


def test_a_program_that_has_not_started_or_has_ended_uses_nothing() -> None:
    assert ProcessMeter({}, lambda: None).look(1.0) == (None, None)
    assert ProcessTrees().seconds_and_bytes(2**22 + 1) == (0.0, 0)
