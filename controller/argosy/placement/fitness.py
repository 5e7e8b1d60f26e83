"""The input and the answer of a fitness function.

The built-in steps of a chain get the same input and return keys (`keys.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from argosy.placement.arrays import AnyArray, BoolArray, FloatArray, IntArray

CPU, MEMORY, GPU = 0, 1, 2
AXES: Final = {"cpu": CPU, "memory": MEMORY, "gpu": GPU}


class Candidates(Protocol):
    """Columns over n candidates, (n,) each unless said otherwise, all read only."""

    def left(self, axis: int) -> IntArray:
        """Free after one more task is placed; axis 0: cpu units, 1: MiB, 2: GPUs."""

    def total(self, axis: int) -> IntArray:
        """Registered on the instance."""

    def need(self, axis: int) -> IntArray:
        """Of one task; (n,) or (1,)."""

    @property
    def opens_gpus(self) -> IntArray:
        """1 if the task shares a GPU and may open one that is idle, else 0; (n,) or (1,). `left` is without it."""

    @property
    def running_tasks(self) -> IntArray:
        """Live tasks on the instance, of every group."""

    @property
    def has_image(self) -> BoolArray:
        """Whether the instance has pulled the task's image."""

    @property
    def price_usd_per_hour(self) -> FloatArray: ...
    @property
    def interruption_rate(self) -> FloatArray:
        """Expected interruptions per instance-hour: by the type's band and the pool's history; 0 = on-demand."""

    @property
    def finish_at(self) -> FloatArray:
        """When the instance's last live task is expected to end, epoch seconds; 0 = idle."""

    @property
    def task_finish_at(self) -> FloatArray:
        """When the task is expected to end, epoch seconds; 0 = unknown. (n,) or (1,)."""

    @property
    def gpu_share_mib(self) -> IntArray:
        """MiB of one GPU that the task shares with others; 0 = it takes whole GPUs or none. (n,) or (1,)."""

    @property
    def shared_gpus(self) -> tuple[IntArray, IntArray]:
        """(d, n) int64: MiB left on each GPU known to be shared, 0 = there is no such GPU; and (n,) int64: MiB of one
        GPU, 0 = they cannot be shared."""

    @property
    def mix(self) -> Mix: ...


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """The typical GPU tasks of a queue, for the key `fragmentation`."""

    needs: IntArray
    """(3, t) int64: cpu units, MiB, GPUs of each shape."""
    shares_mib: IntArray
    """(t,) int64: what each shape shares of one GPU instead; 0 = it takes whole ones."""
    weights: IntArray
    """(t,) int64: how many tasks have it."""


Fitness = Callable[[Candidates], AnyArray]
"""A user's function: (n,) floats, the fitness of each candidate from 0 to 1, higher is better (as in Netflix's Fenzo;
NaN counts as 0). It may answer with a key instead: (n,) integers, the smallest comes first."""
