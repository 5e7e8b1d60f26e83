"""The benchmark image's program with TensorFlow: a tiny network on logical CPUs, its record and its closing line."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest

from argosy.client.benchmarks import from_record, read
from tests.containers import s3
from tests.fakes.local_mode import local_aws
from tests.readmes import Shell, command_lines, local_options

pytestmark = pytest.mark.tf

IMAGE, FOLDER = "tensorflow-benchmark", s3.CONTAINERS / "tensorflow-benchmark"
TINY = ("--model", "tiny", "--batch-size", "8", "--steps", "20", "--warm-up", "2", "--baseline", "5")


def benchmark(*arguments: str, **environment: str) -> s3.Ended:
    return s3.run(IMAGE, "benchmark", *arguments, **environment)


def test_two_logical_cpus_stand_in_for_the_pinned_gpus(tmp_path: Path) -> None:
    part = tmp_path / "part.jsonl"
    arguments = (*TINY, "--cpu-devices", "2", "--output", str(part))
    ended = benchmark(*arguments, NVIDIA_VISIBLE_DEVICES="GPU-a,GPU-b,GPU-c,GPU-d")
    assert ended.code == 0, ended.err
    [record] = s3.rows(part.read_text())
    assert (record["gpus"], record["batchPerGpu"], record["images"]) == (2, 8, 320)
    assert record["pinnedGpus"] == ["GPU-a", "GPU-b", "GPU-c", "GPU-d"]
    assert (record["gpuNames"], record["emulated"]) == (["logical CPU", "logical CPU"], True)
    assert record["precision"] == "float32"
    phases = record["startUpSeconds"] + record["warmUpSeconds"] + record["timedSeconds"]
    assert 0 < phases <= record["totalSeconds"] < phases + 0.5  # and no baseline in it
    assert record["baselineSeconds"] > 0
    assert record["imagesPerSecond"] == pytest.approx(320 / record["timedSeconds"])
    alone = record["oneGpuImagesPerSecond"]
    assert record["scalingEfficiency"] == pytest.approx(record["imagesPerSecond"] / (2 * alone))
    assert record["deviation"] > 0
    lines = ended.out.splitlines()
    assert lines.index(next(line for line in lines if line.startswith("one device alone"))) > max(
        number for number, line in enumerate(lines) if line.startswith("round ")
    )
    assert lines[-1] == f"total images/sec: {record['imagesPerSecond']:.2f}"
    assert json.loads(lines[-2]) == record
    assert read(ended.out, "log") == from_record(record, "log")


def test_mixed_precision_and_xla_on_one_cpu_without_a_baseline() -> None:
    ended = benchmark(*TINY, "--precision", "mixed", "--xla", "on")
    assert ended.code == 0, ended.err
    record = json.loads(ended.out.splitlines()[-2])
    assert (record["gpus"], record["precision"], record["xla"], record["scalingEfficiency"]) == (1, "mixed", True, None)
    assert record["baselineSeconds"] == 0
    assert record["emulated"]  # a CPU's figures are never compared with a GPU's


def test_more_gpus_than_this_image_can_use_exit_64() -> None:
    ended = benchmark(*TINY, NVIDIA_VISIBLE_DEVICES="GPU-a,GPU-b")
    assert ended.code == 64
    assert "2 GPUs are wanted, but this image is the CPU flavour" in ended.err


def test_sigterm_ends_it_at_once_with_nothing_written(tmp_path: Path) -> None:
    arguments = ("--model", "tiny", "--steps", "1000000", "--rounds", "1000", "--output", str(tmp_path / "part"))
    process = s3.start(IMAGE, "benchmark", *arguments)
    assert process.stdout is not None
    assert next(line for line in process.stdout if line.startswith("round "))
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, "stopped by SIGTERM" in said) == (143, True)
    assert not (tmp_path / "part").exists()


def test_the_readme_s_commands_do_what_they_say() -> None:
    """Those for a shell in the image's folder that name the tiny network; ResNet-50 takes minutes on a CPU."""
    blocks = re.findall(r"^```\n(.*?)^```", (FOLDER / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("python ") and "tiny" in line]
    assert commands
    for command in commands:
        ended = benchmark(*shlex.split(command)[3:])
        assert ended.code == 0, f"{command}: {ended.err}"
        assert ended.out.splitlines()[-1].startswith("total images/sec: ")


def test_the_readme_s_runs_can_be_reported_side_by_side(tmp_path: Path) -> None:
    """Run unchanged, except for a tiny network and CPUs in place of local mode's simulated GPUs."""
    tiny = {"MODEL": "tiny", "STEPS": "20", "BATCH_SIZE": "8", "BASELINE": "5", "CPU_DEVICES": "2"}
    more = " ".join(f"""--set 'container.environment.BENCHMARK_{name}="{value}"'""" for name, value in tiny.items())
    with local_aws(local_options()) as aws:
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        shell = Shell(tmp_path, {"PATH": path, "ARGOSY_ENDPOINT_URL": aws.endpoint_url})
        submit, report, recorded = [line for line in command_lines(IMAGE) if line.startswith("argosy ")]
        runs = []
        for line in (submit, submit.replace("run-1-gpu", "run-4-gpu")):
            assert "SUCCEEDED" in shell.type(f"{line} {more}")
            runs.append(shell.run_id)
        typed = report.replace("RUN RUN RUN", " ".join(runs))
        assert typed != report
        shown = json.loads(shell.type(f"{typed} --json"))["measurements"]
        assert [(row["source"], row["gpus"], row["batchPerGpu"]) for row in shown] == [(runs[0], 1, 8), (runs[1], 2, 8)]
        assert shown[1]["comparedWith"] == runs[0]
        assert all(row["usdPerMillionImages"] < row["wholeTaskUsdPerMillionImages"] for row in shown)
        assert "1707.23" in shell.type(recorded)
