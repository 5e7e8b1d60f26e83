"""The demand of a pass: a queue of batches, each a group of equal tasks, and the same queue as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.placement.arrays import MAX_AMOUNT, MAX_TASKS, IntArray


@dataclass(frozen=True, slots=True)
class WeightedConstraint:
    """A soft constraint: instances that meet more weight are tried first."""

    constraint: str
    """A query expression, or "distinctInstance". Judged once, when the turn of its batch comes."""
    weight: int = 1
    """Positive."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A group of equal tasks. Needs are per task: cpu units (1024 = 1 vCPU), MiB, whole GPUs."""

    cpu_units: int
    memory_mib: int
    gpus: int
    count: int
    group: str = ""
    """The task group in which spread, distinctInstance and the limits count; "" = the unnamed tasks of this queue."""
    constraints: tuple[str, ...] = ()
    """Query expressions, and "distinctInstance". Hard: they hold for every task when it is placed."""
    strategy: tuple[str, ...] = ()
    """Steps as in docs/concepts/placement.md, each breaking the ties of those before it; empty = the default."""
    host_ports: tuple[tuple[int, str], ...] = ()
    gpu_share_mib: int = 0
    """MiB of the memory of one GPU that it shares with others: an amount of one device, and so no axis of `need`."""
    gpu_owner: int = 0
    """The number of its owner, if tasks of other owners must not share its GPU; 0 = they may."""
    disk_gib: int = 0
    """Per task. A limit rather than an axis of `need`: ECS has no such resource, and no key or share counts it."""
    max_per_instance: int | None = None
    """The most tasks of the group on one instance, including those already running."""
    max_instances: int | None = None
    """The most instances that run tasks of the group, including those that already do."""
    soft: tuple[WeightedConstraint, ...] = ()
    affinity: tuple[str, ...] = ()
    """Groups that must have a task on the instance. The batch's own group: all its tasks stay together."""
    anti_affinity: tuple[str, ...] = ()
    """Groups that must not have a task on the instance. The batch's own group: one task per instance."""
    image: str = ""
    """A name of the image that its tasks run, as in `InstanceRow.images`; "" = not known."""
    keep_gpus_free: bool = True
    """Tasks that need no GPU go to an instance with GPUs only where no other instance can take them."""
    finish_at: float = 0.0
    """Epoch seconds when these tasks are expected to end, for `finish-together`; 0 = unknown."""

    @property
    def need(self) -> tuple[int, int, int]:
        """cpu units, MiB, GPUs of one task."""
        return self.cpu_units, self.memory_mib, self.gpus


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """A queue as columns: batch b is `count[b]` tasks of `kinds[kind[b]]` (whose own count means nothing)."""

    kinds: tuple[Batch, ...]
    kind: IntArray
    """(b,) int64 into kinds."""
    count: IntArray
    """(b,) int64, not negative."""

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> Queue:
        """The columns of `batches`. ValueError for a negative number, or one above 2^40 tasks."""
        seen: dict[Batch, int] = {}
        kind = np.empty(len(batches), dtype=np.int64)
        for index, batch in enumerate(batches):
            prototype = batch if batch.count == 1 else replace(batch, count=1)
            kind[index] = seen.setdefault(prototype, len(seen))
        return cls.from_columns(tuple(seen), kind, [batch.count for batch in batches])

    @classmethod
    def from_columns(cls, kinds: Iterable[Batch], kind: IntArray, count: Sequence[int]) -> Queue:
        """A queue whose kinds are known already. ValueError as in `of`."""
        kinds = tuple(map(_within_int64, kinds))
        for batch in kinds:
            if min(batch.need) < 0:
                raise ValueError(f"a task cannot have negative needs: {batch.need}")
        if any(not 0 <= n <= MAX_TASKS for n in count) or sum(count) > MAX_TASKS:
            raise ValueError(f"a batch has a negative number of tasks, or there are more than {MAX_TASKS} in all")
        return cls(kinds, kind, np.array(count, dtype=np.int64))

    def counting(self, count: Sequence[int]) -> Queue:
        """The same batches with other counts. ValueError as in `of`."""
        return Queue.from_columns(self.kinds, self.kind, count)


def _within_int64(batch: Batch) -> Batch:
    """Needs above what any instance can have are cut to one more than that: no row has room for them either way."""
    if max(batch.need) <= MAX_AMOUNT:
        return batch
    cpu_units, memory_mib, gpus = (min(need, MAX_AMOUNT + 1) for need in batch.need)
    return replace(batch, cpu_units=cpu_units, memory_mib=memory_mib, gpus=gpus)
