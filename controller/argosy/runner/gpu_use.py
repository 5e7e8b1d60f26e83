"""How much of its GPUs does a task use? `nvidia-smi` is called until it hangs or fails for the first time."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy.runner.measuring import Row, largest, mean, total

ANSWER_S = 10.0  # a driver that takes longer hangs
_FIGURES = "utilization.gpu,memory.used,memory.total,power.draw,name"
_LIMIT = re.compile(r"0=(\d+)M")
_PINNED = ("GPU-", "MIG-")  # else the variable is an image's own, such as "all"


def has_gpus(environment: Mapping[str, str]) -> bool:
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


def in_group_of(program: Callable[[], int | None]) -> Callable[[int], bool]:
    """Whether a process is in the process group of a program, which is None until it has started."""

    def owns(process: int) -> bool:
        try:
            return os.getpgid(process) == program()
        except OSError:  # it has ended
            return False

    return owns
