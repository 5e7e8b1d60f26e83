"""The live attempts: a row is one ECS task, or the intent to start it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argosy.model.columns import ColumnTable, TouchOrder

LAUNCH_VARIABLE = "ARGOSY_LAUNCH"  # in a task's environment, the launch number: internal, not promised to tasks


class AttemptStatus(IntEnum):
    """Compare columns with a member's `value`: with the member itself, numpy takes four times as long."""

    FREE = 0  # the row holds nothing
    INTENT = 1  # committed; this controller is about to send it, or has just failed to
    IN_DOUBT = 2  # it may have been sent; only a listing or the same token can tell (DESIGN D4)
    LAUNCHED = 3  # ECS has given it an ARN
    RUNNING = 4


class StopCause(IntEnum):
    """Why we asked for the stop. It decides whose budget the end of the attempt is charged to."""

    NONE = 0
    INTERRUPTED = 1  # spot warning or lost instance: infrastructure
    TIMED_OUT = 2  # attemptDurationSeconds: the user's attempt
    CANCELLED = 3
    STUCK = 4  # never left PENDING, stayed on a draining instance, or its run is suspended too long: infrastructure
    CAPPED = 5  # the run's budget is used up
    UNHEALTHY = 7  # a service's task whose health command kept failing: charged to the user
    PREEMPTED = 8  # for a run of a queue that may take room from others (`scheduler.taking_room.reclaim`)
    UNPULLED = 9  # PENDING for longer than a pull of its image may take: rarely the instance's fault
    GANG = 10  # another member of its gang has ended, or not all of them started in time
    REPLACED = 6  # a service's task that is no longer wanted, whether or not another one replaces it


class TaskHealth(IntEnum):
    """The report of a container's health command; UNKNOWN without one, and before its first report."""

    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class AttemptKey(NamedTuple):
    """What makes a launch unique; idempotency token and environment derive from it."""

    run_id: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which no key needs
    attempt: int
    launch: int


@cache
def _is_one_of(statuses: tuple[AttemptStatus, ...]) -> NDArray[np.bool_]:
    """By AttemptStatus."""
    return np.isin(np.arange(len(AttemptStatus)), [status.value for status in statuses])


class AttemptTable(ColumnTable):
    """Live attempts as columns with reusable rows; shape (rows,). Times are epoch seconds, 0 = not yet."""

    schema: ClassVar[Mapping[str, tuple[str, Any]]] = {
        "status": ("u1", 0),  # AttemptStatus
        "run": ("u4", 0),  # Run.number
        "index": ("u4", 0),
        "attempt": ("u4", 0),
        "launch": ("u4", 0),
        "wave": ("i8", 0),  # the launches that were intended together; `startedBy` derives from it
        "instance": ("S19", b""),  # EC2 id
        "task_id": ("S40", b""),  # last part of the ARN
        "version": ("i8", 0),  # highest detail.version applied
        "intended_at": ("f8", 0.0),
        "launched_at": ("f8", 0.0),
        "pull_started_at": ("f8", 0.0),  # of its image, as ECS reports it while the task is PENDING; 0 = not reported
        "pull_stopped_at": ("f8", 0.0),
        "started_at": ("f8", 0.0),
        "stop_at": ("f8", 0.0),  # when we last asked ECS to stop it
        "stop_cause": ("u1", 0),  # StopCause
        "gpu_mask": ("u4", 0),
        "absent_since": ("f8", 0.0),  # first complete sweep, or check of a launch in doubt, that did not show it
        "health": ("u1", 0),  # TaskHealth
        "health_since": ("f8", 0.0),  # time of the check that first showed it; 0 = no check has
        "host_ports": ("u8", 0),  # where its ports are reached (`argosy.model.services.ports`); 0 = unknown
        "for_run": ("u4", 0),  # Run.number of the run for which it was PREEMPTED
        "program": ("u1", 0),  # version of the program that it runs: place in the run's `programs`
        "left_at": ("f8", 0.0),  # when it stopped taking room on its instance, as far as known; 0 = it takes room
    }
    watched: ClassVar[tuple[str, ...]] = (
        "status", "run", "index", "attempt", "launch", "instance", "stop_cause", "for_run", "left_at"
    )  # fmt: skip
    chunk_rows = 2048

    def __init__(self, rows: int = 0) -> None:
        super().__init__(rows)
        self.row_of_task_id: dict[bytes, int] = {}
        self.row_of_task: dict[tuple[int, int], int] = {}
        self.rows_of_instance: defaultdict[bytes, set[int]] = defaultdict(set)
        self.runs_on_instance: defaultdict[bytes, Counter[int]] = defaultdict(Counter)  # live attempts by Run.number
        self.touched_instances = TouchOrder[bytes]()  # instances on which an attempt began or ended
        self.instance_number = np.zeros(rows, dtype=np.int64)  # instance of each row that takes room there
        self._numbers: dict[bytes, int] = {}  # of instances with such rows; below the highest count of them so far
        self._free_numbers: list[int] = []
        self.free_rows: list[int] = list(range(rows - 1, -1, -1))

    def reindex(self) -> None:
        """Rebuild the look-ups after chunks were read."""
        live = self.live()
        runs, indexes, ids = (self[name][live].tolist() for name in ("run", "index", "task_id"))
        rows = live.tolist()
        self.row_of_task = {(run, index): row for run, index, row in zip(runs, indexes, rows, strict=True)}
        self.row_of_task_id = {task_id: row for task_id, row in zip(ids, rows, strict=True) if task_id}
        self.rows_of_instance.clear()
        self.runs_on_instance.clear()
        self.touched_instances = TouchOrder()
        self.instance_number = np.zeros(self.rows, dtype=np.int64)
        self._numbers, self._free_numbers = {}, []
        placed = self.placed()
        instances, runs = (self[name][placed].tolist() for name in ("instance", "run"))
        for instance, run, row in zip(instances, runs, placed.tolist(), strict=True):
            self.rows_of_instance[instance].add(row)
            self.runs_on_instance[instance][run] += 1
            self.instance_number[row] = self._numbers.setdefault(instance, len(self._numbers))
        self.free_rows = np.flatnonzero(self["status"] == AttemptStatus.FREE.value)[::-1].tolist()

    def grow(self, rows: int) -> None:
        super().grow(rows)
        self.instance_number = np.append(self.instance_number, np.zeros(rows, dtype=np.int64))

    def live(self) -> NDArray[np.int64]:
        return np.flatnonzero(self["status"] != AttemptStatus.FREE.value)

    def placed(self) -> NDArray[np.int64]:
        """Live rows that take room on their instance."""
        return np.flatnonzero((self["status"] != AttemptStatus.FREE.value) & (self["left_at"] == 0))

    def with_status(self, *statuses: AttemptStatus) -> NDArray[np.int64]:
        return np.flatnonzero(self.has_status(*statuses))

    def has_status(self, *statuses: AttemptStatus) -> NDArray[np.bool_]:
        """Which rows have one of the statuses; shape (rows,)."""
        rows: NDArray[np.bool_] = _is_one_of(statuses).take(self["status"])
        return rows

    def on_instance(self, instance_id: str) -> list[int]:
        """Rows that take room on the instance, lowest first."""
        return sorted(self.rows_of_instance.get(instance_id.encode(), ()))

    def is_busy(self, instance_id: str) -> bool:
        """Whether any attempt takes room on the instance."""
        return bool(self.rows_of_instance.get(instance_id.encode()))

    def positions(self, instance_ids: Sequence[str]) -> NDArray[np.int64]:
        """By `instance_number`, the position of each instance in the list; -1 = not in it."""
        found = np.full(len(self._numbers) + len(self._free_numbers), -1, dtype=np.int64)
        for position, instance_id in enumerate(instance_ids):
            number = self._numbers.get(instance_id.encode())
            if number is not None:
                found[number] = position
        return found

    def of_run(self, number: int) -> NDArray[np.int64]:
        """Rows of the run, including attempts that ended while it was suspended."""
        return np.flatnonzero((self["run"] == number) & (self["status"] != AttemptStatus.FREE.value))

    def here_of_run(self, number: int) -> NDArray[np.int64]:
        """The rows of a run whose attempts have not ended, as far as is known."""
        live = (self["run"] == number) & (self["status"] != AttemptStatus.FREE.value)
        return np.flatnonzero(live & (self["left_at"] == 0))

    def add(self, run: int, key: AttemptKey, wave: int, instance_id: str, now: float) -> int:
        """Take the lowest free row for a new intent."""
        if not self.free_rows:
            start = self.rows
            self.grow(self.chunk_rows)
            self.free_rows = list(range(self.rows - 1, start - 1, -1))
        row = self.free_rows.pop()
        values = {name: default for name, (_, default) in self.schema.items()}
        values |= {
            "status": AttemptStatus.INTENT,
            "run": run,
            "index": key.index,
            "attempt": key.attempt,
            "launch": key.launch,
            "wave": wave,
            "instance": instance_id.encode(),
            "intended_at": now,
        }
        self.set(row, **values)
        self.row_of_task[run, key.index] = row
        self._take_place(row)
        return row

    def note_gpus(self, row: int, mask: int) -> None:
        """ECS has named the GPUs of the attempt."""
        if mask != self["gpu_mask"][row]:
            self.touched_instances.note(bytes(self["instance"][row]))
        self.set(row, gpu_mask=mask)

    def pull_s(self, row: int) -> float:
        """How long the attempt pulled its image; 0 = not at all, or not yet, or ECS does not say."""
        return max(0.0, float(self["pull_stopped_at"][row] - self["pull_started_at"][row]))

    def name_task(self, row: int, task_id: str) -> None:
        self.set(row, task_id=task_id.encode())
        self.row_of_task_id[task_id.encode()] = row

    def remove(self, row: int) -> None:
        self.row_of_task.pop((int(self["run"][row]), int(self["index"][row])), None)
        self.row_of_task_id.pop(bytes(self["task_id"][row]), None)
        if not self["left_at"][row]:
            self._give_place_back(row)
        self.set(row, status=AttemptStatus.FREE, task_id=b"", instance=b"", left_at=0.0)
        self.free_rows.append(row)

    def leave(self, row: int, at: float) -> None:
        """The attempt takes no room on its instance any more. Its row stays until its outcome is found."""
        self._give_place_back(row)
        self.set(row, left_at=at)

    def come_back(self, row: int) -> None:
        """The attempt takes room on its instance again."""
        self.set(row, left_at=0.0)
        self._take_place(row)

    def _take_place(self, row: int) -> None:
        instance = bytes(self["instance"][row])
        self.rows_of_instance[instance].add(row)
        self.runs_on_instance[instance][int(self["run"][row])] += 1
        self.instance_number[row] = self._number_of(instance)
        self.touched_instances.note(instance)

    def _number_of(self, instance: bytes) -> int:
        number = self._numbers.get(instance)
        if number is None:
            number = self._free_numbers.pop() if self._free_numbers else len(self._numbers)
            self._numbers[instance] = number
        return number

    def _give_place_back(self, row: int) -> None:
        instance = bytes(self["instance"][row])
        self.rows_of_instance[instance].discard(row)
        self.runs_on_instance[instance][int(self["run"][row])] -= 1
        self.touched_instances.note(instance)
        if not self.rows_of_instance[instance]:
            del self.rows_of_instance[instance], self.runs_on_instance[instance]
            self._free_numbers.append(self._numbers.pop(instance))


def since_checkpoint_s(seconds: ArrayLike, every_s: ArrayLike) -> NDArray[Any]:
    """Seconds of work lost when attempts of this age are stopped; all of it without checkpoints (every_s 0). Argosy
    cannot see checkpoints. It assumes one at each `checkpoint.everySeconds` of an attempt."""
    ran, every = np.asarray(seconds, dtype=np.float64), np.asarray(every_s, dtype=np.float64)
    return np.where(every > 0, np.mod(ran, np.where(every > 0, every, 1.0)), ran)
