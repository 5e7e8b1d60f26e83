"""Does the journal contain every change of every commit, and nothing else?

A reader that has only the lines folds them, from the first one on (`JournalFold`).
`journal`: after each commit, the fold of all lines so far equals the stored state: runs' statuses, tasks' statuses,
live attempts, instances and targets. Lines come only with the transaction that makes their version. They are numbered
without a gap, each item names the previous one, and an item expires three days later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from argosy.model.attempts import AttemptStatus
from argosy.model.journal.items import CHANGES, KEPT_S, JournalItem, item_from
from argosy.model.journal.tasks import indexes_of
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts

JSON = dict[str, Any]

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
    """Runs, tasks, live attempts, instances and pools, according to the lines so far."""

    def __init__(self) -> None:
        self.runs: dict[str, str] = {}
        """Status by run id."""
        self.halted: set[str] = set()
        self.tasks: dict[str, list[TaskStatus]] = {}
        self.live: dict[TaskName, FoldedAttempt] = {}
        self.instances: dict[str, str] = {}
        """Status by EC2 id, of our own instances."""
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
        """The status of each task as users see it: a pending task of a halted run counts as cancelled."""
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
    "task.left": {"instance": ""},  # it takes no room there any more
}


class JournalChecker(Checker):
    """Items of the partition CHANGES, and the state that they add up to."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.fold = JournalFold()
        self.sequence: list[tuple[str, JSON]] = []
        """Every line with its sequence, as it was stored."""
        self._latest = 0
        self._items: list[JournalItem] = []
        """Of the transaction that is being checked."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {
            ("dynamodb", "transact_write_items"): self._stored,
            ("dynamodb", "put_item"): self._put,
            ("dynamodb", "update_item"): self._put,
        }

    def compare(self, seen: Sequence[JSON]) -> None:
        """The lines that a reader was shown, compared with the stored ones, line by line."""
        shown = [(each["sequence"], each["type"], each.get("runId"), each.get("tasks")) for each in seen]
        stored = [(name, line["type"], line.get("runId"), line.get("tasks")) for name, line in self.sequence]
        if shown == stored:
            return
        place = next((n for n, pair in enumerate(zip(shown, stored, strict=False)) if pair[0] != pair[1]), len(shown))
        self._violated(
            f"a reader was shown {len(shown)} lines of {len(stored)}; the first that differs is "
            f"{shown[place : place + 1]}, where {stored[place : place + 1]} is stored"
        )

    def committed(self, commit: Commit) -> None:
        items, self._items = self._items, []
        self._check_items(items)
        for item in items:
            for number, line in enumerate(item.lines, start=item.first):
                self.sequence.append((f"{item.version}.{number}", dict(line)))
                try:
                    self.fold.take(line)
                except (KeyError, IndexError) as fault:
                    self._violated(f"line {line} does not follow from the lines before it: {fault!r}")
        if self.fold.is_damaged:
            return  # a reader gets the same instruction: it has to list everything again
        for what, said, stored in self._comparisons():
            if said != stored:
                self._violated(f"the lines say of {what}: {said}; stored is {stored}", what)

    def _stored(self, request: JSON, reply: JSON) -> None:
        for action in request["TransactItems"]:
            put = action.get("Put", {}).get("Item", {})
            if put.get("pk") == {"S": CHANGES}:
                item = item_from(put["sk"]["S"], put["body"]["B"])
                self._items.append(item)
                if put.get("expires_at") != {"N": str(int(item.at + KEPT_S))}:
                    self._violated(f"lines of version {item.version} expire at {put.get('expires_at')}")
        self._items.sort(key=lambda item: item.first)

    def _put(self, request: JSON, reply: JSON) -> None:
        key = request.get("Item") or request["Key"]
        if key["pk"] == {"S": CHANGES}:
            self._violated(f"{key['sk']} was written without a commit")

    def _check_items(self, items: list[JournalItem]) -> None:
        version, following = self.facts.stored.version, 1
        for item in items:
            if (item.version, item.first, item.previous) != (version, following, self._latest):
                self._violated(
                    f"lines from {item.first} of version {item.version} after {item.previous} come with the commit of "
                    f"{version}, where those from {following} after {self._latest} do"
                )
            following += len(item.lines)
        if items:
            self._latest = version

    def _comparisons(self) -> list[tuple[str, Any, Any]]:
        """The content of the lines, and the stored state."""
        stored, fold = self.facts.stored, self.fold
        found: list[tuple[str, Any, Any]] = []
        for run_id, record in stored.records.items():
            found.append((run_id, fold.runs.get(run_id), str(record.status)))
            if run_id in fold.tasks:
                shown = [TaskStatus(row[0]) for row in stored.tables[run_id]]
                found.append((f"tasks of {run_id}", fold.statuses(run_id), shown))
        live = {
            (each.key.run_id, each.key.index): FoldedAttempt(
                each.key.attempt, each.key.launch, each.instance, AttemptStatus(each.status)
            )
            for each in stored.live.values()
        }
        instances = {name: each["status"] for name, each in stored.instances.items() if each["owned"]}
        pools = {key: (each["spot_target"], each["on_demand_target"]) for key, each in stored.pools.items()}
        found.append(("live attempts", fold.live, live))
        found.append(("instances", fold.instances, instances))
        found.append(("targets", fold.pools, pools))
        return found

    def _violated(self, sentence: str, *names: str) -> None:
        self.facts.violated("journal", sentence[:2000], *names)
