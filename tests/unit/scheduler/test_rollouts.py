"""Which tasks of services are told to stop in one and the same tick, by whomever?"""

from __future__ import annotations

from argosy.lifecycle.environments import take_in
from argosy.model.actions import NoteDeployment, NoteRecovered, StopAttempt
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.environments import CALM_S, DeploymentStatus, Environment, ServiceDeployment
from argosy.model.inbox import SubmitRequest
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from argosy.scheduler.due import next_due
from argosy.scheduler.environments import rollouts
from tests.builders import CELL, NOW, container_instance, instance_id, spec

POLICY = Policy()
RUN = "web-261121-062733-k3f9"
DRAINED_S = POLICY.drain_patience_s


def serving(tasks: int, desired: int) -> State:
    """So many healthy tasks, each on an instance of its own."""
    state = State()
    form = spec(kind="service", name="web", service={"desired": desired}, array={"size": tasks})
    run = take_in(state, SubmitRequest(RUN, NOW, form, tasks, "argosy/web", "s3://results/x/", False), tasks)
    env = state.environments["web"] = Environment.new("web", NOW, desired, revision=1)
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
    env.deployments[-1] = ServiceDeployment(1, 1, NOW, status=DeploymentStatus.IN_PROGRESS, failures=3)
    acts = rollouts(Moment(state, {}, NOW + DRAINED_S, POLICY))
    assert [each.status for each in acts if isinstance(each, NoteDeployment)] == [DeploymentStatus.FAILED]
    assert not [each for each in acts if isinstance(each, StopAttempt)]


def test_what_failed_again_and_again_is_well_when_nothing_has_failed_for_a_while_and_that_is_known_before() -> None:
    state = serving(3, 3)
    env = state.environments["web"]
    env.failures, env.failed_at = 3, NOW

    def told(now: float) -> list[object]:
        return rollouts(Moment(state, {}, now, POLICY))

    before = NOW + CALM_S - 1
    assert not told(before)
    assert before < next_due(Moment(state, {}, before, POLICY)) <= NOW + CALM_S
    assert told(NOW + CALM_S) == [NoteRecovered("web")]
    env.desired = 4
    assert NoteRecovered("web") not in told(NOW + CALM_S), "one of them is not there"
