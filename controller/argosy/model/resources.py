"""How much of an instance does a task need or leave free?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

CPU_UNITS_PER_VCPU = 1024  # ECS's unit


def said_vcpus(cpu_units: float) -> str:
    """`0.5 vCPUs`, `1 vCPU`."""
    vcpus = cpu_units / CPU_UNITS_PER_VCPU
    return f"{vcpus:g} vCPU" if vcpus == 1 else f"{vcpus:g} vCPUs"


class Resources(NamedTuple):
    """An amount of cpu (1/1024 vCPU), memory (MiB) and whole GPUs, and of GPU memory that is shared."""

    cpu_units: int = 0
    memory_mib: int = 0
    gpus: int = 0
    gpu_share_mib: int = 0
    """Of a task: MiB of one GPU. Of an instance: those of all its GPUs, if they can be shared."""

    @property
    def cpu_memory_gpus(self) -> tuple[int, int, int]:
        """Cpu units, MiB and whole GPUs. Shares of GPUs are counted by GPU instead."""
        return self[:3]

    def plus(self, other: Resources, times: int = 1) -> Resources:
        return Resources(*(mine + times * its for mine, its in zip(self, other, strict=True)))

    def minus(self, other: Resources, times: int = 1) -> Resources:
        return self.plus(other, -times)

    def beyond(self, other: Resources) -> Resources:
        """The rest of it, 0 or more, without the other amount: daemons may need more than there is."""
        return Resources(*(max(0, mine - its) for mine, its in zip(self, other, strict=True)))

    def fits_in(self, total: Resources) -> bool:
        """Whether an instance with that total has room for it when empty; a share is on one GPU."""
        of_one_gpu = total.gpu_share_mib // max(1, total.gpus)
        return self.gpu_share_mib <= of_one_gpu and all(mine <= its for mine, its in zip(self, total, strict=True))

    def share_of(self, total: Resources) -> float:
        """The largest fraction of any axis of `total` that this amount takes (dominant share, 0..1). A task that shares
        a GPU takes the part of the memory of the instance's GPUs that it asks for."""
        return max((mine / theirs for mine, theirs in zip(self, total, strict=True) if theirs > 0), default=0.0)


def as_stored(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """For `asdict`: earlier versions read three axes, which suffice where no GPU is shared."""
    return {
        name: value.cpu_memory_gpus if isinstance(value, Resources) and not value.gpu_share_mib else value
        for name, value in members
    }


AXES = len(Resources._fields)
NOTHING = Resources()
