"""What is stored after each commit? Each transaction is read as the next controller would read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from argosy.model import cluster_history, ended_attempts
from argosy.model.attempts import AttemptKey, AttemptStatus, AttemptTable, StopCause
from argosy.model.cluster_history import ClusterHistoryPiece
from argosy.model.ended_attempts import EndedAttempt
from argosy.model.instances import pool_key
from argosy.model.pools import Floor
from argosy.model.run_record import RunRecord
from argosy.model.services.environments import Environment
from argosy.model.shares.recent_use import RECENT_USE, RecentUse
from argosy.model.shares.sharing import SHARING, Sharing
from argosy.model.stored import documents
from argosy.model.stored.environments import ENVIRONMENT, environment_from
from argosy.model.tasks import TaskStatus, TaskTable

JSON = dict[str, Any]
_COLUMNS = ("status", "user_failures", "losses", "committed")


class StoredAttempt(NamedTuple):
    """A live attempt as it is stored."""

    key: AttemptKey
    instance: str
    status: int
    task_id: str
    stop_cause: int = 0
    started_at: float = 0.0
    health: int = 0
    health_since: float = 0.0
    for_run: int = 0
    gpu_mask: int = 0

    def was_replaced_since(self, before: StoredAttempt | None) -> bool:
        """Whether its environment has asked it to stop since that commit."""
        was = before.stop_cause if before else StopCause.NONE
        return self.stop_cause == StopCause.REPLACED != was


class StoredState:
    """What is stored, transaction by transaction."""

    def __init__(self) -> None:
        self.version = 0
        self.root: JSON = {}
        self.records: dict[str, RunRecord] = {}
        self.instances: dict[str, JSON] = {}
        self.pools: dict[str, JSON] = {}
        """By key."""
        self.sharing = Sharing()
        self.environments: dict[str, Environment] = {}
        """By name."""
        self.tables: dict[str, list[tuple[int, ...]]] = {}
        """By run: status, user_failures, losses, committed of each task."""
        self.live: dict[tuple[int, int], StoredAttempt] = {}
        """By chunk and row of the attempt table."""
        self.ended: list[tuple[str, EndedAttempt]] = []
        """By run, the rows that the latest transaction has added to its history."""
        self.cluster_history: ClusterHistoryPiece | None = None
        """What the latest transaction says about the cluster."""
        self.intended: set[AttemptKey] = set()
        """Every intent that was ever stored."""
        self._buckets: dict[str, list[str]] = {}
        self._runs: dict[int, str] = {}
        self.task_tables: dict[str, TaskTable] = {}
        """By run, every column."""

    @property
    def floor(self) -> Floor:
        """The minimum size that a user has requested."""
        return Floor.from_json(self.root.get("floor", {}))

    def take(self, actions: Sequence[JSON]) -> list[StoredAttempt]:
        """Read one transaction. Returns its new intents."""
        puts: dict[tuple[str, str], bytes] = {}
        for action in actions:
            if "Update" in action:
                values = action["Update"]["ExpressionAttributeValues"]
                self.version = int(values[":new"]["N"])
            elif "Put" in action:
                item = action["Put"]["Item"]
                puts[item["pk"]["S"], item["sk"]["S"]] = item["body"]["B"]
        for (pk, sk), body in puts.items():
            self._take_summary(pk, sk, body)
        fresh: list[StoredAttempt] = []
        self.ended, self.cluster_history = [], None
        for (pk, sk), body in puts.items():
            kind, _, number = sk.partition("#")
            if pk.startswith("RUN#") and kind == "TASKS":
                self._take_tasks(pk.removeprefix("RUN#"), int(number), body)
            elif pk == documents.STATE and kind == "ATTEMPTS":
                fresh += self._take_attempts(int(number), body)
            elif pk.startswith(documents.history_partition("")):
                run_id = pk.removeprefix(documents.history_partition(""))
                self.ended += [(run_id, row) for row in ended_attempts.from_bytes(body).rows()]
            elif pk == cluster_history.PARTITION:
                self.cluster_history = ClusterHistoryPiece.from_json(documents.decode(body))
        return fresh

    def _take_summary(self, pk: str, sk: str, body: bytes) -> None:
        """Root, runs, pools and instances, without which the columns mean nothing."""
        if pk == documents.RUNS:
            self._take_record(documents.record_from(body))
        elif (pk, sk) == (documents.STATE, documents.ROOT):
            self.root = documents.decode(body)
        elif (pk, sk) == (documents.STATE, documents.POOLS):
            parts = "cell", "instance_type", "zone", "reservation"
            self.pools = {pool_key(*(each.get(part, "") for part in parts)): each for each in documents.decode(body)}
        elif pk == documents.STATE and sk.startswith("INSTANCES#"):
            self._take_instances(sk, documents.decode(body))
        elif (pk, sk) == (documents.STATE, SHARING):
            self.sharing = replace(Sharing.from_bytes(body), recent=self.sharing.recent)
        elif (pk, sk) == (documents.STATE, RECENT_USE):
            self.sharing = replace(self.sharing, recent=RecentUse.from_bytes(body))
        elif pk == documents.STATE and sk.startswith(ENVIRONMENT):
            self._take_environment(sk.removeprefix(ENVIRONMENT), body)

    def _take_record(self, record: RunRecord) -> None:
        self.records[record.id] = record
        self._runs[record.number] = record.id
        if record.id not in self.task_tables:
            self.task_tables[record.id] = TaskTable(record.task_count)
        self.task_tables[record.id].grow_to(record.task_count)
        self._read_tasks(record.id)

    def _take_environment(self, name: str, body: bytes) -> None:
        self.environments.pop(name, None)
        found = environment_from(body)
        if found is not None:
            self.environments[name] = found

    def _take_instances(self, bucket: str, records: list[JSON]) -> None:
        for instance_id in self._buckets.get(bucket, ()):
            self.instances.pop(instance_id, None)
        self._buckets[bucket] = [record["id"] for record in records]
        self.instances.update({record["id"]: record for record in records})

    def attempts_of(self, run_id: str) -> list[int]:
        """The number of attempts of each of its tasks."""
        counts: list[int] = self.task_tables[run_id]["attempts"].tolist()
        return counts

    def name_of(self, number: int) -> str:
        """The id of a run; "" if none of this number was ever stored."""
        return self._runs.get(number, "")

    def names(self, instance_id: str) -> bool:
        """Whether it is among the stored instances."""
        return instance_id in self.instances

    def _take_tasks(self, run_id: str, chunk: int, body: bytes) -> None:
        self.task_tables[run_id].unpack(chunk, body)
        self._read_tasks(run_id)

    def _read_tasks(self, run_id: str) -> None:
        """Pending tasks of a halted run count as cancelled: the controller does not write a million rows for that."""
        table, halted = self.task_tables[run_id], self.records[run_id].halted
        rows = zip(*(table[name].tolist() for name in _COLUMNS), strict=True)
        ended = (TaskStatus.CANCELLED,)
        self.tables[run_id] = [ended + row[1:] if halted and row[0] == TaskStatus.PENDING else row for row in rows]

    def _take_attempts(self, chunk: int, body: bytes) -> list[StoredAttempt]:
        table = AttemptTable(AttemptTable.chunk_rows)
        table.unpack(0, body)
        self.live = {place: live for place, live in self.live.items() if place[0] != chunk}
        fresh = []
        for row in table.live().tolist():
            run_id = self._runs.get(int(table["run"][row]), "")
            key = AttemptKey(run_id, *(int(table[name][row]) for name in ("index", "attempt", "launch")))
            names = (bytes(table[name][row]).decode() for name in ("instance", "task_id"))
            instance, task_id = names
            if table["left_at"][row]:
                instance = ""  # it takes no room there any more
            live = StoredAttempt(
                key,
                instance,
                int(table["status"][row]),
                task_id,
                int(table["stop_cause"][row]),
                float(table["started_at"][row]),
                int(table["health"][row]),
                float(table["health_since"][row]),
                int(table["for_run"][row]),
                int(table["gpu_mask"][row]),
            )
            self.live[chunk, row] = live
            if key not in self.intended and live.status == AttemptStatus.INTENT:
                fresh.append(live)
            self.intended.add(key)
        return fresh
