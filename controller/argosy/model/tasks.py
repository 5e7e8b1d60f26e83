"""The state of every task of a run: row *i* is task *i*."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argosy.model.columns import ColumnTable


class TaskStatus(IntEnum):
    PENDING = 0  # waits for a place, or for its back-off to end (`not_before`)
    STARTING = 1  # an attempt is intended or launched, not yet running
    RUNNING = 2
    VERIFYING = 3  # the program exited with code 0; its result is being looked up
    SUCCEEDED = 4
    FAILED = 5
    CANCELLED = 6


TERMINAL = (TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELLED)
NO_EXIT_CODE = -32768
CHUNKS_AT_ONCE = 12  # chunks of one run that a tick may touch by its own choice; a transaction holds 100 items


class TaskTable(ColumnTable):
    """A run's tasks as columns; shape (tasks,). At most a few bytes a row once compressed."""

    schema: ClassVar[Mapping[str, tuple[str, Any]]] = {
        "status": ("u1", 0),  # TaskStatus
        "attempts": ("u4", 0),  # number of the latest attempt; 0 = never tried
        "launch": ("u4", 0),  # launch number of the latest attempt: rises when a launch proved not to have happened
        "user_failures": ("u2", 0),  # attempts that used up the user's budget
        "losses": ("u2", 0),  # attempts lost to infrastructure (spot, host, image pull, refusal after start)
        "exit_code": ("i4", NO_EXIT_CODE),  # of the latest ended attempt
        "reason": ("u2", 0),  # row in the run's `reasons`; 0 = none
        "not_before": ("f8", 0.0),  # epoch seconds: no new attempt earlier
        "committed": ("u4", 0),  # the attempt whose result counts; 0 = none yet
        "seconds": ("f4", 0.0),  # from start to stop of the latest ended attempt
        "bytes": ("i8", 0),  # of the committed result: its part, or what the first page of its objects lists
        "instance": ("S19", b""),  # EC2 id of the latest ended attempt
        "stop_cause": ("u1", 0),  # StopCause of an attempt that is VERIFYING; INTERRUPTED too if its host was lost
        "gpu_mask": ("u4", 0),  # bit j = the j-th registered GPU of that instance was pinned to it
        "preempted": ("u1", 0),  # attempts stopped for a run of another queue: neither a failure nor a loss
        "program": ("u1", 0),  # version of the program that its attempts run: place in the run's `programs`
        "first": ("u4", 0),  # its first attempt with that version: parts of earlier ones do not count; 0 = all do
        "met": ("u1", 0),  # bit j: the j-th run that its run depends on task by task has provided what it waits for
    }
    watched: ClassVar[tuple[str, ...]] = ("status", "attempts", "user_failures", "losses")

    def __init__(self, rows: int, halted: bool = False) -> None:
        super().__init__(rows)
        self.halted = halted  # nothing more is started: pending tasks count as cancelled, without a write
        self.must_meet = 0  # the value of `met` at which a task may start

    def statuses(self, rows: slice = slice(None)) -> NDArray[np.uint8]:
        """TaskStatus of each row, as shown to users; shape (rows,)."""
        status = self["status"][rows]
        return np.where(status == TaskStatus.PENDING.value, TaskStatus.CANCELLED, status) if self.halted else status

    def counts(self) -> NDArray[np.int64]:
        """How many tasks are in each status; shape (7,), indexed by TaskStatus."""
        counts = np.bincount(self["status"], minlength=len(TaskStatus))
        if self.halted:
            counts[TaskStatus.CANCELLED] += counts[TaskStatus.PENDING]
            counts[TaskStatus.PENDING] = 0
        return counts

    def startable(self, now: float, limit: int, among: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The first rows that are pending and past their back-off, in index order: at most `limit`, and only from a few
        chunks, so that one commit can hold them. `among`: which rows count; None = all."""
        ready = self._ready(now)
        if among is not None:
            ready &= among
        return self.in_few_chunks(np.flatnonzero(ready)[:limit])

    def _ready(self, now: float) -> NDArray[np.bool_]:
        ready: NDArray[np.bool_] = (self["status"] == TaskStatus.PENDING.value) & (self["not_before"] <= now)
        if self.must_meet:
            ready &= self["met"] == self.must_meet
        return ready

    def in_few_chunks(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of ascending `rows` that are in the first CHUNKS_AT_ONCE chunks that they touch."""
        if not len(rows) or rows[-1] // self.chunk_rows - rows[0] // self.chunk_rows < CHUNKS_AT_ONCE:
            return rows
        chunks = rows // self.chunk_rows
        return rows[np.isin(chunks, np.unique(chunks)[:CHUNKS_AT_ONCE])]

    def startable_count(self, now: float, among: NDArray[np.bool_] | None = None) -> int:
        ready = self._ready(now)
        return int(np.count_nonzero(ready if among is None else ready & among))
