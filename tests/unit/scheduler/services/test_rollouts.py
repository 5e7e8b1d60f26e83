"""Which tasks of services are stopped in the same tick?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model.actions import ForgetEnvironment, NoteDeployment, NoteRecovered, SetSlots, StopAttempt, Terminate
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.services.environments import CALM_S, DeploymentStatus, Environment, Revision, ServiceDeployment
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from argosy.scheduler.due import next_due
from argosy.scheduler.services.deployments import SUSPENDED
from argosy.scheduler.services.environments import given_up_by, rollouts
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.terms import terms_of_form
from tests.builders import CELL, NOW, container_instance, instance_id, spec, submit_request

POLICY = Policy()
RUN, NEXT = "web-261121-062733-k3f9", "web-261121-062744-k3f9"
DRAINED_S = POLICY.drain_patience_s


def serving(tasks: int, desired: int) -> State:
    """`tasks` healthy tasks, each on its own instance."""
    state = State()
    form = spec(kind="service", name="web", service={"desired": desired}, array={"size": tasks})
    run = state.take_in(submit_request(RUN, NOW, form, tasks, "argosy/web", "s3://results/x/", False), tasks)
    env = state.environments["web"] = Environment.new("web", Revision(1, NOW), desired)
    env.revisions[0].run_id, env.completed = RUN, 1
    env.deployments.append(ServiceDeployment(1, 1, NOW, status=DeploymentStatus.COMPLETED))
    for index in range(tasks):
        name = instance_id(index)
        arn = container_instance(index).arn
        state.instances[name] = Instance(
            name, CELL, "c5.large", f"{CELL}a", status=InstanceStatus.ACTIVE, owned=True, agent_connected=True, arn=arn
        )
        run.tasks.set(index, status=TaskStatus.RUNNING, attempts=1)
        row = state.attempts.add(run.number, AttemptKey(RUN, index, 1, 0), 1, name, NOW)
        state.attempts.name_task(row, f"{index:032x}")
        state.attempts.set(row, status=AttemptStatus.RUNNING, started_at=NOW)
    return state


def stopped(state: State, now: float) -> dict[int, StopCause]:
    moment = Moment(state, {}, now, POLICY)
    return {each.key.index: each.cause for each in decide(moment) if isinstance(each, StopAttempt)}


def test_one_that_is_not_wanted_any_more_is_stopped() -> None:
    assert list(stopped(serving(3, 2), NOW + DRAINED_S).values()) == [StopCause.REPLACED]


def test_a_task_that_ends_with_its_drained_instance_is_no_reason_to_stop_another_one_in_the_same_tick() -> None:
    state = serving(3, 2)
    drained = state.instances[instance_id(0)]
    drained.status, drained.draining_since = InstanceStatus.DRAINING, NOW
    assert stopped(state, NOW + DRAINED_S) == {0: StopCause.STUCK}


def test_in_the_tick_that_gives_a_revision_up_nothing_is_stopped_for_it() -> None:
    state = serving(3, 2)
    env = state.environments["web"]
    env.deployments[-1] = ServiceDeployment(1, 1, NOW, status=DeploymentStatus.IN_PROGRESS, failures=3, most_healthy=3)
    acts = rollouts(Moment(state, {}, NOW + DRAINED_S, POLICY))
    assert [each.status for each in acts if isinstance(each, NoteDeployment)] == [DeploymentStatus.FAILED]
    assert not [each for each in acts if isinstance(each, StopAttempt)]


def test_a_deployment_goes_on_if_one_more_task_is_healthy_in_the_tick_that_counts_its_last_failure() -> None:
    state = serving(3, 2)
    deployment = ServiceDeployment(1, 1, NOW, status=DeploymentStatus.IN_PROGRESS, failures=3, most_healthy=1)
    state.environments["web"].deployments[-1] = deployment
    acts = rollouts(Moment(state, {}, NOW + DRAINED_S, POLICY))
    assert [each.status for each in acts if isinstance(each, NoteDeployment)] == [DeploymentStatus.IN_PROGRESS]


def test_in_the_tick_that_gives_a_revision_up_its_pending_tasks_do_not_start() -> None:
    state = serving(3, 3)
    env, row = state.environments["web"], int(state.attempts.of_run(state.runs[RUN].number)[2])
    state.attempts.remove(row)
    state.runs[RUN].tasks.set(2, status=TaskStatus.PENDING)
    env.deployments[-1] = ServiceDeployment(1, 1, NOW, status=DeploymentStatus.IN_PROGRESS, failures=3, most_healthy=3)
    acts = rollouts(Moment(state, {}, NOW + DRAINED_S, POLICY))
    assert [each for each in acts if isinstance(each, SetSlots)] == [SetSlots(RUN, parked=(2,))]
    assert given_up_by(acts) == {RUN}


def test_what_failed_again_and_again_is_well_when_nothing_has_failed_for_a_while_and_that_is_known_before() -> None:
    state = serving(3, 3)
    env = state.environments["web"]
    env.failures, env.failed_at, state.runs[RUN].task_definition = 3, NOW, "a definition"

    def told(now: float) -> list[object]:
        return rollouts(Moment(state, {}, now, POLICY))

    before = NOW + CALM_S - 1
    assert not told(before)
    assert before < next_due(Moment(state, {}, before, POLICY)) <= NOW + CALM_S
    assert told(NOW + CALM_S) == [NoteRecovered("web")]
    env.desired = 4
    assert NoteRecovered("web") not in told(NOW + CALM_S), "one of them is not there"


def with_one_suspended(run_id: str) -> State:
    """Revision 2 is being deployed over three tasks of revision 1, and the controller has failed at the run."""
    state = serving(3, 3)
    env = state.environments["web"]
    form = spec(kind="service", name="web", service={"desired": 3}, array={"size": 3})
    run = state.take_in(
        submit_request(NEXT, NOW, form, 3, "argosy/web", "s3://results/y/", False), 3, TaskStatus.CANCELLED
    )
    env.revisions.append(Revision(2, NOW, run.id))
    env.deployments.append(ServiceDeployment(2, 2, NOW, progress_at=NOW))
    suspend(state, bare_record(state.runs[run_id]), "ZeroDivisionError", NOW)
    return state


def test_with_a_suspended_run_of_an_earlier_revision_the_others_continue_and_its_tasks_count() -> None:
    state = with_one_suspended(RUN)
    moment = Moment(state, {}, NOW + DRAINED_S, POLICY)
    told = rollouts(moment)
    [started] = [each for each in told if isinstance(each, SetSlots)]
    [note] = [each for each in told if isinstance(each, NoteDeployment)]
    assert (started.run_id, started.wanted) == (NEXT, (0,)), "three of at most four have a place"
    assert (note.status, note.reason) == (DeploymentStatus.WAITING, SUSPENDED)
    assert not [each for each in told if isinstance(each, StopAttempt)]
    for row in state.attempts.of_run(state.suspended[RUN].record.number):
        state.attempts.leave(row, NOW)
    assert [each.wanted for each in rollouts(moment) if isinstance(each, SetSlots)] == [(0, 1, 2)]


def test_if_the_target_run_is_suspended_only_the_reason_changes() -> None:
    [note] = rollouts(Moment(with_one_suspended(NEXT), {}, NOW + DRAINED_S, POLICY))
    assert isinstance(note, NoteDeployment)
    assert (note.status, note.reason) == (DeploymentStatus.WAITING, SUSPENDED)


def test_a_revision_that_fails_is_not_given_up_while_what_to_go_back_to_is_suspended() -> None:
    state = with_one_suspended(RUN)
    assert state.environments["web"].deployment is not None
    state.environments["web"].deployment.failures = 99
    told = rollouts(Moment(state, {}, NOW, POLICY))
    assert [each.status for each in told if isinstance(each, NoteDeployment)] == [DeploymentStatus.WAITING]


@pytest.mark.parametrize("run_id", [RUN, NEXT])
def test_a_deleted_environment_stops_what_it_can_and_is_not_forgotten_before_the_rest(run_id: str) -> None:
    state = with_one_suspended(run_id)
    env = state.environments["web"]
    env.deleting, env.deployments[-1].status = True, DeploymentStatus.STOPPED
    told = rollouts(Moment(state, {}, NOW + DRAINED_S, POLICY))
    assert sum(isinstance(each, StopAttempt) for each in told) == (0 if run_id == RUN else 3)
    state.runs.clear()
    assert not [each for each in rollouts(Moment(state, {}, NOW, POLICY)) if isinstance(each, ForgetEnvironment)]


@pytest.mark.parametrize(("desired", "goes"), [(2, True), (3, False)])
def test_no_idle_instance_goes_in_the_tick_in_which_a_service_comes_to_want_more_tasks(
    desired: int, goes: bool
) -> None:
    state = serving(2, desired)
    idle = state.instances[instance_id(7)] = replace(state.instances[instance_id(0)], id=instance_id(7), idle_since=NOW)
    told = decide(Moment(state, {}, NOW + DRAINED_S, POLICY))
    assert [each.instance_ids for each in told if isinstance(each, Terminate)] == ([(idle.id,)] if goes else [])


def test_in_the_tick_that_gives_a_revision_of_a_daemon_up_nothing_is_stopped_for_it() -> None:
    state = serving(3, 3)
    env = state.environments["web"]
    env.is_daemon = True
    for instance in state.instances.values():
        instance.total = Resources(4096, 8192)
    state.runs[RUN].change_spec(daemon_form(), terms_of_form(daemon_form()))
    run = state.take_in(submit_request(NEXT, NOW, daemon_form(), 1, "argosy/web", "s3://results/y/", False), 1)
    env.revisions.append(Revision(2, NOW, run.id))

    def told(failures: int) -> tuple[list[DeploymentStatus], int]:
        now = NOW + DRAINED_S
        env.deployments[1:] = [ServiceDeployment(2, 2, now, progress_at=now, failures=failures)]
        acts = rollouts(Moment(state, {}, now, POLICY))
        notes = [each.status for each in acts if isinstance(each, NoteDeployment)]
        return notes, sum(isinstance(each, StopAttempt) for each in acts)

    assert told(failures=0) == ([DeploymentStatus.IN_PROGRESS], 1)
    assert told(failures=3) == ([DeploymentStatus.FAILED], 0)


def daemon_form() -> dict[str, Any]:
    document = {
        "version": 1,
        "kind": "daemon",
        "name": "web",
        "container": {"image": "argosy/web", "command": ["watch"]},
        "resources": {"vcpus": 0.5, "memory": 256},
        "daemon": {"update": {"minHealthyPercent": 50}},
    }
    return to_json(parse_spec(document))
