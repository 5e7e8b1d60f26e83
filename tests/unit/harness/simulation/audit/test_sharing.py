"""Does the auditor see that a queue is served out of turn, and leave out what an incoming instance decides?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.shares.sharing import Sharing, SharingDocument
from argosy.model.tasks import TaskTable
from tests.fakes.trials import SMALL_JOB
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.sharing import SETTLED_S, SharingChecker
from tests.harness.simulation.audit.stored_state import StoredAttempt
from tests.harness.simulation.world.regions import Regions

HIGH, LOW = "high-270115-080000-aaaa", "low-270115-080000-bbbb"


def found(*instances: dict[str, Any], target: int = 1) -> list[str]:
    """What is found where HIGH starts three tasks, one by one, while LOW, of another queue, waits with four."""
    jobs = {name: replace(SMALL_JOB, spec={**SMALL_JOB.spec, "queue": name.partition("-")[0]}) for name in (HIGH, LOW)}
    facts = TrialFacts(Regions(world()), jobs, Policy())
    checker, stored = SharingChecker(facts), facts.stored
    facts.faults_ended_at = 1.0
    stored.sharing = Sharing(SharingDocument(1, 0.0, {"queues": {"high": {}, "low": {}}}))
    stored.root = {"runs": [HIGH, LOW]}
    for run_id in (HIGH, LOW):
        stored.records[run_id] = replace(
            RunRecord.of_unreadable(run_id), status=RunStatus.RUNNING, halted=False, task_definition="work:1"
        )
        stored.task_tables[run_id] = TaskTable(4)
    stored.instances = {f"i-{number}": each for number, each in enumerate(instances)}
    pool = Pool("us-east-1", "c5.large", "us-east-1a", "fleet-1", spot_target=target)
    stored.pools = {pool.key: {name: getattr(pool, name) for name in Pool.__slots__}}
    intents = [StoredAttempt(AttemptKey(HIGH, index, 1, 1), "i-0", AttemptStatus.INTENT, "") for index in (0, 1, 2)]
    for number, each in enumerate(intents):
        stored.version = number + 1
        stored.live[0, number] = each
        checker.committed(Commit(number, {}, [each], frozenset()))
        facts.world.run_for(SETTLED_S + 1)
    return [violation.invariant for violation in facts.violations]


OURS, FOREIGN = {"status": "ACTIVE", "owned": True}, {"status": "ACTIVE", "owned": False}


def test_a_start_while_a_lower_queue_waits_is_found() -> None:
    assert found(OURS) == ["S1"]
    assert found(OURS, FOREIGN) == ["S1"]


def test_while_an_instance_is_incoming_nothing_is_judged_though_a_foreign_one_is_there() -> None:
    assert found(OURS, target=2) == []
    assert found(OURS, FOREIGN, target=2) == []
