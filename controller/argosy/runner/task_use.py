"""How many vCPUs and how much memory does a task use? Its program's process tree is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from argosy.runner.gpu_use import GpuMeter, has_gpus, in_group_of
from argosy.runner.measuring import Meter, Row, address, sampled
from argosy.runner.process_trees import TREES

CHEAP_S = 10.0  # the shortest program that is worth a request to S3, where requests cost money
_MIB = 1024**2


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
    if has_gpus(environment):
        meters.append(GpuMeter(environment, in_group_of(program) if sees_processes else None))
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
