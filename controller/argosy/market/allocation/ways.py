"""In which ways may tasks use the GPUs of a size?

ECS chooses the GPU of a task that shares one, so an instance takes only what fits for every choice
(`placement.gpu_shares`). With G GPUs of M MiB, that condition is not a limit on a sum of needs, but each of these is:

- One GPU: the shares add up to at most M, and a task that takes the GPU takes all of it.
- Several GPUs, each task counted as a whole one: then no GPU is shared, whatever ECS chooses.
- Several GPUs, shares of at most L MiB only, in steps of g MiB: `ceil((M - L + 1) / g) * g` MiB close a GPU to the
  largest. So their sum is at most G times that, and L - 1.

Where owners keep apart, each has ways that only its shares may use. Every filling that placement allows is one of these
ways, so no filling is worth more than the best in any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from argosy.placement.arrays import ENDLESS, MAX_AMOUNT, BoolArray, FloatArray, IntArray

NEVER = MAX_AMOUNT + 1  # what a task needs in a way that is not open to it


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """The ways (w,) of all sizes, in the order of sizes."""

    size: IntArray
    gpus: IntArray
    """The GPUs of the size, in the units of the way."""
    units: IntArray
    """(w, s) what a task takes of them."""
    some: BoolArray
    """(w,) whether only some of the shares are open to it, and several GPUs."""

    @property
    def starts(self) -> IntArray:
        """(k,) the first way of each size."""
        return np.flatnonzero(np.diff(self.size, prepend=-1))

    @property
    def room(self) -> IntArray:
        """(k, s) how many tasks of one shape alone the GPUs of each size take."""
        found = np.where(self.units > 0, self.gpus[:, None] // np.maximum(self.units, 1), ENDLESS)
        return np.maximum.reduceat(found, self.starts, axis=0)

    def any_of(self, good: BoolArray) -> BoolArray:
        """(n, k) whether any way of each size is `good` (n, w)."""
        found: BoolArray = np.logical_or.reduceat(good, self.starts, axis=1)
        return found

    def mean_units(self, rows: IntArray) -> IntArray:
        """(s,) what a task takes of the most GPUs of these ways, on the average of those open to it."""
        units, gpus = self.units[rows], self.gpus[rows][:, None]
        share = np.divide(units, gpus, where=(units <= gpus) & (gpus > 0), out=np.full(units.shape, np.nan))
        some = np.isfinite(share)
        mean = np.where(some, share, 0.0).sum(axis=0) / np.maximum(some.sum(axis=0), 1)
        return np.where(units.any(axis=0), np.maximum(np.rint(mean * gpus.max(initial=0)), 1), 0).astype(np.int64)

    def best_of(self, rows: IntArray, worth: FloatArray) -> IntArray:
        """The positions in `rows`, which are ways in order, of the one with the most `worth` of each size."""
        order = np.lexsort((-worth, self.size[rows]))
        best: IntArray = order[np.flatnonzero(np.diff(self.size[rows][order], prepend=-1))]
        return best


def ways_of(gpus: IntArray, gpu_mib: IntArray, need: IntArray, shares: IntArray) -> Ways:
    """gpus, gpu_mib: (k,) of each size, and of one of its GPUs for shares. need: (s,) whole GPUs. shares: (s, 2) MiB of
    one GPU and owner; 0 MiB = it shares none."""
    size: list[int] = []
    room: list[int] = []
    units: list[IntArray] = []
    some: list[bool] = []
    for number, (count, memory) in enumerate(zip(gpus.tolist(), gpu_mib.tolist(), strict=True)):
        for only_some, most, taken in _ways(count, memory, need, shares):
            some.append(only_some)
            size.append(number)
            room.append(most)
            units.append(taken)
    size_of, room_of = np.array(size, dtype=np.int64), np.array(room, dtype=np.int64)
    return Ways(size_of, room_of, np.array(units).reshape(-1, len(need)), np.array(some, dtype=np.bool_))


def _ways(count: int, memory: int, need: IntArray, shares: IntArray) -> list[tuple[bool, int, IntArray]]:
    share, owner = shares.T
    fitting = (share > 0) & (share <= memory) & (count > 0)
    found, never = [], np.where(need > 0, NEVER, 0)
    for one in np.unique(owner[fitting]).tolist():
        mine = fitting & (owner == one)
        amounts = np.unique(share[mine])
        if count == 1:
            least = int(np.gcd.reduce(amounts))
            parts = memory // least
            found.append((False, parts, _units(need * parts, share, mine, least)))
            continue
        found.append((False, count, _units(need, share, mine, 0)))
        for step, most in sorted(_steps(amounts.tolist())):
            some = mine & (share <= most) & (share % step == 0)
            room = count * -(-(memory - most + 1) // step) + (most - 1) // step
            found.append((bool((some != mine).any()), room, _units(never, share, some, step)))
    return found or [(False, count, _units(need, share, fitting, 0))]


def _steps(amounts: Sequence[int]) -> set[tuple[int, int]]:
    """The greatest common divisor and the largest of every choice of these amounts, which are in order."""
    found: set[tuple[int, int]] = set()
    for amount in amounts:
        found |= {(gcd(step, amount), amount) for step, _ in found} | {(amount, amount)}
    return found


def _units(whole: IntArray, share: IntArray, open_to: BoolArray, step: int) -> IntArray:
    """(s,) step: MiB; 0 = every share takes a GPU."""
    return np.where(share > 0, np.where(open_to, share // step if step else 1, NEVER), whole)
