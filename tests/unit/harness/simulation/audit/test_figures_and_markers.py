"""Does the auditor see metrics that differ from the stored state, and markers of another run?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.engine.own_faults import OwnFailure
from argosy.engine.report import TickReport
from argosy.layout import RETRIES_METADATA, marker_uri, split_s3
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.fakes.trials import SMALL_JOB
from tests.fakes.worlds import world
from tests.harness.simulation.audit.cluster_history import FigureChecker
from tests.harness.simulation.audit.facts import TrialFacts, TrialResults
from tests.harness.simulation.audit.progress import MarkerChecker
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.s3 import StoredObject

RUN_ID = SMALL_JOB.run_id
WELL, ILL = TaskStatus.SUCCEEDED, TaskStatus.FAILED


def facts_of(*statuses: int, ended: bool = False) -> TrialFacts:
    """One run at its second retry with such tasks, and two instances, one of which is gone."""
    facts = TrialFacts(Regions(world()), {RUN_ID: SMALL_JOB}, Policy())
    status = RunStatus.FAILED if ended else RunStatus.RUNNING
    facts.stored.records[RUN_ID] = replace(RunRecord.of_unreadable(RUN_ID), status=status, retries=2)
    facts.stored.tables[RUN_ID] = [(each, 0, 0, 0) for each in statuses]
    facts.stored.instances = {"a": {"status": "ACTIVE"}, "b": {"status": "GONE"}}
    facts.stored.version = 7
    return facts


@pytest.mark.parametrize(
    ("report", "version", "violations"),
    [
        (TickReport(0, 0, tasks_pending=1, tasks_running=1, instances=1), 7, 0),
        (TickReport(0, 0, tasks_pending=2, tasks_running=1, instances=1), 7, 1),
        (TickReport(0, 0, tasks_pending=1, tasks_running=0, instances=1), 7, 1),
        (TickReport(0, 0, tasks_pending=1, tasks_running=1, instances=2), 7, 1),
        (TickReport(0, 0), 6, 0),  # another controller has committed since
        (TickReport(0, 0), None, 0),
        (TickReport(0, 0, troubles=(OwnFailure("a tick's report", "it failed", ""),)), 7, 0),
    ],
)
def test_what_a_tick_reports_has_to_be_what_is_stored(report: TickReport, version: int | None, violations: int) -> None:
    facts = facts_of(TaskStatus.PENDING, TaskStatus.RUNNING, WELL)
    FigureChecker(facts).ticked(report, version)
    assert [found.invariant for found in facts.violations] == ["figures"] * violations


@pytest.mark.parametrize(
    ("succeeded", "named", "statuses", "violations"),
    [
        (True, "2", (WELL, WELL), 0),
        (False, "2", (WELL, ILL), 0),
        (False, "1", (WELL, TaskStatus.PENDING), 0),  # late, of an earlier try: it is taken back
        (False, "3", (WELL, ILL), 1),
        (False, "2", (WELL, TaskStatus.PENDING), 1),
        (True, "2", (WELL, ILL), 1),
        (True, None, (WELL, WELL), 1),
    ],
)
def test_a_marker_names_a_finished_try(
    succeeded: bool, named: str | None, statuses: tuple[int, ...], violations: int
) -> None:
    facts = facts_of(*statuses)
    bucket, key = split_s3(marker_uri(SMALL_JOB.output, succeeded))
    metadata = {} if named is None else {RETRIES_METADATA: named}
    put = MarkerChecker(facts).effects()["s3", "put_object"]
    put({"Bucket": bucket, "Key": key, "Metadata": metadata}, {})
    put({"Bucket": bucket, "Key": "another", "Metadata": metadata}, {})
    assert [found.invariant for found in facts.violations] == ["marker"] * violations


@pytest.mark.parametrize(
    ("succeeded", "named", "violations"),
    [
        (False, "2", 0),
        (False, "1", 1),
        (True, "1", 0),  # written before the controller failed at the run, which its user then tried again
        (True, "3", 1),
    ],
)
def test_the_marker_that_is_left_is_about_the_last_try_or_an_earlier_success(
    succeeded: bool, named: str, violations: int
) -> None:
    facts = facts_of(WELL, ILL, ended=True)
    objects = {split_s3(marker_uri(SMALL_JOB.output, succeeded)): StoredObject(b"", {RETRIES_METADATA: named})}
    MarkerChecker(facts).at_rest(TrialResults(objects, Bill(), 0.0))
    assert [found.invariant for found in facts.violations] == ["marker"] * violations
