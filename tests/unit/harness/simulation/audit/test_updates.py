"""Does the auditor count the tasks of a run that are alive, and no others?"""

from __future__ import annotations

from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from tests.builders import NOW, RUN_ID, spec
from tests.fakes.worlds import world
from tests.harness.simulation.audit.caps import UpdateChecker
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt
from tests.harness.simulation.users.submissions import SimulatedJob
from tests.harness.simulation.world.regions import Regions


def attempt(index: int, instance: str) -> StoredAttempt:
    return StoredAttempt(AttemptKey(RUN_ID, index, 1, 0), instance, AttemptStatus.INTENT, "")


def found_where_one_may_be(earlier: StoredAttempt) -> list[str]:
    """What is found when a second task is begun of a run that may have one at a time."""
    one_at_a_time = spec(placement={"maxConcurrentTasks": 1})
    job = SimulatedJob(RUN_ID, one_at_a_time, 2, 0.0, shortest_s=1.0, longest_s=2.0)
    facts, fresh = TrialFacts(Regions(world()), {RUN_ID: job}, Policy()), attempt(1, "i-2")
    facts.stored.records[RUN_ID] = RunRecord(
        id=RUN_ID, name="digits", status=RunStatus.RUNNING, submitted_at=NOW, task_count=2, output=""
    )
    facts.stored.live = {(0, 0): earlier, (0, 1): fresh}
    UpdateChecker(facts).committed(Commit(0, {}, [fresh], frozenset()))
    return [found.invariant for found in facts.violations]


def test_more_than_may_be_alive_is_found() -> None:
    assert found_where_one_may_be(attempt(0, "i-1")) == ["S9"]


def test_a_task_that_has_left_its_instance_is_not_alive() -> None:
    """Its run was suspended when it ended: its fate is found out later."""
    assert found_where_one_may_be(attempt(0, "")) == []
