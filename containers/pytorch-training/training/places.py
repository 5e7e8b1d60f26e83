"""Where does each process train? On a GPU of the task, on a process of CPUs in its place, or on the one CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from training.arguments import ALL_GPUS, Request

LEAST_FOR_BF16 = (8, 0)  # compute capability: A100, A10G, L4 and newer; T4 and V100 only imitate it


class WrongImage(Exception):
    """The task cannot do its work, wherever it runs."""


class NoDevice(Exception):
    """The GPUs do not show up here: another instance may do better."""


@dataclass(frozen=True)
class Place:
    """One process of `world`. device: PyTorch's name; kind: the model of the GPU, or CPU."""

    rank: int
    world: int
    device: str
    kind: str

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu"


def count(torch: Any, request: Request) -> int:
    """The number of processes. Raises WrongImage or NoDevice."""
    if request.cpu_processes:
        return request.cpu_processes
    there: int = torch.cuda.device_count()
    if not request.gpus or request.gpus == ALL_GPUS:
        return max(there, 1)
    wanted = len(request.gpus)
    if torch.version.cuda is None:
        raise WrongImage(
            f"{_gpus(wanted)} given, but this image is the CPU flavour: build it with FLAVOUR=gpu,"
            " or give --cpu-processes to try it out"
        )
    if there < wanted:
        raise NoDevice(
            f"{_gpus(wanted)} given ({', '.join(request.gpus)}), but PyTorch sees {there}:"
            " the driver or the NVIDIA runtime of this instance does not work"
        )
    return wanted


def place(torch: Any, request: Request, rank: int, world: int) -> Place:
    """rank: also the number of the process's GPU, since all processes are on one instance."""
    if request.cpu_processes or not torch.cuda.device_count():
        return Place(rank, world, "cpu", "CPU")
    return Place(rank, world, f"cuda:{rank}", torch.cuda.get_device_name(rank))


def precision(torch: Any, request: Request, where: Place) -> str:
    """bf16 or float32."""
    if request.precision != "auto":
        return request.precision
    return "bf16" if where.on_gpu and torch.cuda.get_device_capability(where.device) >= LEAST_FOR_BF16 else "float32"


def _gpus(number: int) -> str:
    return "1 GPU was" if number == 1 else f"{number} GPUs were"
