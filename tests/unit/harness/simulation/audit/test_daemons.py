"""What does the auditor object to in the way a daemon is kept?"""

from __future__ import annotations

import pytest

from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.services.environments import Environment
from tests.fakes.worlds import world
from tests.harness.simulation.audit.daemons import DaemonChecker
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.workload import SimulatedJob

RUN_ID = "watch-261121-062733-aaaa"
SPEC = {
    "version": 1,
    "kind": "daemon",
    "name": "watch",
    "container": {"image": "argosy/watch"},
    "resources": {"vcpus": 0.5, "memory": 256},
    "daemon": {"update": {"minHealthyPercent": 50, "healthySeconds": 10, "order": "stop-first"}},
}
INSTANCE = {
    "status": "ACTIVE",
    "interrupted_at": 0.0,
    "rebalance_at": 0.0,
    "owned": True,
    "arn": "arn",
    "zone": "us-east-1a",
    "total": [4096, 8192, 0],
    "foreign": [0, 0, 0],
}


def stopping(facts: TrialFacts, *stopped: str) -> list[str]:
    """The violations of a commit that stops these of the two tasks, which were healthy for an hour."""
    stored, checker = facts.stored, DaemonChecker(facts)
    stored.records[RUN_ID] = RunRecord.of_unreadable(RUN_ID)
    revision = {"number": 1, "created_at": 0.0, "run_id": RUN_ID}
    deployment = {"number": 1, "revision": 1, "started_at": 0.0, "status": "IN_PROGRESS"}
    stored.environments["watch"] = Environment.from_json(
        {
            "name": "watch",
            "is_daemon": True,
            "created_at": 0.0,
            "desired": 2,
            "spec_desired": 0,
            "revisions": [revision],
            "deployments": [deployment],
        }
    )
    stored.instances = {"i-0": INSTANCE, "i-1": INSTANCE}
    for told in ((), stopped):
        stored.version += 1
        stored.live = {(0, n): _alive(facts, n, name in told) for n, name in enumerate(("t-0", "t-1"))}
        checker.committed(Commit(stored.version - 1, {}, [], frozenset()))
    return [each.invariant for each in facts.violations]


def _alive(facts: TrialFacts, index: int, is_replaced: bool) -> StoredAttempt:
    cause = StopCause.REPLACED if is_replaced else StopCause.NONE
    key, began = AttemptKey(RUN_ID, index, 1, 0), facts.world.now - 3600.0
    return StoredAttempt(key, f"i-{index}", AttemptStatus.RUNNING, f"t-{index}", cause, began)


class Ended(TrialFacts):
    """Every task has ended in the world."""

    def has_ended(self, each: StoredAttempt) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "stopped", "said"),
    [(TrialFacts, ["t-0"], []), (TrialFacts, ["t-0", "t-1"], ["N4"]), (Ended, ["t-0", "t-1"], [])],
)
def test_the_last_healthy_task_is_stopped_only_if_it_has_ended(
    kind: type[TrialFacts], stopped: list[str], said: list[str]
) -> None:
    facts = kind(Regions(world()), {RUN_ID: SimulatedJob(RUN_ID, SPEC, 1)}, Policy())
    assert stopping(facts, *stopped) == said
