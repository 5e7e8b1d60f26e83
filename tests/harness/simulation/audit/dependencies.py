"""Does a run or a task begin only after its dependencies?

`S7`: when the intent of an attempt is stored, three things hold. Its run's start time has come. Every run that it
depends on as a whole has ended, successfully where the spec asks for that. The task of the same index has ended in each
run that it depends on task by task. A dependency that was met stays met when the other run is retried. A run that can
never begin has no attempt. A single waiting task is cancelled only if the task that it depends on did not succeed, or
if a user asks for it. Then it has no further attempt until a user retries its run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model import inbox
from argosy.model.runs import RunStatus
from argosy.model.tasks import TERMINAL, TaskStatus
from argosy.spec.terms import terms_of_form
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = Mapping[str, Any]


class DependencyChecker(Checker):
    """Every commit with an intent, compared with all that was ever stored of the runs that it waits for."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._ended: set[str] = set()
        self._succeeded: set[str] = set()
        self._tasks_ended: dict[str, set[int]] = {}
        self._requests: dict[str, inbox.CancelTasksRequest] = {}
        """By their place in the inbox."""
        self._unwanted: set[tuple[str, int]] = set()
        """Tasks that a user has cancelled: run and index."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("dynamodb", "transact_write_items"): self._asked}

    def _asked(self, request: JSON, reply: JSON) -> None:
        """Requests that are stored, and those that a commit takes out of the inbox."""
        for action in request["TransactItems"]:
            item, key = action.get("Put", {}).get("Item", {}), action.get("Delete", {}).get("Key", {})
            if item.get("pk") == {"S": inbox.INBOX}:
                asked = inbox.from_bytes(item["body"]["B"])
                if isinstance(asked, inbox.CancelTasksRequest):
                    self._requests[item["sk"]["S"]] = asked
            elif key.get("pk") == {"S": inbox.INBOX} and (found := self._requests.pop(key["sk"]["S"], None)):
                self._unwanted |= {(found.run_id, index) for index, _ in found.tasks}

    def committed(self, commit: Commit) -> None:
        self._look()
        kept = commit.retried | self.facts.damaged
        self._unwanted = {each for each in self._unwanted if each[0] not in kept}
        for run_id, each in self.facts.jobs.items():
            if any(other["type"] == "N_TO_N" for other in each.spec.get("dependsOn", ())):
                self._check_cancelled(run_id, each.spec, commit)
        for intent in commit.intents:
            job = self.facts.jobs.get(intent.key.run_id)
            if job is not None:
                self._check(intent, job.spec)
            if (intent.key.run_id, intent.key.index) in self._unwanted:
                self.facts.violated("S7", f"{intent.key} was intended after its task was cancelled", intent.key.run_id)

    def _look(self) -> None:
        """An end counts for the runs that depend on it, even after a retry."""
        awaited = {each["run"] for job in self.facts.jobs.values() for each in job.spec.get("dependsOn", ())}
        for run_id in awaited & self.facts.stored.records.keys():
            record = self.facts.stored.records[run_id]
            if record.has_ended:
                self._ended.add(run_id)
            if record.status is RunStatus.SUCCEEDED:
                self._succeeded.add(run_id)
            rows = self.facts.stored.tables.get(run_id, ())
            over = {index for index, row in enumerate(rows) if row[0] in TERMINAL or record.has_ended}
            self._tasks_ended.setdefault(run_id, set()).update(over)

    def _check(self, intent: StoredAttempt, spec: JSON) -> None:
        key = intent.key
        for each in spec.get("dependsOn", ()):
            if each["type"] == "N_TO_N":
                is_met = self._task_is_met(each, key.index)
            else:
                is_met = each["run"] in (self._ended if each["on"] == "end" else self._succeeded)
            if not is_met:
                self.facts.violated("S7", f"{key} was intended before {each}", key.run_id, each["run"])
        if "notBefore" in spec:
            record = self.facts.stored.records[key.run_id]
            earliest = terms_of_form(spec).starts_at(record.submitted_at) - self.facts.clocks_differ_s
            if self.facts.world.now < earliest:
                self.facts.violated("S7", f"{key} was intended before {spec['notBefore']}", key.run_id)

    def _check_cancelled(self, run_id: str, spec: JSON, commit: Commit) -> None:
        record, tables = self.facts.stored.records.get(run_id), self.facts.stored.tables
        before, after = commit.tables_before.get(run_id, []), tables.get(run_id, [])
        if record is None or before is after or record.halted or record.cancelled or record.revives:
            return
        if run_id in commit.retried or record.suspended_at or record.has_ended:
            return
        for index, (was, row) in enumerate(zip(before, after, strict=False)):
            if (was[0], row[0]) != (TaskStatus.PENDING, TaskStatus.CANCELLED) or (run_id, index) in self._unwanted:
                continue
            others = [each["run"] for each in spec["dependsOn"] if (each["type"], each["on"]) == ("N_TO_N", "success")]
            if all(self._has_succeeded(other, index) for other in others):
                told = f"task {index} of {run_id} is cancelled, and its own ones of {others} succeeded"
                self.facts.violated("S7", told, run_id, *others)

    def _has_succeeded(self, run_id: str, index: int) -> bool:
        rows = self.facts.stored.tables.get(run_id, ())
        return bool(len(rows) > index and rows[index][0] == TaskStatus.SUCCEEDED)

    def _task_is_met(self, each: JSON, index: int) -> bool:
        if each["on"] == "end":
            return index in self._tasks_ended.get(each["run"], ())
        return self._has_succeeded(each["run"], index)  # which no retry takes away
