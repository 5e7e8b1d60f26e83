"""How much of an instance does a task need or leave free?"""

from __future__ import annotations

from typing import NamedTuple

CPU_UNITS_PER_VCPU = 1024  # ECS's unit


def said_vcpus(cpu_units: float) -> str:
    """`0.5 vCPUs`, `1 vCPU`."""
    vcpus = cpu_units / CPU_UNITS_PER_VCPU
    return f"{vcpus:g} vCPU" if vcpus == 1 else f"{vcpus:g} vCPUs"


class Resources(NamedTuple):
    """An amount of cpu (1/1024 vCPU), memory (MiB) and whole GPUs."""

    cpu_units: int = 0
    memory_mib: int = 0
    gpus: int = 0

    def plus(self, other: Resources, times: int = 1) -> Resources:
        return Resources(
            self.cpu_units + times * other.cpu_units,
            self.memory_mib + times * other.memory_mib,
            self.gpus + times * other.gpus,
        )

    def minus(self, other: Resources, times: int = 1) -> Resources:
        return self.plus(other, -times)

    def beyond(self, other: Resources) -> Resources:
        """The rest of it, 0 or more, without the other amount: daemons may need more than there is."""
        return Resources(*(max(0, mine - its) for mine, its in zip(self, other, strict=True)))

    def fits_in(self, total: Resources) -> bool:
        return all(mine <= theirs for mine, theirs in zip(self, total, strict=True))

    def share_of(self, total: Resources) -> float:
        """The largest fraction of any axis of `total` that this amount takes (dominant share, 0..1)."""
        return max((mine / theirs for mine, theirs in zip(self, total, strict=True) if theirs > 0), default=0.0)


NOTHING = Resources()
