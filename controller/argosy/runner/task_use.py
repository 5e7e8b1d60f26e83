"""How much of its vCPUs, memory and GPUs does a task use?

Its program's process tree is read. For GPUs `nvidia-smi` is called until it hangs or fails for the first time.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from argosy.runner.measuring import Meter, Row, address, largest, mean, sampled, total
from argosy.runner.process_trees import TREES

CHEAP_S = 10.0  # the shortest program that is worth a request to S3, where requests cost money
_MIB = 1024**2
ANSWER_S = 10.0  # a driver that takes longer hangs
_FIGURES = "utilization.gpu,memory.used,memory.total,power.draw,name"
_LIMIT = re.compile(r"0=(\d+)M")
_PINNED = ("GPU-", "MIG-")  # else the variable is an image's own, such as "all"


def is_measured(environment: Mapping[str, str]) -> bool:
    """Whether a task with this environment has a place for its figures."""
    return address(environment, ProcessMeter.folder) != ""


@contextmanager
def measured(
    environment: Mapping[str, str], program: Callable[[], int | None], *, sees_processes: bool = False
) -> Iterator[None]:
    """Inside, the use of a task with this environment is measured. program: the process id of its program; None until
    it has started. sees_processes: whether `nvidia-smi` gives processes the ids that they have here."""
    meters: list[Meter] = [ProcessMeter(environment, program)]
    if _has_gpus(environment):
        meters.append(GpuMeter(environment, _in_group_of(program) if sees_processes else None))
    with sampled(meters if is_measured(environment) else (), environment):
        yield


class ProcessMeter:
    """vCPUs, the mean since the last sample, and MiB of resident memory."""

    folder, most = "use", "memoryMib"
    names: Sequence[str] = ("vcpus", "memoryMib")
    every_s, longest_s = 5.0, 600.0

    def __init__(self, environment: Mapping[str, str], program: Callable[[], int | None]) -> None:
        self._program = program
        self.least_s = 0.0 if "AWS_ENDPOINT_URL" in environment else CHEAP_S
        self.about: Mapping[str, Any] = {}
        self._seconds, self._at = 0.0, 0.0  # of all its processes, at the last sample

    def look(self, since_s: float) -> Row | None:
        """See Meter."""
        process = self._program()
        if process is None:
            return None, None
        seconds, size = TREES.seconds_and_bytes(process)
        vcpus = max(0.0, seconds - self._seconds) / (since_s - self._at)
        self._seconds, self._at = seconds, since_s
        return round(vcpus, 2), round(size / _MIB)


def _has_gpus(environment: Mapping[str, str]) -> bool:
    """Whether the environment names GPUs that were given to this task."""
    return environment.get("NVIDIA_VISIBLE_DEVICES", "").startswith(_PINNED)


class GpuMeter:
    """Percent of the time in which its GPUs computed, MiB of the GPU that it uses most, and watts of all.

    owns: whether a process of this machine is the task's; None: the ids of processes mean nothing here. Without it the
    memory of a task that shares a GPU is not known.
    """

    folder, most = "gpu-use", "memoryMib"
    names: Sequence[str] = ("use", "memoryMib", "watts")
    every_s, longest_s, least_s = 10.0, 60.0, 0.0

    def __init__(self, environment: Mapping[str, str], owns: Callable[[int], bool] | None) -> None:
        self._environment, self._owns = environment, owns
        limit = _LIMIT.match(environment.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", ""))
        self._share_mib = int(limit[1]) if limit else 0
        self.about: Mapping[str, Any] = {}

    def look(self, since_s: float) -> Row | None:
        """None if the driver does not answer."""
        rows = [row for row in self._ask(f"--query-gpu={_FIGURES}") if len(row) == len(_FIGURES.split(","))]
        if not rows:
            return None
        use, memory, has, watts = ([_number(row[column]) for row in rows] for column in range(4))
        self.about = {"gpus": len(rows), "name": rows[0][-1], "totalMib": largest(*has), "shareMib": self._share_mib}
        return mean(*use), self._own_memory() if self._share_mib else largest(*memory), total(*watts)

    def _own_memory(self) -> float | None:
        if self._owns is None:
            return None
        rows = self._ask("--query-compute-apps=pid,used_memory")
        return total(
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


def _number(text: str) -> float | None:
    """None for `[N/A]` and the like, which MIG devices have."""
    try:
        return float(text)
    except ValueError:
        return None


def _in_group_of(program: Callable[[], int | None]) -> Callable[[int], bool]:
    """Whether a process is in the process group of a program, which is None until it has started."""

    def owns(process: int) -> bool:
        try:
            return os.getpgid(process) == program()
        except OSError:  # it has ended
            return False

    return owns
