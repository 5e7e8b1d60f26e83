"""Environments after many revisions, losses, failures and pauses: nothing is lost, miscounted or kept awake."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from argosy.engine.bounds import touched
from argosy.engine.report import figures_of
from argosy.engine.steps import is_idle
from argosy.lifecycle import environments, services
from argosy.lifecycle.accounts import Account, AttemptEnd
from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model.actions import ForgetEnvironment, Launch, NoteDeployment
from argosy.model.attempts import StopCause
from argosy.model.costs import Work
from argosy.model.failure_groups import note_failure
from argosy.model.inbox import EnvironmentRequest
from argosy.model.journal.commit import documents_of_commit
from argosy.model.runs import Run
from argosy.model.services.environments import MOST_REVISIONS, DeploymentStatus, Environment
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.environments import ENVIRONMENT
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from argosy.scheduler.due import next_due
from argosy.scheduler.services.environments import rollouts
from argosy.spec.parse import parse_spec, to_json
from tests.builders import (
    NOW,
    container_instance,
    fleet,
    host,
    moment_of,
    prepared,
    state_with,
    submit_request,
    task,
    told,
)

SPEC = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web", "command": ["serve"]},
    "resources": {"vcpus": 0.5, "memory": 512},
    "service": {"desired": 2},
}
FORM = to_json(parse_spec(SPEC))


def ask(state: State, change: str, now: float = NOW, **fields: Any) -> Environment:
    environments.ask(state, EnvironmentRequest("web", now, change, **fields))
    return state.environments["web"]


def deploy(state: State, revision: int, now: float = NOW) -> Environment:
    run_id = f"web-261121-0627{revision:02d}-{int(now - NOW):04d}"
    submit = submit_request(run_id, now, FORM, 2, "argosy/web", f"s3://results/{run_id}/", False)
    return ask(state, "deploy", now, revision=revision, token=f"{revision}@{now}", submit=submit)


def deployed() -> State:
    state = state_with()
    ask(state, "create", revision=1, desired=2)
    deploy(state, 1)
    return state


def only_run(state: State) -> Run:
    [run] = state.runs.values()
    return run


def test_revisions_that_are_never_deployed_do_not_push_out_the_one_that_runs() -> None:
    state = deployed()
    env = state.environments["web"]
    env.completed = 1
    for number in range(2, MOST_REVISIONS + 12):
        ask(state, "update", revision=number)
    assert len(env.revisions) == MOST_REVISIONS
    assert env.target is not None
    assert env.runs() == [only_run(state).id]
    assert env.latest.number == MOST_REVISIONS + 11


def test_a_revision_that_is_not_remembered_any_more_can_be_deployed() -> None:
    state = deployed()
    env = state.environments["web"]
    for number in range(2, MOST_REVISIONS + 12):
        ask(state, "update", revision=number)
    deploy(state, 3, NOW + 1)
    assert (env.target, len(env.revisions)) == (env.revision(3), MOST_REVISIONS)
    assert env.target is not None


def test_a_revision_whose_run_is_suspended_keeps_it() -> None:
    state = deployed()
    run = only_run(state)
    suspend(state, bare_record(run), "a fault of ours", NOW)
    env = deploy(state, 1, NOW + 1)
    assert env.runs() == [run.id]
    assert state.runs == {}


@pytest.mark.parametrize("cause", [StopCause.INTERRUPTED, StopCause.STUCK])
def test_a_task_that_ends_well_because_its_instance_goes_is_a_loss_and_no_failure(cause: StopCause) -> None:
    state = deployed()
    run, env = only_run(state), state.environments["web"]
    run.tasks.set(0, seconds=1.0)
    seen = task(1, "STOPPED", exit_code=0)
    services.settle(state, run, AttemptEnd(0, Account.SUCCESS, cause, "", seen, None), NOW)
    assert (run.tasks["losses"][0], run.tasks["user_failures"][0], run.tasks["not_before"][0]) == (1, 0, NOW)
    assert env.deployment is not None
    assert env.deployment.failures == 0


@pytest.mark.parametrize(
    ("cause", "work"),
    [(StopCause.INTERRUPTED, Work.REDONE), (StopCause.STUCK, Work.REDONE), (StopCause.NONE, Work.FAILED)],
)
def test_a_task_stopped_for_its_instance_is_restarted_whatever_its_exit_code(cause: StopCause, work: Work) -> None:
    run = only_run(deployed())
    run.tasks.set(0, seconds=1.0)
    assert services.work(run, AttemptEnd(0, Account.SUCCESS, cause, "", task(1, "STOPPED", exit_code=0), None)) is work


def test_a_deployment_that_fails_names_its_latest_failure_and_not_the_newest_kind() -> None:
    state = deployed()
    run, env = only_run(state), state.environments["web"]
    assert env.deployment is not None
    run.reasons += ["exit code 3", "exit code 4"]
    note_failure(run.failure_groups, 1, 3, 0, NOW)
    note_failure(run.failure_groups, 2, 4, 0, NOW + 1)
    note_failure(run.failure_groups, 1, 3, 0, NOW + 2)
    env.deployment.failures = 3
    [note] = [each for each in rollouts(moment_of(state)) if isinstance(each, NoteDeployment)]
    assert note.reason == "3 of its tasks failed before one more became healthy: exit code 3"


def test_what_ends_with_its_host_is_a_loss_whatever_its_exit_code() -> None:
    state = deployed()
    run = only_run(state)
    seen = task(1, "STOPPED", exit_code=0, stop_code="TerminationNotice")
    services.settle(state, run, AttemptEnd(0, Account.SUCCESS, StopCause.NONE, "", seen, None), NOW)
    assert (run.tasks["losses"][0], run.tasks["user_failures"][0]) == (1, 0)


@pytest.mark.parametrize(("account", "failures"), [(Account.USER, 1), (Account.START, 1), (Account.BUSY, 0)])
def test_a_busy_registry_says_nothing_about_a_revision(account: Account, failures: int) -> None:
    state = deployed()
    run, env = only_run(state), state.environments["web"]
    assert env.deployment is not None
    services.settle(state, run, AttemptEnd(0, account, StopCause.NONE, "", task(1, "STOPPED"), None), NOW)
    assert (env.deployment.failures, run.tasks["user_failures"][0]) == (failures, 1)


def test_failures_of_the_revision_before_do_not_count_against_the_deployment() -> None:
    state = deployed()
    before, env = only_run(state), state.environments["web"]
    newer = {**FORM, "container": {"image": "argosy/web", "command": ["serve", "faster"]}}
    submit = submit_request("web-261121-062799-k3f9", NOW, newer, 2, "argosy/web", "s3://results/newer/", False)
    ask(state, "deploy", revision=2, token="newer", submit=submit)
    for run_id, failures in ((before.id, 0), ("web-261121-062799-k3f9", 1)):
        end = AttemptEnd(0, Account.USER, StopCause.NONE, "", task(1, "STOPPED", exit_code=3), None)
        services.settle(state, state.runs[run_id], end, NOW)
        assert env.deployment is not None
        assert (env.deployment.revision, env.deployment.failures) == (2, failures)


def test_the_progress_clock_pauses_while_instances_are_awaited() -> None:
    state = deployed()
    run, env = only_run(state), state.environments["web"]
    assert env.deployment is not None
    env.deployment.status, env.deployment.reason = DeploymentStatus.WAITING, "no capacity"
    notes = [each for each in rollouts(moment_of(state, now=NOW + 5_000)) if isinstance(each, NoteDeployment)]
    assert run.waiting == ""
    assert [(each.status, each.is_progress) for each in notes] == [(DeploymentStatus.IN_PROGRESS, True)]


def test_a_deployment_without_progress_is_stuck_after_its_time_and_says_so() -> None:
    state = deployed()
    deployment, service = state.environments["web"].deployment, only_run(state).terms.service
    assert deployment is not None
    assert service is not None

    def noted(after_s: float) -> list[tuple[DeploymentStatus, str]]:
        at = deployment.progress_at + after_s
        notes = [each for each in rollouts(moment_of(state, now=at)) if isinstance(each, NoteDeployment)]
        return [(each.status, each.reason) for each in notes]

    assert noted(service.progress_s - 1) == []
    said = f"no progress for {service.progress_s:.0f} s: 0 of 2 are healthy"
    assert noted(service.progress_s) == [(DeploymentStatus.STUCK, said)]


def test_tasks_that_are_healthy_now_and_then_do_not_keep_the_breaker_from_counting() -> None:
    state = deployed()
    env = state.environments["web"]
    assert env.deployment is not None
    env.deployment.failures = 2
    told = []
    for healthy in (1, 0, 1):
        environments.note_deployment(state, NoteDeployment("web", DeploymentStatus.IN_PROGRESS, "", healthy, 0), NOW)
        told.append(env.deployment.failures)
        env.deployment.failures = 2
    assert told == [0, 2, 2]
    environments.note_deployment(state, NoteDeployment("web", DeploymentStatus.IN_PROGRESS, "", 2, 0), NOW)
    assert env.deployment.failures == 0


def test_a_frozen_environment_without_tasks_lets_the_controller_rest() -> None:
    state = deployed()
    env = state.environments["web"]
    assert env.deployment is not None
    ask(state, "freeze")  # with its deployment under way
    assert is_idle(state)
    env.deployment.status, env.frozen_reason = DeploymentStatus.FAILED, "deployment 1 failed"
    assert is_idle(state)
    env.frozen_reason = ""
    assert not is_idle(state)


@pytest.mark.parametrize("status", [DeploymentStatus.FAILED, DeploymentStatus.STOPPED])
def test_thawing_after_a_failure_is_a_deployment_whose_breaker_is_closed(status: DeploymentStatus) -> None:
    state = deployed()
    env = state.environments["web"]
    assert env.deployment is not None
    env.deployment.status, env.deployment.failures, env.frozen_reason = status, 3, "deployment 1 failed"
    ask(state, "thaw", NOW + 60)
    again = env.deployments[-1]
    assert (again.number, again.revision, again.status, again.failures, again.started_at) == (
        2, 1, DeploymentStatus.IN_PROGRESS, 0, NOW + 60
    )  # fmt: skip


def test_thawing_what_was_complete_or_is_under_way_begins_no_deployment() -> None:
    state = deployed()
    env = state.environments["web"]
    ask(state, "freeze")
    ask(state, "thaw", NOW + 900)
    assert env.deployment is not None
    assert (len(env.deployments), env.deployment.progress_at) == (1, NOW + 900)
    env.deployment.status = DeploymentStatus.COMPLETED
    ask(state, "freeze")
    ask(state, "thaw")
    assert len(env.deployments) == 1


def test_a_deployment_of_what_a_user_has_frozen_waits_for_the_thaw() -> None:
    state = deployed()
    ask(state, "freeze", reason="looking at it")
    env = deploy(state, 1, NOW + 60)
    assert [each.status for each in env.deployments] == [DeploymentStatus.SUPERSEDED, DeploymentStatus.IN_PROGRESS]
    assert (env.frozen_reason, env.frozen_by_user) == ("looking at it", True)
    ask(state, "thaw", NOW + 120)
    assert env.deployment is not None
    assert (env.frozen_reason, env.frozen_by_user, env.deployment.progress_at) == ("", False, NOW + 120)


@pytest.mark.parametrize("back_to", [0, 1])
def test_what_fails_or_is_stopped_while_it_is_frozen_stays_so_for_the_users_reason(back_to: int) -> None:
    state = deployed()
    env = state.environments["web"]
    ask(state, "freeze", reason="looking at it")
    environments.note_deployment(
        state, NoteDeployment("web", DeploymentStatus.FAILED, "exit code 3", 0, 0, rolls_back_to=back_to), NOW
    )
    assert env.frozen_reason == "looking at it"
    deploy(state, 1, NOW + 60)
    ask(state, "stop", NOW + 90)
    assert (env.frozen_reason, env.frozen_by_user) == ("looking at it", True)


def test_a_failed_revision_is_redeployed_without_a_thaw_unless_a_user_has_frozen_it_too() -> None:
    state = deployed()
    env = state.environments["web"]
    failed = NoteDeployment("web", DeploymentStatus.FAILED, "exit code 3", 0, 0)
    environments.note_deployment(state, failed, NOW)
    assert env.frozen_reason == "deployment 1 failed: exit code 3"
    deploy(state, 1, NOW + 60)
    assert env.frozen_reason == ""
    environments.note_deployment(state, failed, NOW + 90)
    ask(state, "freeze")
    deploy(state, 1, NOW + 120)
    assert env.frozen_reason == "deployment 2 failed: exit code 3"


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"status": DeploymentStatus.STUCK}, 1),
        ({"status": DeploymentStatus.FAILED}, 1),
        ({"status": DeploymentStatus.COMPLETED, "failures": 3}, 1),
        ({"status": DeploymentStatus.FAILED, "deleting": True}, 0),
        ({"status": DeploymentStatus.FAILED, "left": True}, 0),
    ],
)
def test_a_tick_counts_the_services_that_need_attention(changes: dict[str, Any], count: int) -> None:
    state = deployed()
    env = state.environments["web"]
    assert env.deployment is not None
    env.deployment.status = changes.pop("status", env.deployment.status)
    for name, value in changes.items():
        setattr(env, name, value)
    assert figures_of(state, [], NOW)["services_in_trouble"] == count


def test_what_is_rolled_back_at_once_is_counted_in_the_tick_that_does_so() -> None:
    state = deployed()
    failed = NoteDeployment("web", DeploymentStatus.FAILED, "exit code 3", 0, 0, rolls_back_to=1)
    environments.note_deployment(state, failed, NOW)
    assert figures_of(state, [failed], NOW)["services_in_trouble"] == 1
    assert figures_of(state, [], NOW)["services_in_trouble"] == 0


def test_a_freeze_of_an_earlier_version_has_no_user() -> None:
    env = deployed().environments["web"]
    stored = {name: value for name, value in env.to_json().items() if name != "frozen_by_user"}
    assert Environment.from_json({**stored, "frozen_reason": "deployment 1 failed"}).frozen_by_user is False


def test_a_controller_does_not_stay_for_a_deployment_that_is_frozen() -> None:
    """It is not thawed for weeks: until then nothing is due."""
    state = deployed()
    run, env = only_run(state), state.environments["web"]
    told(state, prepared(run.id))
    for each in rollouts(moment_of(state)):
        environments.note_deployment(state, each, NOW) if isinstance(each, NoteDeployment) else None
    assert next_due(moment_of(state)) == NOW
    ask(state, "freeze")
    assert next_due(moment_of(state)) > NOW + 3600
    assert env.deployment is not None
    assert not env.deployment.has_ended


def test_a_controller_does_not_stay_for_an_environment_that_was_never_deployed() -> None:
    state = state_with()
    ask(state, "create", revision=1, desired=2)
    assert next_due(moment_of(state)) == math.inf


def test_a_commit_counts_on_the_record_of_each_environment_that_an_action_changes() -> None:
    state = deployed()
    note = NoteDeployment("web", DeploymentStatus.IN_PROGRESS, "", 0, 0)
    assert len(touched(note, state)) == 1
    assert touched(ForgetEnvironment("web"), state) == touched(note, state)


@pytest.mark.parametrize("change", [{"env": "desired", "to": 0}, {"env": "frozen_reason", "to": "holidays"}])
def test_what_is_not_wanted_any_more_is_not_launched_in_the_tick_that_says_so(change: dict[str, Any]) -> None:
    state = deployed()
    run, env = only_run(state), state.environments["web"]
    told(state, prepared(run.id), fleet(), host(1), container_instance(1))
    run.tasks.set_many(np.arange(2), status=TaskStatus.PENDING)
    assert len([each for each in decide(moment_of(state)) if isinstance(each, Launch)]) == 2
    setattr(env, change["env"], change["to"])
    assert not [each for each in decide(moment_of(state)) if isinstance(each, Launch)]


@pytest.mark.parametrize("change", ["create", "update", "deploy", "delete"])
def test_a_record_that_cannot_be_read_is_never_overwritten(change: str) -> None:
    state = deployed()
    items, _ = documents_of_commit(state, NOW)
    place = documents.STATE, ENVIRONMENT + "web"
    torn = {key: body for (partition, key), body in {**items, place: b"torn"}.items() if partition == documents.STATE}
    state = documents.restore(1, torn, {})
    environments.ask(state, EnvironmentRequest("web", NOW, change, revision=7))
    assert state.environments == {}
    assert place not in documents_of_commit(state, NOW)[0]
