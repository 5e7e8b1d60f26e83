"""What is the state of every task of a run? Row *i* is task *i*."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from controller.model.columns import ColumnTable


class TaskStatus(IntEnum):
    PENDING = 0  # waits for a place, or for its back-off to end (`not_before`)
    STARTING = 1  # an attempt is intended or launched, not yet running
    RUNNING = 2
    VERIFYING = 3  # the program ended well; its result is being looked up
    SUCCEEDED = 4
    FAILED = 5
    CANCELLED = 6


TERMINAL = (TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELLED)
NO_EXIT_CODE = -32768


class TaskTable(ColumnTable):
    """A run's tasks as columns; shape (tasks,). At most a few bytes a row once compressed."""

    schema: ClassVar[Mapping[str, tuple[str, Any]]] = {
        "status": ("u1", 0),  # TaskStatus
        "attempts": ("u2", 0),  # number of the latest attempt; 0 = never tried
        "launch": ("u2", 0),  # launch number of the latest attempt: rises when a launch proved not to have happened
        "user_failures": ("u2", 0),  # attempts that used up the user's budget
        "losses": ("u2", 0),  # attempts lost to infrastructure (spot, host, image pull, refusal after start)
        "exit_code": ("i2", NO_EXIT_CODE),  # of the latest ended attempt
        "reason": ("u2", 0),  # row in the run's `reasons`; 0 = none
        "not_before": ("f8", 0.0),  # epoch seconds: no new attempt earlier
        "committed": ("u2", 0),  # the attempt whose result counts; 0 = none yet
        "seconds": ("f4", 0.0),  # from start to stop of the latest ended attempt
        "bytes": ("i8", 0),  # size of the committed result
        "instance": ("S19", b""),  # EC2 id of the latest ended attempt
        "gpu_mask": ("u4", 0),  # bit j = the j-th registered GPU of that instance was pinned to it
    }

    def counts(self) -> NDArray[np.int64]:
        """How many tasks are in each status; shape (7,), indexed by TaskStatus."""
        return np.bincount(self["status"], minlength=len(TaskStatus))

    def startable(self, now: float, limit: int) -> NDArray[np.int64]:
        """The first `limit` rows that are pending and past their back-off, in index order."""
        ready = (self["status"] == TaskStatus.PENDING) & (self["not_before"] <= now)
        return np.flatnonzero(ready)[:limit]

    def startable_count(self, now: float) -> int:
        return int(np.count_nonzero((self["status"] == TaskStatus.PENDING) & (self["not_before"] <= now)))
