"""Environments through the api: revisions, deployments, changes, and refusals."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest

from argosy.api.environments.actions import TRIES
from argosy.lifecycle.environments import ask, forget
from argosy.lifecycle.targets import begin_deregistering, begin_registering, note, note_failure
from argosy.model import inbox
from argosy.model.actions import DeregisterTargets, RegisterTargets
from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.inbox import EnvironmentRequest
from argosy.model.journal.commit import documents_of_commit
from argosy.model.resources import Resources
from argosy.model.services.environments import DeploymentStatus
from argosy.model.services.targets import TargetPlace, TargetsDeregistered, TargetsRegistered
from argosy.model.setbacks import Act, Subject
from argosy.model.stored import documents
from argosy.model.stored.environments import ENVIRONMENT, MARK_KEPT_S, last_revision_of_deleted
from argosy.model.tasks import TaskStatus
from tests.builders import NOW
from tests.fakes.api import Desk, error_of

SPEC: dict[str, Any] = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web"},
    "resources": {"vcpus": 0.5, "memory": 256},
    "service": {"desired": 3},
}


def created(desk: Desk, **fields: Any) -> dict[str, Any]:
    body = desk.body("CreateEnvironment", spec={**SPEC, **fields})
    desk.time += 1
    return body


def updated(desk: Desk, base: int, command: str, **fields: Any) -> dict[str, Any]:
    desk.time += 1
    spec = {**SPEC, "container": {"image": "argosy/web", "command": [command]}, **fields}
    return desk.body("UpdateEnvironment", name="web", baseRevision=base, spec=spec)


def deployed(desk: Desk, **fields: Any) -> dict[str, Any]:
    desk.time += 1
    body = desk.body("StartDeployment", name="web", **{"clientToken": f"at-{desk.time}", **fields})
    desk.fold_in()
    return body


def forgotten(desk: Desk) -> None:
    """Its tasks have stopped, and the controller has forgotten it."""
    forget(desk.state, "web")
    desk.commit()


def view(desk: Desk) -> dict[str, Any]:
    return desk.body("DescribeEnvironment", name="web")


def refused(desk: Desk, action: str, **fields: Any) -> str:
    answer = desk.ask(action, **fields)
    assert answer["statusCode"] in (400, 404, 409), answer
    error = error_of(answer)
    return "; ".join([error["message"], *(f"{each['path']}: {each['message']}" for each in error["fieldList"])])


def test_a_new_environment_can_be_deployed_before_the_controller_has_taken_it_in(desk: Desk) -> None:
    assert created(desk) == {"name": "web", "revision": 1, "warnings": []}
    body = deployed(desk)
    assert (body["deploying"], body["created"]) == (1, True)
    env = desk.state.environments["web"]
    assert env.deployment is not None
    assert (env.deployment.revision, env.desired) == (1, 3)
    assert [run.id for run in desk.state.runs.values()] == [env.latest.run_id]
    assert desk.wake.calls == 2


def test_a_created_environment_starts_nothing(desk: Desk) -> None:
    created(desk)
    desk.fold_in()
    assert desk.state.runs == {}
    assert (view(desk)["status"], view(desk)["latestRevision"]) == ("CREATED", 1)
    assert view(desk)["createdAt"].startswith("2027-01-15T08:00:00")


def test_a_name_is_given_away_once(desk: Desk) -> None:
    created(desk)
    assert "the environment 'web' already" in refused(desk, "CreateEnvironment", spec=SPEC)
    desk.fold_in()
    desk.time += 3600
    assert "the environment 'web' already" in refused(desk, "CreateEnvironment", spec=SPEC)


def test_a_deleted_environment_gives_its_name_free_and_its_numbers_are_not_used_again(desk: Desk) -> None:
    created(desk)
    desk.fold_in()
    assert desk.body("DeleteEnvironment", name="web")["status"] == "DELETING"
    desk.fold_in()
    assert "is being deleted" in refused(desk, "StartDeployment", name="web")
    forgotten(desk)
    assert "does not exist" in refused(desk, "DescribeEnvironment", name="web")
    assert created(desk)["revision"] == 2


def test_an_update_against_an_old_base_is_refused_with_the_newest(desk: Desk) -> None:
    created(desk)
    assert updated(desk, 1, "two")["revision"] == 2
    spec = {**SPEC, "container": {"image": "argosy/web", "command": ["three"]}}
    said = refused(desk, "UpdateEnvironment", name="web", baseRevision=1, spec=spec)
    assert "the newest revision of web is 2" in said


def test_an_update_that_changes_nothing_makes_no_revision(desk: Desk) -> None:
    created(desk)
    body = desk.body("UpdateEnvironment", name="web", baseRevision=1, spec=SPEC)
    assert (body["revision"], body["created"]) == (1, False)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "batch", "array": {"size": 1}, "service": None}, "spec.kind: must be service"),
        ({"service": {"desired": -1}}, "service.desired: must be at least 0"),
        ({"service": None}, "service: is required with kind: service"),
        ({"array": {"size": 2}}, "array: is not possible with kind: service"),
        ({"timeout": {"attemptDurationSeconds": 5}}, "timeout: is not possible"),
        ({"capacity": {"budgetUsd": 5}}, "capacity.budgetUsd: is not possible"),
        ({"service": {"desired": 2, "update": {"maxOverPercent": 0}}}, "service.update: could never replace a task"),
    ],
)
def test_what_is_no_service_is_refused(desk: Desk, fields: dict[str, Any], said: str) -> None:
    spec = {name: value for name, value in {**SPEC, **fields}.items() if value is not None}
    assert said in refused(desk, "CreateEnvironment", spec=spec)
    assert desk.store.read_partition(inbox.INBOX) == {}


def test_an_update_keeps_the_name(desk: Desk) -> None:
    created(desk)
    said = refused(desk, "UpdateEnvironment", name="web", baseRevision=1, spec={**SPEC, "name": "other"})
    assert "spec.name: must be the environment's: web" in said


def test_a_service_cannot_be_submitted_and_its_run_neither_cancelled_nor_retried(desk: Desk) -> None:
    assert "argosy env create" in refused(desk, "SubmitRun", spec=SPEC)
    assert "a service never ends" in refused(desk, "PlanRun", spec=SPEC)
    created(desk)
    deployed(desk)
    run_id = desk.state.environments["web"].latest.run_id
    assert "argosy env scale web 0" in refused(desk, "CancelRun", runId=run_id)
    assert "argosy env delete web" in refused(desk, "RetryRun", runId=run_id)
    assert "argosy env delete web" in refused(desk, "UpdateRun", runId=run_id, changes={"priority": 5})


def test_the_same_token_deploys_once(desk: Desk) -> None:
    created(desk)
    assert deployed(desk, clientToken="t")["created"] is True
    assert deployed(desk, clientToken="t")["created"] is False
    assert len(desk.state.environments["web"].deployments) == 1


def test_a_token_that_has_deployed_another_revision_is_refused_where_one_is_named(desk: Desk) -> None:
    created(desk)
    deployed(desk, clientToken="t")
    updated(desk, 1, "two")
    said = refused(desk, "StartDeployment", name="web", revision=2, clientToken="t")
    assert said == "this clientToken was already used for revision 1"
    assert deployed(desk, clientToken="t")["deploying"] == 1  # a request without one asks again
    assert len(desk.state.environments["web"].deployments) == 1


def test_a_roll_back_that_is_asked_for_again_is_the_same_one(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    env = desk.state.environments["web"]
    env.deployments[0].status, env.completed = DeploymentStatus.COMPLETED, 1
    desk.state.changed_environments.add("web")
    updated(desk, 1, "two")
    deployed(desk)
    desk.time += 1
    for created_now in (True, False):
        answer = desk.body("RollBackDeployment", name="web", clientToken="t")
        assert (answer["deploying"], answer["created"]) == (1, created_now)
        desk.fold_in()
    assert [each.revision for each in env.deployments] == [1, 2, 1]


def test_a_revision_that_the_deployment_does_not_allow_any_more_is_not_deployed(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    desk.api.limits = replace(desk.api.limits, shapes={"t3.nano": Resources(128, 128, 0)})
    before = dict(desk.store.items)
    assert "resources" in refused(desk, "StartDeployment", name="web", clientToken="t")
    assert desk.store.items == before


def test_a_change_for_which_there_is_no_place_left_is_refused_and_not_lost(desk: Desk) -> None:
    created(desk)
    for _ in range(TRIES):
        desk.body("FreezeEnvironment", name="web")
    said = refused(desk, "FreezeEnvironment", name="web")
    assert said == "web is being changed by other requests: try again"


def test_a_deployment_of_what_a_user_has_frozen_is_accepted_and_waits(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    desk.time += 1
    desk.body("FreezeEnvironment", name="web", reason="holidays")
    desk.fold_in()
    assert deployed(desk)["frozenByUser"] is True
    shown = view(desk)
    assert (shown["status"], shown["statusReason"], len(shown["deployments"])) == ("FROZEN", "holidays", 2)


def test_one_that_is_being_deleted_is_shown_until_nothing_of_it_is_left(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    desk.time += 1
    desk.body("DeleteEnvironment", name="web")
    desk.fold_in()
    assert view(desk)["status"] == "DELETING"
    forgotten(desk)
    assert "does not exist" in refused(desk, "DescribeEnvironment", name="web")


def test_a_later_deployment_supersedes_the_one_under_way(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    updated(desk, 1, "two")
    deployed(desk)
    first, second = view(desk)["deployments"]
    assert (first["status"], second["revision"]) == ("SUPERSEDED", 2)


def test_one_goes_back_to_what_was_completed_before(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    assert "no earlier revision whose deployment completed" in refused(desk, "RollBackDeployment", name="web")
    env = desk.state.environments["web"]
    env.deployments[0].status, env.completed = DeploymentStatus.COMPLETED, 1
    desk.state.changed_environments.add("web")
    updated(desk, 1, "two")
    deployed(desk)
    desk.time += 1
    assert desk.body("RollBackDeployment", name="web")["deploying"] == 1


def test_revisions_that_there_are_not_are_refused(desk: Desk) -> None:
    created(desk)
    assert "web has no revision 7" in refused(desk, "StartDeployment", name="web", revision=7)
    assert "'nothing' does not exist" in refused(desk, "StartDeployment", name="nothing")


def test_only_a_deployment_under_way_is_stopped_and_it_freezes(desk: Desk) -> None:
    created(desk)
    assert "no deployment of web is in progress" in refused(desk, "StopDeployment", name="web")
    deployed(desk)
    desk.time += 1
    desk.body("StopDeployment", name="web", reason="a bad idea")
    desk.fold_in()
    shown = view(desk)
    assert (shown["status"], shown["deployments"][0]["status"]) == ("FROZEN", "STOPPED")
    assert shown["statusReason"] == "deployment 1 was stopped"


def test_scaling_freezing_and_thawing_are_taken_in(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    desk.time += 1
    assert desk.body("ScaleEnvironment", name="web", desired=7)["desired"] == 7
    desk.body("FreezeEnvironment", name="web", reason="holidays")
    desk.fold_in()
    assert (view(desk)["desired"], view(desk)["status"], view(desk)["statusReason"]) == (7, "FROZEN", "holidays")
    desk.time += 1
    desk.body("ThawEnvironment", name="web")
    desk.fold_in()
    assert view(desk)["status"] == "IN_PROGRESS"


def test_the_list_and_the_specs(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    [listed] = desk.body("ListEnvironments")["environments"]
    assert listed == view(desk)
    assert desk.body("ListEnvironments")["nextToken"] is None
    shown = desk.body("DescribeEnvironment", name="web", include=["specs"])
    assert shown["revisions"][0]["spec"]["service"]["desired"] == 3


def test_the_list_comes_in_pages(desk: Desk) -> None:
    for name in ("web", "api", "worker"):
        created(desk, name=name)
    desk.fold_in()
    first = desk.body("ListEnvironments", maxResults=2)
    last = desk.body("ListEnvironments", maxResults=2, nextToken=first["nextToken"])
    assert [[each["name"] for each in page["environments"]] for page in (first, last)] == [["api", "web"], ["worker"]]
    assert last["nextToken"] is None
    assert "nextToken: is not a token" in refused(desk, "ListEnvironments", nextToken="anything at all")


def test_the_list_may_be_of_names_that_begin_alike(desk: Desk) -> None:
    for name in ("web", "web-blue", "api"):
        created(desk, name=name)
    desk.fold_in()
    assert [each["name"] for each in desk.body("ListEnvironments", prefix="web")["environments"]] == ["web", "web-blue"]
    assert desk.body("ListEnvironments", prefix="other") == {"environments": [], "nextToken": None}
    assert "prefix" in refused(desk, "ListEnvironments", prefix="Web*")


def test_healthy_tasks_are_those_that_have_run_for_long_enough(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    state, run = desk.state, next(iter(desk.state.runs.values()))
    for index, seconds in ((0, 100.0), (1, 2.0)):
        run.tasks.set(index, status=TaskStatus.RUNNING, attempts=1)
        row = state.attempts.add(run.number, AttemptKey(run.id, index, 1, 0), 1, "i-0000000000000000a", NOW)
        state.attempts.name_task(row, f"f{index}")
        state.attempts.set(row, status=AttemptStatus.RUNNING, started_at=desk.time - seconds)
    state.next_wave = 2
    state.losses.blind = True  # the instance is not known here
    state.changed_runs.add(run.id)
    desk.commit()
    shown = view(desk)
    assert (shown["healthy"], shown["running"], shown["outdated"]) == (1, 2, 0)


def test_an_environment_that_cannot_be_read_is_left_out_and_named(desk: Desk) -> None:
    created(desk)
    desk.fold_in()
    desk.store.items[documents.STATE, ENVIRONMENT + "web"] = b"torn"
    state = documents.restore(desk.store.version(), desk.store.read_partition(documents.STATE), {})
    assert state.environments == {}
    assert [each.document for each in state.losses.found] == ["environment web"]


def test_a_token_that_comes_again_is_answered_with_what_it_deployed(desk: Desk) -> None:
    created(desk)
    deployed(desk, clientToken="mine")
    updated(desk, 1, "serve2")
    again = deployed(desk, clientToken="mine")
    assert (again["deploying"], again["created"]) == (1, False)


def test_a_damaged_environment_is_reported_in_one_sentence(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    desk.store.items[documents.STATE, ENVIRONMENT + "web"] = b"junk"
    assert "corrupt" in refused(desk, "DescribeEnvironment", name="web")
    assert "corrupt" in refused(desk, "DeleteEnvironment", name="web")


def test_a_recreated_environment_can_be_deployed_before_the_controller_has_taken_it_in(desk: Desk) -> None:
    created(desk)
    desk.fold_in()
    desk.body("DeleteEnvironment", name="web")
    desk.fold_in()
    assert "is being deleted: create it when its tasks have stopped" in refused(desk, "CreateEnvironment", spec=SPEC)
    forgotten(desk)
    assert created(desk)["revision"] == 2
    assert "the environment 'web' already" in refused(desk, "CreateEnvironment", spec=SPEC)
    assert deployed(desk)["deploying"] == 2
    assert view(desk)["status"] == "IN_PROGRESS"


def test_an_update_that_comes_too_late_brings_no_environment_back(desk: Desk) -> None:
    created(desk)
    desk.fold_in()
    desk.body("DeleteEnvironment", name="web")
    updated(desk, 1, "two")
    desk.fold_in()
    forgotten(desk)
    assert "does not exist" in refused(desk, "StartDeployment", name="web")
    assert created(desk)["revision"] == 3


def test_one_that_overtakes_the_deletion_does_not_either(desk: Desk) -> None:
    created(desk)
    desk.fold_in()
    desk.body("DeleteEnvironment", name="web")
    updated(desk, 1, "two")
    ask(desk.state, EnvironmentRequest("web", desk.time, "delete"))
    forgotten(desk)
    desk.fold_in()
    assert "does not exist" in refused(desk, "StartDeployment", name="web")


def test_the_view_has_the_number_of_registered_tasks_and_why_aws_refuses_one(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    first, *others = (TargetPlace("web", f"i-{number}", 32768) for number in range(3))
    env = desk.state.environments["web"]
    begin_registering(desk.state, RegisterTargets("web", (first, *others)))
    note(desk.state, TargetsRegistered("web", (first, *others)), desk.time)
    desk.commit()
    assert view(desk)["registeredTargets"] == 3
    begin_deregistering(desk.state, DeregisterTargets("web", (first,)), desk.time)
    note(desk.state, TargetsDeregistered("web", (first,)), desk.time)
    note_failure(desk.state, Subject(Act.TARGETS_IN, "web"), "target group 'web': AccessDenied")
    desk.commit()
    assert (view(desk)["registeredTargets"], view(desk)["statusReason"]) == (2, "target group 'web': AccessDenied")
    assert len(env.targets) == 3


def test_the_mark_of_a_deletion_expires_and_its_name_stays_free(desk: Desk) -> None:
    created(desk)
    desk.fold_in()
    forget(desk.state, "web")
    puts, expires_at = documents_of_commit(desk.state, desk.time)
    key = (documents.STATE, ENVIRONMENT + "web")
    assert expires_at[key] == desk.time + MARK_KEPT_S
    assert last_revision_of_deleted(puts[key]) == 1
    desk.commit()
    desk.store.items.pop(key)
    desk.time += MARK_KEPT_S + 60
    assert "does not exist" in refused(desk, "DescribeEnvironment", name="web")
    assert created(desk)["revision"] == 2


def test_what_an_earlier_version_deleted_stays_deleted(desk: Desk) -> None:
    created(desk)
    desk.fold_in()
    forgotten(desk)
    desk.store.items[documents.STATE, ENVIRONMENT + "web"] = zlib.compress(b"null")
    assert "does not exist" in refused(desk, "DescribeEnvironment", name="web")


def test_left_tasks_stay_until_they_are_taken_over_or_end(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    desk.time += 1
    assert desk.body("DeleteEnvironment", name="web", tasks="leave")["status"] == "LEFT"
    desk.fold_in()
    assert (view(desk)["status"], view(desk)["statusReason"]) == (
        "LEFT", "the environment was deleted, and its tasks were kept",
    )  # fmt: skip
    assert [each["name"] for each in desk.body("ListEnvironments")["environments"]] == ["web"]
    said = refused(desk, "ScaleEnvironment", name="web", desired=2)
    assert "create it again to take them over, or delete it with its tasks" in said
    desk.time += 1
    assert desk.body("DeleteEnvironment", name="web")["status"] == "DELETING"


def test_what_was_left_is_taken_over_by_the_one_that_is_created_again(desk: Desk) -> None:
    created(desk)
    deployed(desk)
    [run_id] = desk.state.environments["web"].runs()
    desk.time += 1
    desk.body("DeleteEnvironment", name="web", tasks="leave")
    desk.fold_in()
    desk.time += 1
    assert created(desk)["revision"] == 2
    assert deployed(desk)["deploying"] == 2
    env = desk.state.environments["web"]
    assert (env.latest.run_id, env.runs(), env.left, env.frozen_reason) == (run_id, [run_id], False, "")
