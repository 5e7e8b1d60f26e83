"""A call through the alias of a queue changes that queue only and may read everything."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.access.entrance import READS, WHOLE
from argosy.api.actions import REQUESTS
from tests.fakes.api import SPEC, Desk, error_of
from tests.fakes.entrances import DOCUMENT, SERVICE, let, refused, shared_desk, through

SCHEDULE: dict[str, Any] = {"name": "nightly", "expression": "rate(1 day)"}
ELSEWHERE = "requests through the queue research may only change what belongs to it"


@pytest.fixture
def shared() -> Desk:
    return shared_desk()


def run_in(desk: Desk, queue: str | None, token: str = "t-1", **fields: Any) -> str:
    run_id = str(desk.submit(token, **({"queue": queue} if queue else {}), **fields)["runId"])
    desk.fold_in()
    desk.time += 1
    return run_id


def test_a_spec_without_a_queue_gets_that_of_the_entrance(shared: Desk) -> None:
    run_id = let(shared, "SubmitRun", spec=SPEC, clientToken="t")["runId"]
    shared.fold_in()
    assert shared.state.runs[run_id].terms.queue == "research"
    again = let(shared, "SubmitRun", spec={**SPEC, "queue": "research"}, clientToken="t")
    assert (again["runId"], again["created"]) == (run_id, False)
    assert let(shared, "ValidateRun", spec=SPEC)["tasks"] == 10


def test_a_spec_of_another_queue_is_refused(shared: Desk) -> None:
    for action in ("SubmitRun", "ValidateRun", "PlanRun", "CreateEnvironment"):
        assert refused(shared, action, spec={**SPEC, "queue": "prod"}) == f"the spec names the queue prod; {ELSEWHERE}"
    assert "names the queue 7" in refused(shared, "SubmitRun", spec={**SPEC, "queue": 7})
    said = refused(shared, "CreateSchedule", **SCHEDULE, spec={**SPEC, "queue": "default"})
    assert said == f"the spec names the queue default; {ELSEWHERE}"


@pytest.mark.parametrize(
    ("alias", "says"),
    [
        ("q-sales", "the alias q-sales belongs to no queue; the queues are: default, prod, research"),
        ("live", "live is not an alias of a queue: those are q- and a queue's name (default, prod, research)"),
        ("7", "7 is not an alias of a queue"),
        ("q-", "the alias q- belongs to no queue"),
    ],
)
def test_an_alias_that_no_queue_has_is_refused_even_for_reading(shared: Desk, alias: str, says: str) -> None:
    assert says in refused(shared, "ListRuns", alias)
    assert says in refused(shared, "SubmitRun", alias, spec=SPEC)


@pytest.mark.parametrize(
    ("action", "fields"),
    [("CancelRun", {}), ("RetryRun", {}), ("UpdateRun", {"changes": {"priority": 5}})],
)
def test_a_run_is_changed_through_the_entrance_of_its_own_queue(
    shared: Desk, action: str, fields: dict[str, Any]
) -> None:
    theirs, own = run_in(shared, "prod"), run_in(shared, "research", "t-2")
    assert refused(shared, action, runId=theirs, **fields) == f"the run {theirs} belongs to the queue prod; {ELSEWHERE}"
    assert through(shared, action, runId=own, **fields)["statusCode"] in (200, 409)  # nothing of it has failed yet
    assert let(shared, "DescribeRun", runId=theirs)["runId"] == theirs
    missing = through(shared, action, runId="none", **fields)
    assert (missing["statusCode"], error_of(missing)["message"]) == (404, "there is no run 'none'")


def test_a_run_goes_to_no_other_queue(shared: Desk) -> None:
    own = run_in(shared, "research")
    said = refused(shared, "UpdateRun", runId=own, changes={"queue": "prod"})
    assert said == f"the run would move to the queue prod; {ELSEWHERE}"
    let(shared, "UpdateRun", runId=own, changes={"queue": "research", "priority": 3})


def test_runs_of_a_queue_that_is_gone_are_the_default_ones(shared: Desk) -> None:
    left, unnamed = run_in(shared, "prod"), run_in(shared, None, "t-2")
    shared.body("ApplySharing", document={"version": 1, "queues": {"research": {}}})
    shared.fold_in()
    for run_id in (left, unnamed):
        assert "belongs to the queue" in refused(shared, "CancelRun", runId=run_id)
        assert through(shared, "CancelRun", "q-default", run_id, runId=run_id)["statusCode"] == 200


def test_dependents_of_other_queues_are_not_cancelled(shared: Desk) -> None:
    first = run_in(shared, "research")
    after = {"dependsOn": [{"run": first, "on": "end"}]}
    own, theirs = run_in(shared, "research", "t-2", **after), run_in(shared, "prod", "t-3", **after)
    behind = run_in(shared, "research", "t-4", dependsOn=[{"run": theirs, "on": "end"}])
    let(shared, "CancelRun", runId=first, dependents=True)
    shared.fold_in()
    gone = {run.id for run in shared.state.runs.values() if run.cancelled}
    assert (theirs in gone, behind in gone, own in gone) == (False, False, True)


def test_requests_that_affect_all_queues_are_left_to_the_owner(shared: Desk) -> None:
    asked: dict[str, dict[str, Any]] = {
        "ApplySharing": {"document": DOCUMENT},
        "ScaleCluster": {"instances": 3},
        "DrainInstance": {"instanceId": "i-1"},
        "FireSchedule": {"name": "nightly", "scheduledTime": "2026-11-23T03:00:00Z"},
        "ReleaseSchedules": {},
    }
    assert {model.__name__ for model in WHOLE} == set(asked)
    for action, fields in asked.items():
        said = refused(shared, action, **fields)
        assert said.startswith(f"{action} is not allowed through the queue research: ")


def test_every_action_is_either_a_look_or_is_held_to_the_queue(shared: Desk) -> None:
    """An action that is in no table is refused; here, those that a table confines to the queue."""
    held = {
        "SubmitRun", "ValidateRun", "PlanRun", "CancelRun", "RetryRun", "UpdateRun", "CreateEnvironment",
        "UpdateEnvironment", "StartDeployment", "RollBackDeployment", "StopDeployment", "ScaleEnvironment",
        "FreezeEnvironment", "ThawEnvironment", "DeleteEnvironment", "CreateSchedule", "UpdateSchedule",
        "PauseSchedule", "ResumeSchedule", "RunScheduleNow", "DeleteSchedule",
    }  # fmt: skip
    reads, whole = {model.__name__ for model in READS}, {model.__name__ for model in WHOLE}
    assert {*REQUESTS} == held | reads | whole
    assert not held & (reads | whole)
    assert all(name.startswith(("Describe", "List", "Explain")) for name in reads)


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("UpdateEnvironment", {"baseRevision": 1, "spec": {**SERVICE, "service": {"desired": 4}}}),
    ("StartDeployment", {}),
    ("RollBackDeployment", {}),
    ("StopDeployment", {}),
    ("ScaleEnvironment", {"desired": 5}),
    ("FreezeEnvironment", {}),
    ("ThawEnvironment", {}),
    ("DeleteEnvironment", {}),
]


@pytest.mark.parametrize(("action", "fields"), CHANGES)
def test_an_environment_is_changed_through_the_entrance_of_its_own_queue(
    shared: Desk, action: str, fields: dict[str, Any]
) -> None:
    shared.body("CreateEnvironment", spec={**SERVICE, "queue": "prod"})
    shared.fold_in()
    assert (
        refused(shared, action, name="web", **fields) == f"the environment web belongs to the queue prod; {ELSEWHERE}"
    )
    answer = through(shared, action, "q-prod", name="web", **fields)
    assert answer["statusCode"] in (200, 409), answer  # no deployment to stop, and nothing to go back to
    assert let(shared, "DescribeEnvironment", name="web")["name"] == "web"


def test_a_revision_of_another_queue_is_not_deployed(shared: Desk) -> None:
    shared.body("CreateEnvironment", spec={**SERVICE, "queue": "prod"})
    shared.fold_in()
    shared.time += 1
    shared.body("UpdateEnvironment", name="web", baseRevision=1, spec={**SERVICE, "queue": "research"})
    shared.fold_in()
    shared.time += 1
    assert "belongs to the queue prod" in refused(shared, "StartDeployment", name="web", revision=1)
    let(shared, "StartDeployment", name="web", revision=2)


def test_tasks_that_another_queue_has_left_are_not_taken_over(shared: Desk) -> None:
    shared.body("CreateEnvironment", spec={**SERVICE, "queue": "prod"})
    shared.fold_in()
    shared.time += 1
    shared.body("StartDeployment", name="web")
    shared.fold_in()
    shared.time += 1
    shared.body("DeleteEnvironment", name="web", tasks="leave")
    shared.fold_in()
    shared.time += 1
    assert "the environment web belongs to the queue prod" in refused(shared, "CreateEnvironment", spec=SERVICE)
    let(shared, "CreateEnvironment", spec={**SERVICE, "name": "other"})


def test_an_environment_of_which_nothing_is_known_is_the_default_queues(shared: Desk) -> None:
    shared.body("CreateEnvironment", spec={**SERVICE, "queue": "research"})
    shared.fold_in()
    shared.store.items = {key: body for key, body in shared.store.items.items() if key[0] != "REVISIONS"}
    assert "the environment web belongs to the queue default" in refused(shared, "FreezeEnvironment", name="web")


def test_daemons_are_left_to_the_owner(shared: Desk) -> None:
    daemon = {"version": 1, "kind": "daemon", "name": "logs", "container": {"image": "argosy/web"}}
    said = refused(shared, "CreateEnvironment", spec=daemon)
    assert said == f"a daemon runs on the instances of all queues; {ELSEWHERE}"
    shared.body("CreateEnvironment", spec=daemon)
    shared.fold_in()
    assert "logs is a daemon" in refused(shared, "FreezeEnvironment", "q-default", name="logs")


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("UpdateSchedule", {"revision": 1, "expression": "rate(2 days)"}),
        ("PauseSchedule", {}),
        ("ResumeSchedule", {}),
        ("RunScheduleNow", {}),
        ("DeleteSchedule", {}),
    ],
)
def test_a_schedule_is_changed_through_the_entrance_of_its_own_queue(
    shared: Desk, action: str, fields: dict[str, Any]
) -> None:
    shared.body("CreateSchedule", **SCHEDULE, spec={**SPEC, "queue": "prod"})
    assert (
        refused(shared, action, name="nightly", **fields)
        == f"the schedule nightly belongs to the queue prod; {ELSEWHERE}"
    )
    assert "nightly belongs to the queue prod" in refused(shared, "CreateSchedule", **SCHEDULE, spec=SPEC)
    assert through(shared, action, "q-prod", name="nightly", **fields)["statusCode"] == 200


def test_the_runs_of_a_schedule_are_of_the_queue_that_it_came_through(shared: Desk) -> None:
    let(shared, "CreateSchedule", **SCHEDULE, spec=SPEC)
    run_id = let(shared, "RunScheduleNow", name="nightly")["runId"]
    shared.fold_in()
    assert shared.state.runs[run_id].terms.queue == "research"
    changed = {**SPEC, "priority": 2}
    let(shared, "UpdateSchedule", name="nightly", revision=1, spec=changed)
    assert shared.body("DescribeSchedule", name="nightly")["spec"] == {**changed, "queue": "research"}
    assert let(shared, "DeleteSchedule", name="nightly")["state"] == "DELETED"
    shared.time += 1
    assert through(shared, "CreateSchedule", "q-prod", **SCHEDULE, spec=SPEC)["statusCode"] == 200
