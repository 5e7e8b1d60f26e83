"""What does the auditor object to in the way a service is kept?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.services.environments import DeploymentStatus, Environment
from argosy.model.tasks import TaskStatus, TaskTable
from tests.fakes.worlds import world
from tests.harness.simulation.audit.environments import EnvironmentChecker
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.workload import SimulatedJob

RUN_ID = "web-261121-062733-aaaa"
UPDATE = {"minHealthyPercent": 100, "maxOverPercent": 50, "healthySeconds": 10}
SPEC = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web"},
    "service": {"desired": 2, "update": UPDATE},
}
PENDING, RUNNING, PARKED = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.CANCELLED


class Stored:
    """The stored records of one commit after the other, and the findings."""

    def __init__(self) -> None:
        self.facts = TrialFacts(Regions(world()), {RUN_ID: SimulatedJob(RUN_ID, SPEC, 2)}, Policy())
        self.checker = EnvironmentChecker(self.facts)
        self.facts.stored.records[RUN_ID] = RunRecord.of_unreadable(RUN_ID)
        self.env(DeploymentStatus.IN_PROGRESS)

    def env(self, status: DeploymentStatus, frozen: str = "", **fields: Any) -> None:
        deployment = {"number": 1, "revision": 1, "started_at": 0.0, "status": str(status)}
        self.facts.stored.environments["web"] = Environment.from_json(
            {
                "name": "web",
                "created_at": 0.0,
                "desired": 2,
                "spec_desired": 2,
                "revisions": [{"number": 1, "created_at": 0.0, "run_id": RUN_ID}],
                "deployments": [deployment],
                "frozen_reason": frozen,
                **fields,
            }
        )

    def commit(self, statuses: Sequence[TaskStatus], told_to_stop: Sequence[int] = (), **how: Any) -> list[str]:
        """A task that runs has done so for an hour. Returns the invariants that this violates."""
        stored, before = self.facts.stored, dict(self.facts.stored.tables)
        stored.version += 1
        stored.tables[RUN_ID] = [(int(status), 0, 0, 0) for status in statuses]
        table = TaskTable(len(statuses))
        table.set_many(np.arange(len(statuses)), attempts=how.get("attempts", 1))
        stored.task_tables[RUN_ID] = table
        stored.live = {(0, n): self._alive(n, n in told_to_stop) for n, each in enumerate(statuses) if each is RUNNING}
        intents = [live for live in stored.live.values() if live.key.index in how.get("launched", ())]
        stored.intended |= {live.key for live in stored.live.values()}
        known = len(self.facts.violations)
        self.checker.committed(Commit(stored.version - 1, before, intents, frozenset()))
        return [each.invariant for each in self.facts.violations[known:]]

    def _alive(self, index: int, is_replaced: bool) -> StoredAttempt:
        cause = StopCause.REPLACED if is_replaced else StopCause.NONE
        began = self.facts.world.now - 3600.0
        return StoredAttempt(AttemptKey(RUN_ID, index, 1, 0), "i-1", AttemptStatus.RUNNING, "t", cause, began)


def test_a_healthy_task_is_stopped_only_while_enough_others_are_healthy() -> None:
    stored = Stored()
    assert stored.commit([RUNNING, RUNNING, RUNNING]) == []
    assert stored.commit([RUNNING, RUNNING, RUNNING], told_to_stop=[2]) == []
    assert stored.commit([RUNNING, RUNNING, RUNNING], told_to_stop=[1, 2]) == ["E1"]


def test_no_more_are_started_than_the_policy_allows() -> None:
    stored = Stored()
    assert stored.commit([RUNNING, RUNNING]) == []
    assert stored.commit([RUNNING, RUNNING, PENDING]) == []
    assert stored.commit([RUNNING, RUNNING, PENDING, PENDING]) == ["E2"]
    assert stored.commit([RUNNING, RUNNING, PENDING, PENDING]) == []  # it was said, and nothing more starts


def test_what_is_frozen_starts_and_replaces_nothing() -> None:
    stored = Stored()
    assert stored.commit([RUNNING, PARKED, PARKED]) == []
    stored.env(DeploymentStatus.IN_PROGRESS, "not now")
    assert stored.commit([RUNNING, PARKED, PARKED]) == []
    assert stored.commit([RUNNING, PENDING, PARKED]) == ["E4"]
    assert stored.commit([RUNNING, RUNNING, PARKED], launched=[1]) == ["E4"]


@pytest.mark.parametrize(("fields", "said"), [({}, ["E13"]), ({"deleting": True}, []), ({"created_at": 9.0}, [])])
def test_what_a_user_has_frozen_is_thawed_by_a_thaw_alone(fields: dict[str, Any], said: list[str]) -> None:
    stored = Stored()
    assert stored.commit([RUNNING, PARKED]) == []
    for thaws in (1, 0):
        stored.env(DeploymentStatus.IN_PROGRESS, "not now", frozen_by_user=True)
        assert stored.commit([RUNNING, PARKED]) == []
        stored.facts.thaws_asked["web"] += thaws
        stored.env(DeploymentStatus.IN_PROGRESS, **({} if thaws else fields))
        assert stored.commit([RUNNING, PARKED]) == ([] if thaws else said)


def test_tasks_of_a_service_are_never_removed_renumbered_or_done() -> None:
    stored = Stored()
    assert stored.commit([RUNNING, RUNNING]) == []
    assert "E5" in stored.commit([RUNNING])
    assert "E5" in stored.commit([RUNNING, TaskStatus.SUCCEEDED])
    again = Stored()
    again.facts.stored.intended.add(AttemptKey(RUN_ID, 0, 3, 0))
    assert again.commit([RUNNING, RUNNING], attempts=2) == []
    assert "E5" in again.commit([RUNNING, RUNNING], attempts=1)


def test_a_deployment_is_complete_when_its_tasks_are_healthy() -> None:
    stored = Stored()
    assert stored.commit([RUNNING, PENDING]) == []
    stored.env(DeploymentStatus.COMPLETED)
    assert stored.commit([RUNNING, PENDING]) == ["E8"]
    again = Stored()
    assert again.commit([RUNNING, RUNNING]) == []
    again.env(DeploymentStatus.COMPLETED)
    assert again.commit([RUNNING, RUNNING]) == []
