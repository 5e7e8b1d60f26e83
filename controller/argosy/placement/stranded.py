"""How much of an instance's free GPUs could the typical tasks of the cluster not use?

FGD (ATC'23). What is free of an instance's GPUs is stranded for a task type if the instance has too little cpu, memory
or GPUs for it. Otherwise the unused part of each shared GPU that is too small for the type counts. The sum over types
is weighted by their frequency.

Types that share the same amount of a GPU differ only in whether the instance is too small for them. So a table per
amount holds the weight of those that it is large enough for, by the place of its free cpu, memory and GPUs among their
needs, and an instance costs one look into each table, whatever the number of types.

Example: types of 4 and 8 vCPUs, each with a weight of 1 and one whole GPU. With 6 vCPUs and 2 GPUs free, the weight of
the first is found. Of 2,000 thousandths for each of both, 2,000 are stranded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from argosy.placement.arrays import MAX_AMOUNT, IntArray
from argosy.placement.fitness import AXES, CPU, GPU, MEMORY, Mix

THOUSANDTHS: Final = 1_000  # of a GPU
Free = tuple[IntArray, IntArray, IntArray]  # cpu units, MiB and idle GPUs of the same instances


@dataclass(frozen=True, slots=True, eq=False)
class StrandedGpus:
    """The tables of a mix. s: the distinct amounts that its types share, in MiB; 0 = they take whole GPUs."""

    idle_mib: IntArray
    """(s, 1): the memory of an idle GPU that a type can use, at least."""
    rest_mib: IntArray
    """(s, 1): what must be left on a shared GPU that it can use."""
    weight: int
    """Of all types."""
    levels: tuple[IntArray, IntArray, IntArray]
    """For each axis the distinct needs, ascending."""
    steps: tuple[IntArray, ...]
    """For each axis (s, levels + 1): the sum over the axes is the place in `served`."""
    served: IntArray
    """The weight of the types that an instance is large enough for."""

    @classmethod
    def of(cls, mix: Mix) -> StrandedGpus:
        """The tables of a mix, made once."""
        return _made(mix)

    def growth(self, before: Free, after: Free, rests: tuple[IntArray, IntArray], memory: IntArray) -> IntArray:
        """(n,) int64: by how many thousandths of a GPU per task of the mix more are stranded, rounded down. before:
        (n,) or (1,), as `memory`. rests: (d, n) or (d, 1) MiB left on each shared GPU before and after."""
        grown = self._thousandths(after, rests[1], memory) - self._thousandths(before, rests[0], memory)
        grown //= self.weight
        return grown

    def _thousandths(self, free: Free, rests: IntArray, memory: IntArray) -> IntArray:
        """Thousandths of free GPUs times the number of tasks of the mix that could not use them."""
        cpu, ram, gpus = zip(self.steps, self.levels, free, strict=True)
        at = _places(*cpu) + _places(*ram)
        at += _places(*gpus)
        idle = np.maximum(free[-1], 0) * THOUSANDTHS
        usable = np.where(memory >= self.idle_mib, idle, 0)
        for rest, part in zip(rests, rests * THOUSANDTHS // np.maximum(memory, 1), strict=True):
            idle = idle + part
            usable = usable + np.where(rest >= self.rest_mib, part, 0)
        usable *= self.served.take(at)
        return idle * self.weight - usable.sum(axis=0)  # type: ignore[no-any-return]


def _places(steps: IntArray, levels: IntArray, amount: IntArray) -> IntArray:
    """(s, n)."""
    return steps.take(levels.searchsorted(amount, "right"), axis=1)


@lru_cache(maxsize=4)
def _made(mix: Mix) -> StrandedGpus:
    shares_mib, kind = np.unique(mix.shares_mib, return_inverse=True)
    levels = np.unique(mix.needs[CPU]), np.unique(mix.needs[MEMORY]), np.unique(mix.needs[GPU])
    steps = (*(np.zeros((len(shares_mib), len(each) + 1), dtype=np.int64) for each in levels),)
    tables: list[IntArray] = []
    for number in range(len(shares_mib)):
        needs, weights = mix.needs[:, kind == number], mix.weights[kind == number]
        mine = [np.unique(each) for each in needs]
        table = np.zeros([len(each) + 1 for each in mine], dtype=np.int64)
        np.add.at(table, tuple(own.searchsorted(each) + 1 for own, each in zip(mine, needs, strict=True)), weights)
        for axis in AXES.values():
            step = table.strides[axis] // table.itemsize
            steps[axis][number, 1:] = mine[axis].searchsorted(levels[axis], "right") * step
            table = np.ascontiguousarray(table.cumsum(axis=axis))
        steps[CPU][number] += sum(map(len, tables))
        tables.append(table.ravel())
    sharing = np.where(shares_mib > 0, shares_mib, 2 * MAX_AMOUNT)
    weight = int(mix.weights.sum())
    return StrandedGpus(shares_mib[:, None], sharing[:, None], weight, levels, steps, np.concatenate(tables))
