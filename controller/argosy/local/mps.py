"""NVIDIA's Multi-Process Service (MPS), through which tasks share GPUs of this machine.

Each GPU that is shared has its own daemon, which shows it alone: so the memory limit of a task always concerns device
0. It starts with the first task that needs it and ends with local mode.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.local.gpus import Gpu, Maker

CONTROL = "nvidia-cuda-mps-control"
ANSWER_S = 10.0  # a daemon that does not answer within it is gone


class MpsError(Exception):
    """A daemon that cannot be started; the message is a sentence."""


def can_share(gpus: Sequence[Gpu]) -> bool:
    """Whether tasks can share them: whole GPUs of NVIDIA, on a machine that has the daemon's program."""
    return bool(gpus) and not why_not_shared(gpus)


def why_not_shared(gpus: Sequence[Gpu]) -> str:
    """What is missing; "" if nothing is."""
    if not all(gpu.maker is Maker.NVIDIA and not gpu.id.startswith("MIG-") for gpu in gpus):
        return "that takes whole GPUs of NVIDIA"
    return "" if shutil.which(CONTROL) or not gpus else f"{CONTROL} is not installed"


def limits_of(sharing: Mapping[str, Any]) -> dict[str, str]:
    """The variables that ECS's agent sets for a container with this sharing strategy."""
    share = sharing["nvidiaMps"]
    percent = share.get("maxComputePercent")
    told = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={share['memory']}M"}
    return told | ({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percent)} if percent else {})


class MpsDaemon:
    """The daemon of one GPU. folder: of its pipes and logs; its path is short, because sockets are in it."""

    def __init__(self, gpu: Gpu, folder: Path) -> None:
        self._gpu = gpu
        self.pipes, self._logs = folder / "pipes", folder / "logs"
        self._starts = 0
        self._guard = threading.Lock()

    def start(self) -> int:
        """Start it unless it answers. Returns the number of this start. Raises MpsError."""
        with self._guard:
            if not self._starts or not self._answers():
                shutil.rmtree(self.pipes, ignore_errors=True)  # of the one that is gone
                for folder in (self.pipes, self._logs):
                    folder.mkdir(parents=True, exist_ok=True)
                fault = self._asked("-d")
                if fault:
                    raise MpsError(f"the MPS daemon of {self._gpu.id} cannot be started: {fault}")
                self._starts += 1
            return self._starts

    def why_lost(self, start: int) -> str:
        """A sentence if the daemon of that start is gone, and with it what its tasks had on the GPU; else ""."""
        with self._guard:
            is_there = start == self._starts and self._answers()
        return "" if is_there else f"the MPS daemon of {self._gpu.id}, which the task shared, has ended"

    def end(self) -> None:
        """Ask it to end, if it was ever started."""
        with self._guard:
            if self._starts:
                self._asked(said="quit\n")

    def _answers(self) -> bool:
        return not self._asked(said="get_server_list\n")

    def _asked(self, *words: str, said: str = "") -> str:
        """The fault, if any."""
        folders = {"CUDA_MPS_PIPE_DIRECTORY": str(self.pipes), "CUDA_MPS_LOG_DIRECTORY": str(self._logs)}
        told = {**os.environ, **folders, "CUDA_VISIBLE_DEVICES": self._gpu.id}
        try:
            asked = subprocess.run(
                [CONTROL, *words],
                input=said,
                env=told,
                text=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # the daemon would hold a pipe open
                timeout=ANSWER_S,
                check=False,
            )
        except OSError as fault:
            return fault.strerror or str(fault)
        except subprocess.TimeoutExpired:
            return f"{CONTROL} does not answer"
        return f"{CONTROL} ended with {asked.returncode}" if asked.returncode else ""
