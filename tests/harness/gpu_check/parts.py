"""The parts of the check, each a row: what is wanted, what was found, and whether that is enough."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import argosy
from argosy.local.gpus import Gpu
from argosy.local.options import images_folder

TASK = Path(__file__).parent / "task.py"
PATIENCE_S = 150.0
TASKS, SPEED_S = 8, 6
SHARED_TIMES = 6.9  # of eight processes against one, on an H200 by hand (docs/guides/gpus.md)
OF_SHARED, OF_TRAINING = 0.9, 0.98
LIMIT_MIB = 4000
TRAINING = ("--model", "resnet50", "--batch-size", "256", "--steps", "90", "--warm-up", "30", "--compile", "off")
TINY = ("--model", "resnet-tiny", "--steps", "300", "--cpu-processes", "1")
IMAGES = 32


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. enough: None = nothing is wanted of it, or it did not run."""

    part: str
    wanted: str
    found: str
    enough: bool | None


@dataclass(frozen=True, slots=True)
class Bench:
    """Local mode on this machine's GPUs. python: has PyTorch. on_cpu: PyTorch has no GPU; then speeds prove nothing.

    memory_mib: of the smallest instance, which shares have an eighth of.
    """

    client: argosy.Client
    gpus: Sequence[Gpu]
    share_mib: int
    memory_mib: int
    python: str
    scratch: Path
    on_cpu: bool

    def rows(self, words: Sequence[str], tasks: int, **resources: Any) -> list[dict[str, Any]]:
        """What the tasks of a run printed. Raises argosy.ArgosyError."""
        return list(self._ended(("python", str(TASK), *words), tasks, "stdout", "training", resources).rows())

    def program(self, image: str, words: Sequence[str]) -> None:
        """An image's program with a whole GPU; without ARGOSY_OUTPUT_URI it needs no S3. Raises argosy.ArgosyError."""
        self._ended(("env", "-u", "ARGOSY_OUTPUT_URI", self.python, *words), 1, "none", image, {"gpus": 1})

    def _ended(self, run: Sequence[str], tasks: int, result: str, image: str, resources: dict[str, Any]) -> argosy.Run:
        most_mib = self.memory_mib // (TASKS if "gpuShare" in resources else 1)
        spec = {
            "version": 1,
            "name": "gpu-check",
            "container": {"image": f"argosy/pytorch-{image}-gpu"},
            "run": [*run],
            "result": result,
            "resources": {"vcpus": 0.25, "memory": min(1000 if self.on_cpu else 8000, most_mib), **resources},
            "array": {"size": tasks},
            "retryStrategy": {"attempts": 1},
        }
        ended = self.client.submit(spec)
        try:
            ended.wait(timeout=PATIENCE_S)
        except argosy.WaitTimedOut:
            ended.cancel("it takes too long")  # so that it takes no GPU from the next part
            raise
        return ended

    def by_hand(self, image: str, words: Sequence[str]) -> None:
        """The same program on the first GPU without Argosy. Raises subprocess.CalledProcessError."""
        shown = {"CUDA_VISIBLE_DEVICES": "" if self.on_cpu else self.gpus[0].id, "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(
            [self.python, *words], cwd=images_folder() / f"pytorch-{image}", env=dict(os.environ) | shown,
            check=True, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip

    def folder(self) -> str:
        return tempfile.mkdtemp(dir=self.scratch)


def one_after_another(bench: Bench) -> Row:
    rows = sorted(bench.rows(("whole", "${index}"), TASKS, gpus=1), key=lambda row: float(row["began"]))
    right, most = sum(row["right"] for row in rows), len(bench.gpus)
    at_once = max(sum(other["began"] < row["ended"] for other in rows[n:]) for n, row in enumerate(rows))
    found = f"{right} right, at most {at_once} at a time"
    return Row("whole GPUs", f"{TASKS} tasks right, {most} at a time", found, right == TASKS and at_once <= most)


def sharing(bench: Bench) -> Row:
    def together(tasks: int, **resources: Any) -> float:
        words = ("speed", bench.folder(), str(tasks), str(1 if bench.on_cpu else SPEED_S))
        return sum(float(row["imagesPerSecond"]) for row in bench.rows(words, tasks, **resources))

    alone, shared = together(1, gpus=1), together(TASKS, gpuShare={"memoryMib": bench.share_mib})
    floor = OF_SHARED * SHARED_TIMES
    found = f"{alone:,.0f} and {shared:,.0f} images/s: {shared / alone:.1f} times"
    return Row(
        "shares", f"{TASKS} shares do {floor:.1f} times one GPU's", found, bench_verdict(bench, shared, floor * alone)
    )


def memory_limit(bench: Bench) -> Row:
    [row] = bench.rows(("memory", str(LIMIT_MIB)), 1, gpuShare={"memoryMib": LIMIT_MIB})
    told = row["limit"] == f"0={LIMIT_MIB}M"
    held = (row["quarter"], row["double"]) == (True, False)
    found = f"limit {row['limit']}" + ("" if bench.on_cpu else f"; quarter {row['quarter']}, double {row['double']}")
    return Row("memory of a share", "a quarter is had, double is refused", found, told and (bench.on_cpu or held))


def training(bench: Bench) -> Row:
    """By hand before and after, because clocks of GPUs change: Argosy's is compared with their mean."""
    speeds = []
    words = ("-m", "training", *(TINY if bench.on_cpu else TRAINING), "--checkpoint-seconds", "0", "--output")
    for run in (bench.by_hand, bench.program, bench.by_hand):
        file = Path(bench.folder()) / "part.jsonl"
        run("training", (*words, str(file)))
        speeds.append(float(json.loads(file.read_text())["imagesPerSecond"]))
    before, through, after = speeds
    mean = (before + after) / 2
    found = f"{through:,.0f} images/s, by hand {before:,.0f} and {after:,.0f}: {through / mean:.1%}"
    return Row("training", f"{OF_TRAINING:.0%} of by hand", found, bench_verdict(bench, through, OF_TRAINING * mean))


def inference(bench: Bench) -> Row:
    """Labels of the GPU in half precision against those of the CPU."""
    folder = Path(bench.folder())
    (folder / "images").mkdir()
    bench.by_hand("training", (str(TASK), "model", str(folder / "model.pt")))
    bench.by_hand("training", (str(TASK), "images", str(folder / "images"), str(IMAGES)))
    words = ("-m", "inference", f"0:{IMAGES}", "--images", str(folder / "images"), "--model", str(folder / "model.pt"))
    bench.by_hand("inference", (*words, "--device", "cpu", "--output", str(folder / "cpu")))
    bench.program(
        "inference", (*words, *(("--device", "cpu") if bench.on_cpu else ()), "--output", str(folder / "gpu"))
    )
    best = [
        [row["top"][0] for row in map(json.loads, (folder / name).read_text().splitlines())] for name in ("cpu", "gpu")
    ]
    alike = sum(
        one["label"] == other["label"] and abs(one["score"] - other["score"]) < 0.01
        for one, other in zip(*best, strict=True)
    )
    return Row("inference", f"{IMAGES} labels as on a CPU", f"{alike} alike", alike >= IMAGES - 1)


def bench_verdict(bench: Bench, found: float, floor: float) -> bool | None:
    return None if bench.on_cpu else found >= floor


PARTS = {
    "whole GPUs": one_after_another,
    "shares": sharing,
    "memory of a share": memory_limit,
    "training": training,
    "inference": inference,
}


def run(bench: Bench, names: Sequence[str]) -> Iterator[Row]:
    """One row for each part; a part that fails says why."""
    for name in names:
        try:
            yield PARTS[name](bench)
        except (argosy.ArgosyError, subprocess.SubprocessError, OSError) as fault:
            said = str(getattr(fault, "stderr", "") or fault).strip().splitlines()
            yield Row(name, "", said[-1] if said else type(fault).__name__, enough=False)


def not_run(names: Sequence[str], reason: str) -> Iterator[Row]:
    return (Row(name, "", f"not run: {reason}", None) for name in names)
