"""Which sentences to users does the auditor take for untrue?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.model.inbox import INBOX, CancelRequest, to_bytes
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.fakes.trials import SMALL_JOB
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.reasons import EARLY, EARLY_S, ReasonChecker
from tests.harness.simulation.world.regions import Regions

RUN_ID, OTHER = SMALL_JOB.run_id, "other-270115-080000-bbbb"
POOL = {
    "spot_target": 0, "on_demand_target": 0, "confirmed_spot": 0,
    "short_until": 0.0, "on_demand_short_until": 0.0, "closed": "", "fleet_id": "fleet-1",
}  # fmt: skip
HOST = {
    "cell": "us-east-1", "instance_type": "c5.xlarge", "zone": "us-east-1a", "fleet_id": "fleet-1", "purchase": "spot",
    "owned": True, "interrupted_at": 0.0, "absent_since": 0.0,
}  # fmt: skip
KEY = "us-east-1/c5.xlarge/us-east-1a"
PENDING, RUNNING, FAILED = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.FAILED


def checked(
    waiting: str = "",
    reason: str = "",
    *,
    tasks: tuple[int, ...] = (PENDING, PENDING),
    pools: dict[str, Any] | None = None,
    hosts: tuple[str, ...] = (),
    spec: dict[str, Any] | None = None,
    cancelled: bool = False,
    kept: dict[str, Any] | None = None,
) -> int:
    """How many violations there are, of a run that is said to wait, or to be stopped, for this.

    kept: the other fields of its record.
    """
    job = replace(SMALL_JOB, spec={**SMALL_JOB.spec, **(spec or {})})
    facts = TrialFacts(Regions(world()), {RUN_ID: job}, Policy(max_instances=4), nothing_goes_wrong=True)
    checker, stored = ReasonChecker(facts), facts.stored
    stored.pools = {KEY: {**POOL, **(pools or {})}}
    stored.instances = {str(number): {**HOST, "status": status} for number, status in enumerate(hosts)}
    stored.tables[RUN_ID] = [(status, 0, 0, 0) for status in tasks]
    record = replace(RunRecord.of_unreadable(RUN_ID), status=RunStatus.RUNNING, waiting=waiting, status_reason=reason)
    stored.records[RUN_ID] = replace(record, **(kept or {}))
    if cancelled:
        key = {"pk": {"S": INBOX}, "sk": {"S": f"1#{RUN_ID}#cancel#a"}}
        checker.effects()["dynamodb", "transact_write_items"]({"TransactItems": [{"Delete": {"Key": key}}]}, {})
    stored.version = 1
    checker.committed(Commit(0, {}, [], frozenset()))
    if waiting.startswith(EARLY):
        assert not facts.violations, "a fleet that is not seen yet is told in the next tick"
        facts.world.run_for(EARLY_S + 1)
        stored.version = 2
        checker.committed(Commit(1, {}, [], frozenset()))
    before = len(facts.violations)
    checker.committed(Commit(stored.version, {}, [], frozenset()))  # of the api, which changes nothing
    assert len(facts.violations) == before
    assert {found.invariant for found in facts.violations} <= {"reason"}
    return len(facts.violations)


ORDERED = "waiting for ordered instances to join the cluster"
FULL = "held back by maxInstances of the deployment"
OVER_TIME = "the run took longer than timeout.runDurationSeconds allows: 60 s"


@pytest.mark.parametrize(
    ("said", "untrue", "true"),
    [
        (ORDERED, {"hosts": ("ACTIVE",)}, {"hosts": ("BOOTING",)}),
        (ORDERED, {"pools": {"confirmed_spot": 1}, "hosts": ("ACTIVE",)}, {"pools": {"confirmed_spot": 1}}),
        (ORDERED, {"tasks": (FAILED, FAILED), "hosts": ("BOOTING",)}, {"hosts": ("BOOTING",)}),
        (FULL, {"hosts": ("ACTIVE", "GONE")}, {"hosts": ("ACTIVE",), "pools": {"spot_target": 4}}),
        (
            FULL,
            {"hosts": ("ACTIVE",) * 2, "pools": {"confirmed_spot": 2}},
            {"hosts": ("ACTIVE",) * 2, "pools": {"on_demand_target": 2}},
        ),
        ("held back by capacity.maxInstances of the run", {}, {"spec": {"capacity": {"maxInstances": 1}}}),
        ("held back by its budget of $1", {}, {"spec": {"capacity": {"budgetUsd": 1}}}),
        ("waits before a retry after: x", {"tasks": (PENDING, RUNNING)}, {"tasks": (PENDING, FAILED)}),
        ("the pools that could hold it are short", {}, {"pools": {"short_until": 1e12}}),
        ("only closed cells could hold it", {}, {"pools": {"closed": "left out"}}),
        ("this deployment has no fleets yet", {}, {"pools": {"fleet_id": ""}}),
        ("its results are being listed: 1 of 2", {}, {"tasks": (FAILED, FAILED)}),
    ],
)
def test_the_reason_of_a_waiting_run_must_exist(said: str, untrue: dict[str, Any], true: dict[str, Any]) -> None:
    assert (checked(said, **untrue), checked(said, **true)) == (1, 0)


@pytest.mark.parametrize(
    ("kept", "untrue"),
    [
        ({"healthy_s": 60.0}, 0),
        ({"healthy_s": 60.0, "halted": True}, 1),
        ({"healthy_s": 60.0, "status": RunStatus.PROVISIONING}, 1),
        ({}, 1),
    ],
)
def test_of_runs_without_a_task_to_run_only_those_that_serve_wait_for_their_turn_to_register(
    kept: dict[str, Any], untrue: int
) -> None:
    said = "waits for its turn to register a task definition"
    record = {"status": RunStatus.SUBMITTED, "halted": False, **kept}
    assert checked(said, tasks=(TaskStatus.CANCELLED,), kept=record) == untrue
    assert checked("waits for run x", tasks=(TaskStatus.CANCELLED,), kept=record) == 1


@pytest.mark.parametrize(
    ("said", "true"),
    [
        ("cancelled: enough", {"cancelled": True}),
        ("the rest of its budget of $1 does not pay", {"spec": {"capacity": {"budgetUsd": 1}}}),
        (OVER_TIME, {"spec": {"timeout": {"runDurationSeconds": 60}}}),
        ("stopped early: the first 5 tasks failed alike", {"tasks": (FAILED,) * 5}),
    ],
)
def test_the_reason_of_a_stopped_run_must_have_happened(said: str, true: dict[str, Any]) -> None:
    assert (checked(reason=said), checked(reason=said, **true)) == (1, 0)


@pytest.mark.parametrize("dependents", [True, False])
def test_a_run_goes_with_the_one_that_it_depends_on_where_its_user_asked_for_that(dependents: bool) -> None:
    waits = replace(SMALL_JOB, spec={**SMALL_JOB.spec, "dependsOn": [{"run": OTHER}]})
    jobs = {RUN_ID: waits, OTHER: replace(SMALL_JOB, run_id=OTHER)}
    facts = TrialFacts(Regions(world()), jobs, Policy(), nothing_goes_wrong=True)
    checker, key = ReasonChecker(facts), {"pk": {"S": INBOX}, "sk": {"S": f"1#{OTHER}#cancel#a"}}
    asked = {**key, "body": {"B": to_bytes(CancelRequest(OTHER, 0.0, "enough", dependents=dependents))}}
    for action in ({"Put": {"Item": asked}}, {"Delete": {"Key": key}}):
        checker.effects()["dynamodb", "transact_write_items"]({"TransactItems": [action]}, {})
    said = f"cancelled with {OTHER}, which it depends on"
    record = replace(RunRecord.of_unreadable(RUN_ID), status=RunStatus.CANCELLED, status_reason=said)
    facts.stored.records[RUN_ID], facts.stored.version = record, 1
    checker.committed(Commit(0, {}, [], frozenset()))
    assert len(facts.violations) == (not dependents)


def test_trouble_is_reported_only_where_something_goes_wrong() -> None:
    assert checked("the run could not be prepared: Rate exceeded") == 1
    assert checked(reason="set aside: its record is corrupt") == 1
