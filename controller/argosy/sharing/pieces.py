"""How much of the free room is in pieces that a large task fits into?

A task that ends leaves a piece of its own size on its instance. Two pieces are one only where they happen to lie on the
same instance, so a large task mostly waits until a large one ends, while small ones take what small ones leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argosy.sharing.columns import BoolArray, IntArray

FloatArray: TypeAlias = NDArray[np.float64]

WHOLE = 1 << 16  # the size of an instance
MOST_KINDS = 6  # of sizes that are told apart
SCATTERED = 0.5  # of the most that can lie in too small pieces, what does: our choice


@dataclass(frozen=True, slots=True)
class Pieces:
    """Sizes are parts of an instance, of `WHOLE`. A kind is a least size; kinds ascend."""

    size: IntArray  # (runs,) of the place of a task
    least: IntArray  # (kinds,)
    free: FloatArray  # (kinds,) room now in pieces of that kind
    comes: IntArray  # (n,) room that comes, as whole instances: rows as of `RoomInTime.comes`
    instances: int  # that pieces may lie on

    @classmethod
    def of(cls, size: ArrayLike, free: ArrayLike, comes: ArrayLike, instances: int) -> Pieces:
        """free: (instances,) of each instance."""
        sizes, holes = np.asarray(size, dtype=np.int64), np.asarray(free, dtype=np.int64)
        least = np.unique(sizes)
        if len(least) > MOST_KINDS:
            least = np.unique(1 << np.log2(np.maximum(least, 1)).astype(np.int64))[-MOST_KINDS:]
        kind = np.searchsorted(least, holes, side="right") - 1
        room = np.bincount(kind[kind >= 0], weights=holes[kind >= 0], minlength=len(least)).astype(np.float64)
        return cls(sizes, least, room, np.asarray(comes, dtype=np.int64), instances)


class Holes:
    """The free pieces, while time passes. Each kind but the least is a limit of its own, for tasks of at least that
    size."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces, self._free = pieces, pieces.free.astype(np.float64)
        self._kind = np.maximum(np.searchsorted(pieces.least, pieces.size, side="right") - 1, 0)
        self._limits = np.arange(1, len(pieces.least))

    def __len__(self) -> int:
        """How many limits these are."""
        return len(self._limits)

    def takes(self, part: FloatArray) -> IntArray:
        """(runs, limits) part: (runs,) of its place that a task takes."""
        size = np.maximum(np.rint(self._pieces.size * part), 1).astype(np.int64)
        found: IntArray = np.where(self._kind[:, None] >= self._limits, size[:, None], 0)
        return found

    @property
    def free(self) -> IntArray:
        """(limits,) room in pieces that are large enough."""
        found: IntArray = np.cumsum(self._free[::-1])[::-1][1:].astype(np.int64)
        return found

    def come(self, rows: BoolArray) -> None:
        """What comes is whole."""
        self._free[-1] += self._pieces.comes[rows].sum()

    def end(self, who: IntArray, count: IntArray, part: FloatArray) -> None:
        """Tasks of these runs leave their pieces. (n,) each."""
        np.add.at(self._free, self._kind[who], count * self._pieces.size[who] * part)

    def take(self, counts: IntArray, part: FloatArray) -> bool:
        """(runs,) each: the large ones first, and each the smallest pieces that are large enough. Whether larger ones
        came of those that nobody took."""
        need = np.bincount(self._kind, weights=counts * self._pieces.size * part, minlength=len(self._free))
        for kind in range(len(need) - 1, -1, -1):
            for piece in range(kind, len(need)):
                taken = min(need[kind], self._free[piece])
                need[kind] -= taken
                self._free[piece] -= taken
        return self._merge()

    def _merge(self) -> bool:
        """What nobody takes and lies in too small pieces is bounded: an instance has no more than one that is a little
        too small."""
        before = self._free.copy()
        for kind in self._limits.tolist():
            small = self._pieces.instances * (self._pieces.least[kind] - self._pieces.least[0]) * SCATTERED
            over = self._free[:kind].sum() - small
            for lower in range(kind - 1, -1, -1):
                moved = min(max(0.0, over), self._free[lower])
                self._free[lower] -= moved
                self._free[kind] += moved
                over -= moved
        return bool((self._free != before).any())
