"""Which of thousands of distinct tasks go on one instance? The most valuable first, and the last two by a search.

Tasks are kept by value, highest first, so the best that still fits is the first that fits. Of very many tasks an even
sample is looked at.
"""

from __future__ import annotations

import numpy as np

from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_SEEN = 3_000  # tasks at once
_PAIRED = 110  # tasks among which every pair is tried
_BALANCED = 24  # the most valuable tasks, of which the one is taken that leaves cpu and memory most even
_BELONGS = 0.985  # a task is worth at least so much of what its room is worth on the size
_NEAR_THE_END = 4.2  # mean tasks that the room is worth: then pairs are tried


class Stock:
    """Tasks to be placed: `rest` (s,) of shapes with `need` (s, 3) and `value` (s,) each. Its owner changes `rest`."""

    def __init__(self, need: IntArray, value: FloatArray, rest: IntArray) -> None:
        self.need, self.value, self.rest = need, value, rest
        self._ranked: IntArray = np.argsort(-value, kind="stable").astype(np.int64)
        self._refill()

    @property
    def is_empty(self) -> bool:
        return not len(self._shape)

    @property
    def first(self) -> int:
        """The most valuable shape."""
        return int(self._shape[0])

    def put_aside(self) -> None:
        """Leave out the most valuable shape from now on."""
        self._ranked = self._ranked[self._ranked != self._shape[0]]
        self._keep(np.arange(len(self._shape)) > 0)
        if not len(self._shape):
            self._refill()

    def filling(self, capacity: IntArray, price: FloatArray, begin: float = 0.0) -> tuple[IntArray, IntArray, float]:
        """Shapes, how many of each, and their worth, for an instance of `capacity` (3,); empty where none fits.

        price: (3,) USD per hour of a cpu unit, a MiB and a GPU there: tasks that are worth much less than their room
        is go elsewhere. begin: from which share of the tasks on, by value, the first one is taken.
        """
        room = capacity.astype(np.float64)
        seen = self._fits(self._need, room).nonzero()[0]
        good = self._worth[seen] >= _BELONGS * (price @ self._need[:, seen])
        if good.any():
            seen = seen[good]
        taken = self._chosen(seen[int(begin * len(seen)) :], room, capacity, price)
        taken += self._filled_up(room, taken)
        at = np.sort(np.array(taken, dtype=np.int64))
        first = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]])) if len(at) else at
        shape, count = self._shape[at[first]], np.diff(np.append(first, len(at)))
        return shape, count, float(self.value[shape] @ count)

    def taken(self, tasks: int) -> None:
        """So many tasks have been taken out of `rest`."""
        self._gone += tasks
        self._left = self.rest[self._shape]
        if self._gone * 6 > len(self._shape) or not self._left.any():
            self._refill()
        else:
            self._keep(self._left > 0)

    def _refill(self) -> None:
        self._ranked = self._ranked[self.rest[self._ranked] > 0]
        step = -(-len(self._ranked) // _SEEN) or 1
        self._shape = self._ranked[:: max(1, step)]
        self._gone = 0
        self._need = np.ascontiguousarray(self.need[self._shape].T.astype(np.float64))
        self._worth, self._left = self.value[self._shape], self.rest[self._shape]
        self._gpus = bool(self._need[2].any())

    def _keep(self, kept: BoolArray) -> None:
        if not kept.all():
            self._shape, self._worth, self._left = self._shape[kept], self._worth[kept], self._left[kept]
            self._need = self._need[:, kept]

    def _fits(self, need: FloatArray, room: FloatArray) -> BoolArray:
        found: BoolArray = (need[0] <= room[0]) & (need[1] <= room[1])
        return found & (need[2] <= room[2]) if self._gpus else found

    def _chosen(self, seen: IntArray, room: FloatArray, capacity: IntArray, price: FloatArray) -> list[int]:
        """Positions of the tasks, taken from `room` in place."""
        taken: list[int] = []
        need, worth, left = self._need[:, seen], self._worth[seen], self._left[seen].copy()
        while True:
            kept = self._fits(need, room) & (left > 0)
            if not kept.all():
                seen, need, worth, left = seen[kept], need[:, kept], worth[kept], left[kept]
            if not len(seen):
                return taken
            space = float(price @ room)
            if space <= _NEAR_THE_END * float(worth.sum()) / len(worth) or space <= 2.2 * float(worth[0]):
                at = self._first_of_a_pair(need, worth, left, room)
            elif taken:
                first = need[:, :_BALANCED]
                rest = (room[:2, None] - first[:2]) / np.maximum(capacity[:2, None], 1)
                at = int(np.abs(rest[0] - rest[1]).argmin())
            else:
                at = 0
            taken.append(int(seen[at]))
            room -= need[:, at]
            left[at] -= 1

    def _first_of_a_pair(self, need: FloatArray, worth: FloatArray, left: IntArray, room: FloatArray) -> int:
        """The more valuable task of the best pair that fits, or the best single one."""
        n = len(worth)
        some = np.arange(n) if n <= _PAIRED else np.linspace(0, n - 1, _PAIRED).astype(np.int64)
        one = need[:, some]
        rest = room[:, None] - one
        fits = (one[0][None, :] <= rest[0][:, None]) & (one[1][None, :] <= rest[1][:, None])
        if self._gpus:
            fits &= one[2][None, :] <= rest[2][:, None]
        np.fill_diagonal(fits, left[some] > 1)
        both = np.where(fits, worth[some][:, None] + worth[some][None, :], 0.0)
        i, j = divmod(int(both.argmax()), len(some))
        best, pair = float(both[i, j]), (int(some[i]), int(some[j]))
        if best <= worth[0]:
            return 0
        for at in set(pair):
            partners = self._fits(need, room - need[:, at])
            partners[at] &= left[at] > 1
            other = int(partners.argmax())
            if partners[other] and worth[at] + worth[other] > best:
                best, pair = float(worth[at] + worth[other]), (at, other)
        return min(pair)

    def _filled_up(self, room: FloatArray, taken: list[int]) -> list[int]:
        """Positions of tasks that still fit, whatever they are worth there."""
        more: list[int] = []
        left = self._left.copy()
        np.subtract.at(left, taken, 1)
        while True:
            fits = self._fits(self._need, room) & (left > 0)
            at = int(fits.argmax()) if len(fits) else 0
            if not len(fits) or not fits[at]:
                return more
            more.append(at)
            room -= self._need[:, at]
            left[at] -= 1
