"""How many tasks that share a GPU may each instance take, whichever of its GPUs ECS chooses for each?

ECS chooses the GPU of a share by memory alone, among those that no task takes whole, and reports it only later
(`GpuUse.known_mib`). So a task is counted only where it fits for every choice of GPUs and every order of the calls:

- A GPU of `M` MiB is closed to a share of `s` MiB once more than `M - s` MiB of it are taken. Shares whose GPU is
  unknown close all GPUs only if there are at least as many of them as open GPUs, and if their memory adds up to what
  closes them all. That sum is counted in steps of the greatest common divisor of their sizes. Only the largest share
  has to be checked: every other one fits wherever it does.
- Each share whose GPU is unknown may have opened an idle GPU. That GPU is not counted for tasks that take whole GPUs.

Example: on 2 GPUs of 24 GiB, 4 shares of 10 GiB fit. It takes 2 to close a GPU, so the first 3 leave one open. After a
share of 10 GiB and one of 16 GiB, no other of 16 is counted: the two may be on different GPUs.

Owners who keep apart share no instance, because ECS could choose a GPU of another owner on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from argosy.placement.arrays import MAX_AMOUNT, BoolArray, IntArray
from argosy.placement.demand import Batch

_Position = tuple[int, tuple[int, ...], int, int, int]  # memory, known, fresh, largest and step of a row
_WRITTEN = ("shares", "total", "largest", "step", "owner", "opened")  # columns of a row that shares change
OF_SEVERAL = -1  # of several owners, or an unknown one: shares of an owner that keeps apart are not placed there


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The tasks on the GPUs of one instance, as far as they affect shares. Amounts in MiB."""

    known_mib: tuple[int, ...] = ()
    """The sum of the shares on each GPU that is known to be shared."""
    shares: int = 0
    """Shares on GPUs not known; the next three are about them."""
    shares_mib: int = 0
    largest_mib: int = 0
    step_mib: int = 0
    """The greatest common divisor of their sizes."""
    whole_unknown: int = 0
    """GPUs of tasks that take them whole, while it is not known which they are."""
    owner: int = 0
    """Whose shares they are (`Batch.gpu_owner`); 0 = there are none, or it does not matter."""

    @property
    def opened(self) -> int:
        """GPUs that may be shared already."""
        return len(self.known_mib) + self.shares

    def plus(self, share_mib: int, count: int = 1, owner: int = 0) -> GpuUse:
        """With that many more shares on GPUs not known."""
        if not (share_mib and count):
            return self
        return GpuUse(
            self.known_mib,
            self.shares + count,
            self.shares_mib + count * share_mib,
            max(self.largest_mib, share_mib),
            gcd(self.step_mib, share_mib),
            self.whole_unknown,
            owner if self.owner in (0, owner) else OF_SEVERAL if owner else self.owner,
        )


UNUSED = GpuUse()


@dataclass(slots=True, eq=False)
class ShareColumns:
    """The columns of `GpuUse` over m instances during a pass; (m,) int64 unless said otherwise."""

    memory: IntArray
    """Of one GPU, for shares; 0 = they cannot be shared."""
    unshared: IntArray
    """GPUs without a task that takes them whole, when the pass began."""
    idle: IntArray
    """GPUs that no task can have taken, when the pass began: `PassState.free`."""
    known: IntArray
    """(k, m) MiB on each GPU known to be shared; 0 = there is no such GPU."""
    whole_unknown: IntArray
    shares: IntArray
    total: IntArray
    largest: IntArray
    step: IntArray
    owner: IntArray
    opened: IntArray
    """Idle GPUs that shares of this pass may open."""

    def room(self, rows: IntArray, idle: IntArray, share_mib: int | IntArray) -> IntArray:
        """(r,) how many shares of that size each of `rows` takes one after the other. idle: (m,) now. share_mib: one
        for all, or (r,)."""
        whole = (self.idle - self.opened - idle)[rows]  # GPUs that this pass gave to tasks that take them whole
        memory, shares, known = self.memory[rows], self.shares[rows], self.known[:, rows]
        largest, step = np.maximum(self.largest[rows], share_mib), np.gcd(self.step[rows], share_mib)
        fresh = np.maximum(self.unshared[rows] - whole - (known > 0).sum(axis=0), 0)
        open_gpus, most_mib = _closing(memory, known, fresh, largest, step)
        found = np.maximum(open_gpus - shares, (most_mib - self.total[rows]) // share_mib)
        unsure = self.whole_unknown[rows] + whole > 0  # such tasks may be started after all shares
        found = np.where(unsure, np.minimum(found, fresh - shares), found)
        return np.where(memory >= largest, np.maximum(found, 0), 0)

    def rests(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """(d, r) MiB left on each GPU known to be shared, 0 = there is no such GPU; and (r,) the memory of one GPU."""
        known, memory = self.known[:, rows], self.memory[rows]
        return np.where(known > 0, np.maximum(memory - known, 0), 0), memory

    def open_to(self, rows: IntArray, owner: int | IntArray) -> BoolArray:
        """(r,) whether no share of another owner may be there. owner: as `Batch.gpu_owner`; one for all, or (r,)."""
        here = self.owner[rows]
        free: BoolArray = (here == 0) | (here == owner) | (owner == 0)
        return free

    def take(self, rows: IntArray, counts: IntArray, idle: IntArray, batch: Batch) -> IntArray:
        """Count that many shares on `rows`, which are distinct. Returns (r,) the idle GPUs that they may open."""
        share_mib, owner = batch.gpu_share_mib, batch.gpu_owner
        if owner:
            self.owner[rows] = np.where(self.open_to(rows, owner), owner, OF_SEVERAL)
        self.shares[rows] += counts
        self.total[rows] += counts * share_mib
        self.largest[rows] = np.maximum(self.largest[rows], share_mib)
        self.step[rows] = np.gcd(self.step[rows], share_mib)
        opened = np.minimum(counts, idle[rows])
        self.opened[rows] += opened
        return opened


def _closing(
    memory: IntArray | int, known: IntArray, fresh: IntArray | int, largest: IntArray, step: IntArray
) -> tuple[IntArray, IntArray]:
    """(n,) GPUs open to a share of `largest` MiB, and the most MiB of shares on unknown GPUs with which one fits.

    known: (k, n) or (k, 1). fresh: GPUs that no share is known to have. step: divides the size of every such share.
    """
    least = memory - largest + 1  # what closes an idle GPU
    open_gpus = fresh + ((known > 0) & (known < least)).sum(axis=0)
    closing = fresh * -(-least // step) * step
    closing = closing + (np.where(known > 0, -(-np.maximum(least - known, 0) // step), 0)).sum(axis=0) * step
    return open_gpus, closing + largest - 1


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """What closes rows in the same position to shares (n,) of some sizes."""

    open_gpus: IntArray
    most_mib: IntArray
    """Of the shares that are there."""
    least_open: int
    least_most_mib: int
    """The lowest of both, but for shares that fit on no GPU."""


@dataclass(slots=True)
class _Row:
    """The columns in one row, as they are after the tasks placed."""

    memory: int
    known: tuple[int, ...]
    fresh: int
    unsure: bool
    shares: int
    total: int
    largest: int
    step: int
    owner: int
    opened: int


class LazyColumns:
    """The same columns for shares that are placed one by one. Rows are read when they are first needed; `settle` writes
    them back. share_mib, owner: (n,) of the kinds of task that share."""

    def __init__(self, columns: ShareColumns, share_mib: IntArray, owner: IntArray) -> None:
        self._columns, self._share_mib, self._owner = columns, share_mib, owner
        self._rows: dict[int, _Row] = {}
        self._limits: dict[_Position, _Limits] = {}
        c = columns
        read = (c.memory, c.unshared, c.whole_unknown, c.idle - c.opened, *(getattr(c, name) for name in _WRITTEN))
        self._read = list(zip(*(each.tolist() for each in read), strict=True))  # quicker than number by number
        self._known = [tuple(filter(None, known)) for known in c.known.T.tolist()] if len(c.known) else None

    def _row(self, at: int, idle: int) -> _Row:
        found = self._rows.get(at)
        if found is None:
            memory, unshared, whole_unknown, idle_at_first, *numbers = self._read[at]
            known, whole = self._known[at] if self._known else (), idle_at_first - idle
            fresh = max(0, unshared - whole - len(known))
            found = self._rows[at] = _Row(memory, known, fresh, whole_unknown + whole > 0, *numbers)
        return found

    def give(self, at: int, idle: int, gpus: int) -> IntArray | None:
        """A task takes GPUs whole on a row with `idle` ones. (c,) the kinds that fit there no longer; None = as
        before."""
        row = self._row(at, idle)
        row.fresh, row.unsure = max(0, row.fresh - gpus), True
        return self._closed(row)

    def share(self, at: int, idle: int, share_mib: int, owner: int) -> IntArray | None:
        """A task shares a GPU. Returns as `give`."""
        row = self._row(at, idle)
        row.shares, row.total, row.opened = row.shares + 1, row.total + share_mib, row.opened + (idle > 0)
        row.largest, row.step = max(row.largest, share_mib), gcd(row.step, share_mib)
        closed = self._closed(row)
        if owner and row.owner != owner:
            row.owner = owner if row.owner == 0 else OF_SEVERAL
            others = np.flatnonzero((self._owner != row.owner) & (self._owner != 0))
            return others if closed is None else np.union1d(closed, others)
        return closed

    def _closed(self, row: _Row) -> IntArray | None:
        if row.shares < row.fresh:
            return None  # some idle GPU is left, whatever ECS chose
        if row.unsure:
            return np.arange(len(self._share_mib))
        position = row.memory, row.known, row.fresh, row.largest, row.step
        limits = self._limits.get(position)
        if limits is None:
            limits = self._limits[position] = self._limits_of(position)
        if row.shares < limits.least_open or row.total <= limits.least_most_mib:
            return None
        return np.flatnonzero((limits.open_gpus <= row.shares) & (limits.most_mib < row.total))

    def _limits_of(self, position: _Position) -> _Limits:
        memory, known, fresh, largest, step = position
        mib = self._share_mib
        highest = np.maximum(mib, largest)
        open_gpus, most_mib = _closing(memory, np.array(known, np.int64)[:, None], fresh, highest, np.gcd(mib, step))
        fits = highest <= memory  # others never did
        open_gpus, most_mib = np.where(fits, open_gpus, 0), np.where(fits, most_mib - mib, -1)
        least = [int(each[fits].min(initial=MAX_AMOUNT)) for each in (open_gpus, most_mib)]
        return _Limits(open_gpus, most_mib, *least)

    def settle(self) -> None:
        """Write the rows back into the columns."""
        at = np.array(list(self._rows), dtype=np.int64)
        for name in _WRITTEN:
            getattr(self._columns, name)[at] = [getattr(row, name) for row in self._rows.values()]
