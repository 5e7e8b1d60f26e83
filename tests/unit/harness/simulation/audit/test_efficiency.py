"""Does the auditor see useless calls, messages and waits?"""

from __future__ import annotations

from dataclasses import replace

from argosy.engine.report import TickReport
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.services.environments import Environment, Revision
from tests.fakes.trials import SMALL_JOB
from tests.fakes.worlds import world
from tests.harness.simulation.audit.efficiency import AWAKE_S, FREE, EfficiencyChecker
from tests.harness.simulation.audit.facts import TrialFacts, TrialResults
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.regions import Regions


def checked() -> tuple[TrialFacts, EfficiencyChecker]:
    facts = TrialFacts(Regions(world()), {}, Policy(), one_controller=True)
    return facts, EfficiencyChecker(facts)


def stopped(times: int, every_s: float) -> list[str]:
    """The same StopTask repeatedly."""
    facts, checker = checked()
    for _ in range(times):
        checker.effects()["ecs", "stop_task"]({"task": "a"}, {})
        facts.world.run_for(every_s)
    return [found.invariant for found in facts.violations]


def test_a_call_that_is_made_in_every_tick_is_a_violation_and_one_a_minute_is_not() -> None:
    assert stopped(FREE + 1, every_s=2.0) == ["repeated"]
    assert stopped(5 * FREE, every_s=60.0) == []


def awake_for(seconds: float, *runs: RunRecord, controllers: int = 1, deleting: bool = False) -> list[str]:
    """With no other run and no instance, once the faults have ended. deleting: the environments of the runs."""
    facts, checker = checked()
    for run in runs:
        revision = Revision(1, 0.0, run.id)
        env = Environment(run.id, 0.0, 1, 1, [revision], is_daemon=True, deleting=deleting)
        facts.stored.environments[run.id] = env
    facts.jobs.update({run.id: SMALL_JOB for run in runs})
    facts.stored.records.update({run.id: run for run in runs})
    facts.faults_ended_at = facts.world.now
    checker.time_passed()
    facts.world.run_for(seconds)
    checker.at_rest(TrialResults({}, Bill(facts.world), 0.0, controllers))
    return [found.invariant for found in facts.violations]


def test_a_controller_that_works_on_with_nothing_to_wait_for_is_one_after_some_sweeps() -> None:
    assert awake_for(AWAKE_S - 1) == []
    assert awake_for(AWAKE_S + 1) == ["awake"]


def test_a_daemon_keeps_no_controller_awake_unless_it_is_suspended_and_not_being_deleted() -> None:
    daemon = replace(RunRecord.of_unreadable("watch"), status=RunStatus.RUNNING, is_daemon=True)
    assert awake_for(AWAKE_S + 1, daemon) == ["awake"]
    assert awake_for(AWAKE_S + 1, replace(daemon, suspended_at=1.0)) == []
    assert awake_for(AWAKE_S + 1, replace(daemon, suspended_at=1.0), deleting=True) == ["awake"]


def test_controllers_that_no_lease_keeps_apart_may_repeat_what_the_others_did() -> None:
    assert awake_for(AWAKE_S + 1, controllers=2) == []


def test_a_controller_that_was_not_invoked_has_not_worked_on() -> None:
    facts, checker = checked()
    facts.faults_ended_at = facts.world.now
    report = TickReport(events=0, poison=0)
    for pause_s in (0.0, 60.0, AWAKE_S, 60.0):
        facts.world.run_for(pause_s)
        checker.ticked(report, None)
        checker.time_passed()
    checker.at_rest(TrialResults({}, Bill(facts.world), 0.0))
    assert not facts.violations
