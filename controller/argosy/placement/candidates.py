"""The columns that keys and fitness functions see: several rows for one batch, or one row for several kinds of task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from argosy.placement.arrays import BoolArray, FloatArray, IntArray
from argosy.placement.demand import Batch, Queue
from argosy.placement.fitness import GPU, Mix
from argosy.placement.pass_state import PassState

MAX_MIX = 128  # shapes of a typical mix: the most frequent ones
Shape = tuple[int, int, int, int]  # cpu units, MiB, GPUs, MiB of one GPU that is shared


@dataclass(frozen=True, slots=True, eq=False)
class RowCandidates:
    """`rows` (n,) of a pass; row i has `already[i]` more tasks of `batch` on it than the state counts."""

    state: PassState
    batch: Batch
    rows: IntArray
    already: IntArray | None
    mix: Mix

    def left(self, axis: int) -> IntArray:
        """(n,) int64."""
        need = self.batch.need[axis]
        free: IntArray = self.state.free[axis].take(self.rows)
        if axis == GPU and self.batch.gpu_share_mib:
            left: IntArray = np.maximum(free - (1 if self.already is None else self.already + 1), 0)
            return left
        if not need:
            return free
        return free - need if self.already is None else free - (self.already + 1) * need

    def total(self, axis: int) -> IntArray:
        """(n,) int64."""
        total: IntArray = self.state.supply.total[axis].take(self.rows)
        return total

    def need(self, axis: int) -> IntArray:
        """(1,) int64."""
        return np.array([self.batch.need[axis]], dtype=np.int64)

    @property
    def opens_gpus(self) -> IntArray:
        """(n,) int64."""
        if not self.batch.gpu_share_mib:
            return np.zeros(1, dtype=np.int64)
        opens: IntArray = (self.state.free[GPU].take(self.rows) > (0 if self.already is None else self.already)) * 1
        return opens

    @property
    def gpu_share_mib(self) -> IntArray:
        """(1,) int64."""
        return np.array([self.batch.gpu_share_mib], dtype=np.int64)

    @property
    def shared_gpus(self) -> tuple[IntArray, IntArray]:
        """(d, n) and (n,) int64."""
        return self.state.gpu_shares().rests(self.rows)

    @property
    def running_tasks(self) -> IntArray:
        """(n,) int64."""
        running: IntArray = self.state.running_tasks[self.rows]
        return running if self.already is None else running + self.already

    @property
    def has_image(self) -> BoolArray:
        """(n,)."""
        return self.state.supply.has_image(self.batch.image)[self.rows]

    @property
    def price_usd_per_hour(self) -> FloatArray:
        """(n,)."""
        return self.state.supply.price_usd_per_hour[self.rows]

    @property
    def interruption_rate(self) -> FloatArray:
        """(n,)."""
        return self.state.supply.interruption_rate[self.rows]

    @property
    def finish_at(self) -> FloatArray:
        """(n,) epoch seconds, at the time of the batch's turn."""
        return self.state.finish_at[self.rows]

    @property
    def task_finish_at(self) -> FloatArray:
        """(1,) epoch seconds."""
        return np.array([self.batch.finish_at])


@dataclass(frozen=True, slots=True, eq=False)
class KindCandidates:
    """One row of a pass for k kinds of task. free: cpu units, MiB and GPUs now. needs: (3, k) int64. shares_mib: (k,).
    finish: (k,) epoch seconds. images: of each kind."""

    state: PassState
    row: int
    free: Sequence[int]
    needs: IntArray
    shares_mib: IntArray
    finish: FloatArray
    images: Sequence[str]
    mix: Mix

    def left(self, axis: int) -> IntArray:
        """(k,) int64."""
        left: IntArray = self.free[axis] - self.needs[axis]
        return left - self.opens_gpus if axis == GPU else left

    def total(self, axis: int) -> IntArray:
        """(1,) int64."""
        return self.state.supply.total[axis, self.row : self.row + 1]

    def need(self, axis: int) -> IntArray:
        """(k,) int64."""
        return self.needs[axis]  # type: ignore[no-any-return]

    @property
    def opens_gpus(self) -> IntArray:
        """(k,) int64."""
        return (self.shares_mib > 0) * min(1, self.free[GPU])

    @property
    def gpu_share_mib(self) -> IntArray:
        """(k,) int64."""
        return self.shares_mib

    @property
    def shared_gpus(self) -> tuple[IntArray, IntArray]:
        """(d, 1) and (1,) int64."""
        return self.state.gpu_shares().rests(np.array([self.row]))

    @property
    def running_tasks(self) -> IntArray:
        """(1,) int64."""
        running: IntArray = self.state.running_tasks[self.row : self.row + 1]
        return running

    @property
    def has_image(self) -> BoolArray:
        """(k,)."""
        return np.array([self.state.supply.has_image(name)[self.row] for name in self.images], dtype=np.bool_)

    @property
    def price_usd_per_hour(self) -> FloatArray:
        """(1,)."""
        return self.state.supply.price_usd_per_hour[self.row : self.row + 1]

    @property
    def interruption_rate(self) -> FloatArray:
        """(1,)."""
        return self.state.supply.interruption_rate[self.row : self.row + 1]

    @property
    def finish_at(self) -> FloatArray:
        """(1,) epoch seconds."""
        return self.state.finish_at[self.row : self.row + 1]

    @property
    def task_finish_at(self) -> FloatArray:
        """(k,) epoch seconds."""
        return self.finish


def mix_of(queue: Queue) -> Mix:
    """The GPU tasks of a queue by shape, the most frequent first."""
    weights: dict[Shape, int] = {}
    if not any(batch.gpus or batch.gpu_share_mib for batch in queue.kinds):
        return _NO_GPUS
    totals = np.bincount(queue.kind, weights=queue.count, minlength=len(queue.kinds)).astype(np.int64)
    for batch, count in zip(queue.kinds, totals.tolist(), strict=True):
        if (batch.gpus or batch.gpu_share_mib) and count:
            shape = *batch.need, batch.gpu_share_mib
            weights[shape] = weights.get(shape, 0) + count
    return make_mix(weights)


def make_mix(weights: dict[Shape, int]) -> Mix:
    """A mix from shape -> number of tasks."""
    kept: Sequence[tuple[Shape, int]] = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:MAX_MIX]
    shapes = np.ascontiguousarray(np.array([shape for shape, _ in kept], dtype=np.int64).reshape(-1, 4).T)
    return Mix(shapes[:3], shapes[3], np.array([count for _, count in kept], dtype=np.int64))


_NO_GPUS = make_mix({})
assert GPU == 2  # the order of `Batch.need`
