"""How much of its GPUs does a task use, while its program runs?

`nvidia-smi` is asked every ten seconds, and what it says is written next to the attempts' folders every minute and at
the end. A driver that hangs or fails is asked no more. Nothing here makes a task fail: it then has no figures.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from argosy.runner.objects import Objects
from argosy.runner.order import RunnerFault

FIRST_S, EVERY_S, WRITTEN_S = 1.0, 10.0, 60.0  # to the first sample, between two, between two writes
ANSWER_S = 10.0  # a driver that takes longer hangs
LAST_WRITE_S = 3.0  # how long a task's end may wait for it
MOST_SAMPLES = 240  # even; from then on two of them become one
_FIGURES = "utilization.gpu,memory.used,memory.total,power.draw,name"
_ATTEMPT = re.compile(r"(s3://.+/attempts/)(\d+/\d+)/")
_LIMIT = re.compile(r"0=(\d+)M")
_PINNED = ("GPU-", "MIG-")  # else the variable is an image's own, such as "all"
Sample = tuple[float, float | None, float | None, float | None]  # seconds, %, MiB, W; None = the driver does not say


def address(environment: Mapping[str, str]) -> str:
    """Where the figures of this task belong: `attempts/gpu-use/0000003/1.json`; "" if it has no GPU."""
    own = _ATTEMPT.fullmatch(environment.get("ARGOSY_OUTPUT_URI", ""))
    has_gpus = environment.get("NVIDIA_VISIBLE_DEVICES", "").startswith(_PINNED)
    return f"{own[1]}gpu-use/{own[2]}.json" if own and has_gpus else ""


@contextmanager
def measured(environment: Mapping[str, str], owns: Callable[[int], bool] | None = None) -> Iterator[None]:
    """Inside, the GPUs of a task with this environment are measured, if it has any.

    owns: whether a process of this machine is the task's; None: the ids of processes mean nothing here. Without it the
    memory of a task that shares a GPU is not known.
    """
    to = address(environment)
    if not to:
        yield
        return
    over = threading.Event()
    watch = _Watch(environment, to, over, owns)
    thread = threading.Thread(target=watch.run, name="argosy-gpu-use", daemon=True)  # a driver may hang forever
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LAST_WRITE_S)


class GpuSamples:
    """Fewer than `MOST_SAMPLES` rows: the earlier ones are merged."""

    def __init__(self) -> None:
        self.rows: list[Sample] = []

    def add(self, row: Sample) -> None:
        self.rows.append(row)
        if len(self.rows) >= MOST_SAMPLES:
            self.rows = list(map(_merged, self.rows[::2], self.rows[1::2]))


class _Watch:
    """The measurements of one task."""

    def __init__(
        self, environment: Mapping[str, str], to: str, over: threading.Event, owns: Callable[[int], bool] | None
    ) -> None:
        self._environment, self._to, self._over, self._owns = environment, to, over, owns
        limit = _LIMIT.match(environment.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", ""))
        self._share_mib = int(limit[1]) if limit else 0
        self._about: dict[str, Any] = {}
        self._samples = GpuSamples()

    def run(self) -> None:
        """Until the program has ended, or the driver no longer answers."""
        begun = written = time.monotonic()
        wait_s = FIRST_S
        while not self._over.wait(wait_s) and self._look(begun):
            wait_s = EVERY_S
            if time.monotonic() - written >= WRITTEN_S:
                written = time.monotonic()
                if not self._write():
                    return
        self._write()

    def _look(self, begun: float) -> bool:
        rows = [row for row in self._ask(f"--query-gpu={_FIGURES}") if len(row) == len(_FIGURES.split(","))]
        if not rows:
            return False
        use, memory, total, watts = ([_number(row[column]) for row in rows] for column in range(4))
        self._about = {"gpus": len(rows), "name": rows[0][-1], "totalMib": _most(*total), "shareMib": self._share_mib}
        held = self._own_memory() if self._share_mib else _most(*memory)
        self._samples.add((round(time.monotonic() - begun, 1), _mean(*use), held, _sum(*watts)))
        return True

    def _own_memory(self) -> float | None:
        if self._owns is None:
            return None
        rows = self._ask("--query-compute-apps=pid,used_memory")
        return _sum(
            *(_number(row[1]) for row in rows if len(row) == 2 and row[0].isdigit() and self._owns(int(row[0])))
        )

    def _ask(self, what: str) -> list[list[str]]:
        """Rows of cells; none if the driver does not answer."""
        words = ["nvidia-smi", "-i", self._environment["NVIDIA_VISIBLE_DEVICES"], what, "--format=csv,noheader,nounits"]
        try:
            told = subprocess.run(words, capture_output=True, text=True, timeout=ANSWER_S, check=False)
        except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
            return []
        lines = told.stdout.splitlines() if told.returncode == 0 else ()
        return [[cell.strip() for cell in row] for row in csv.reader(lines)]

    def _write(self) -> bool:
        """Whether S3 has taken it, or there is nothing yet."""
        if not self._samples.rows:
            return True
        names = ("at", "use", "memoryMib", "watts")
        columns = dict(zip(names, map(list, zip(*self._samples.rows, strict=True)), strict=True))
        try:
            text = json.dumps({"version": 1, **self._about, **columns}).encode()
            Objects({**self._environment, "AWS_MAX_ATTEMPTS": "2"}, threading.Event()).write(self._to, text)
        except RunnerFault:
            return False
        return True


def _merged(early: Sample, late: Sample) -> Sample:
    return late[0], _mean(early[1], late[1]), _most(early[2], late[2]), _mean(early[3], late[3])


def _number(text: str) -> float | None:
    """None for `[N/A]` and the like, which MIG devices have."""
    try:
        return float(text)
    except ValueError:
        return None


def _known(given: Iterable[float | None]) -> list[float]:
    return [each for each in given if each is not None]


def _sum(*given: float | None) -> float | None:
    found = _known(given)
    return round(sum(found), 1) if found else None


def _mean(*given: float | None) -> float | None:
    found = _known(given)
    return round(sum(found) / len(found), 1) if found else None


def _most(*given: float | None) -> float | None:
    return max(_known(given), default=None)


def in_group_of(program: Callable[[], int | None]) -> Callable[[int], bool]:
    """Whether a process is in the process group of a program, which is None until it has started."""

    def owns(process: int) -> bool:
        try:
            return os.getpgid(process) == program()
        except OSError:  # it has ended
            return False

    return owns
