"""What does a reader know who has nothing but the journal's lines? The fold of the stream, from the first line on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from argosy.model.attempts import AttemptStatus
from argosy.model.journal.ranges import indexes_of
from argosy.model.tasks import TaskStatus

Line = Mapping[str, Any]
TaskName = tuple[str, int]
"""Run id and index."""


class FoldedAttempt(NamedTuple):
    """A live attempt."""

    attempt: int
    launch: int
    instance: str
    status: AttemptStatus


class JournalFold:
    """Runs, tasks, live attempts, instances and pools, as the lines so far tell."""

    def __init__(self) -> None:
        self.runs: dict[str, str] = {}
        """Status by run id."""
        self.halted: set[str] = set()
        self.tasks: dict[str, list[TaskStatus]] = {}
        self.live: dict[TaskName, FoldedAttempt] = {}
        self.instances: dict[str, str] = {}
        """Status by EC2 id, of those that are ours."""
        self.pools: dict[str, tuple[int, int]] = {}
        """Targets by key: spot, on-demand."""
        self.is_damaged = False
        """A line has said that something is missing: the reader has to list everything again."""

    def take(self, line: Line) -> None:
        subject = str(line["type"]).partition(".")[0]
        kinds: Mapping[str, Callable[[Line], None]] = {
            "run": self._take_run,
            "task": self._take_tasks,
            "instance": self._take_instance,
            "pool": self._take_pool,
            "state": self._take_damage,
        }
        if subject in kinds:
            kinds[subject](line)

    def statuses(self, run_id: str) -> list[TaskStatus]:
        """Of each task as users see it: what is pending in a halted run counts as cancelled."""
        pending = TaskStatus.CANCELLED if run_id in self.halted else TaskStatus.PENDING
        return [pending if status is TaskStatus.PENDING else status for status in self.tasks[run_id]]

    def _take_run(self, line: Line) -> None:
        run_id = line["runId"]
        self.runs[run_id] = line["status"]
        kind = line["type"]
        if kind == "run.submitted":
            self.tasks[run_id] = [TaskStatus.PENDING] * line["taskCount"]
        elif kind == "run.grown":
            self.tasks[run_id] += [TaskStatus.PENDING] * (line["taskCount"] - len(self.tasks[run_id]))
        elif kind in ("run.halted", "run.reopened"):
            self.halted.add(run_id)
        elif kind == "run.revived":
            self.halted.discard(run_id)

    def _take_tasks(self, line: Line) -> None:
        run_id, kind = line.get("runId"), line["type"]
        if run_id is None:
            self.is_damaged = True  # of a run that was set aside because it could not be read
            return
        for index in indexes_of(line["tasks"]):
            if kind == "task.placed":
                attempt = FoldedAttempt(line["attempt"], line.get("launch", 0), line["instance"], AttemptStatus.INTENT)
                self.live[run_id, index] = attempt
                self.tasks[run_id][index] = TaskStatus.STARTING
            elif kind in ("task.ended", "task.refused", "task.dropped"):
                del self.live[run_id, index]
            elif kind in _MOVES:
                self.live[run_id, index] = self.live[run_id, index]._replace(**_MOVES[kind])
            elif kind == "task.returned":
                self.live[run_id, index] = self.live[run_id, index]._replace(instance=line["instance"])
            if kind == "task.running":
                self.tasks[run_id][index] = TaskStatus.RUNNING
            if "status" in line:
                self.tasks[run_id][index] = TaskStatus[line["status"]]

    def _take_instance(self, line: Line) -> None:
        if line["type"] == "instance.forgotten":
            del self.instances[line["instance"]]
        elif "status" in line:
            self.instances[line["instance"]] = line["status"]

    def _take_pool(self, line: Line) -> None:
        if line["type"] == "pool.forgotten":
            del self.pools[line["pool"]]
        elif "spot" in line:
            self.pools[line["pool"]] = line["spot"], line["onDemand"]

    def _take_damage(self, line: Line) -> None:
        self.is_damaged = True


_MOVES: Mapping[str, Mapping[str, Any]] = {
    "task.inDoubt": {"status": AttemptStatus.IN_DOUBT},
    "task.launched": {"status": AttemptStatus.LAUNCHED},
    "task.running": {"status": AttemptStatus.RUNNING},
    "task.left": {"instance": ""},  # it takes nothing there any more
}
