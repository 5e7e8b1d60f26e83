"""The adapters against the simulated ECS and EC2, in strict mode: every request and reply has AWS's own shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from argosy.aws.call_rates import CallRates
from argosy.aws.cell import Cell, HomeClients
from argosy.aws.executor import AwsExecutor
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.ec2.service import Ec2Setup
from argosy.messages.eventbridge import to_event
from argosy.model.actions import Action, Launch, PrepareRun, ResolveLaunches, SetTarget, StopAttempt, Terminate
from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.events import (
    Event,
    LaunchAccepted,
    LaunchDisproved,
    LaunchInDoubt,
    LaunchMissed,
    LaunchRefused,
    NotCarriedOut,
    Observed,
    RunPrepared,
    TargetAccepted,
    TaskSeen,
)
from argosy.model.state import State
from tests.builders import CELL, RUN_ID, begun, submitted, told
from tests.fakes.aws import DEPLOYMENT, ScriptedClient, timed_out
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import Behaviour, World

ZONE = "us-east-1a"
EXECUTION_S = 10.0


class Story:
    """One controller's executor in a world: its reports are applied to a state."""

    def __init__(self, instance_type: str = "c5.xlarge", work_s: float = 1e6, **overrides: Any) -> None:
        self.world = World(
            Ec2Setup(load_catalogue()), Behaviour(lambda task, instance: TaskBehaviour(duration_s=work_s))
        )
        self.world.record_events()
        self.pool = f"{CELL}/{instance_type}/{ZONE}"
        tags = {"argosy:stage": "main", "argosy:pool": f"{instance_type}/{ZONE}"}
        self.world.ec2.add_launch_template("argosy", image_id="ami-1", tags={"argosy:stage": "main"})
        self.world.add_fleet(instance_type, ZONE, **tags)
        self.ecs: Any = self.world.ecs_client()
        self.executor = self.executor_over(self.ecs)
        self.state = told(State(epoch="testtest"), submitted(**overrides), now=self.world.now)

    def executor_over(self, ecs: Any) -> AwsExecutor:
        rates = CallRates.of_aws(self.world.clock, self.world.run_for)
        cell = Cell(CELL, self.world.cluster, ecs, self.world.ec2_client(), rates)
        s3 = ScriptedClient("s3", put_object={})
        return AwsExecutor(DEPLOYMENT, [cell], HomeClients(s3, ScriptedClient("events")), self.world.clock)

    def do(self, *actions: Action, executor: AwsExecutor | None = None) -> list[Event]:
        begun(self.state, actions, self.world.now)
        events = (executor or self.executor).carry_out(actions, self.state, self.world.now + EXECUTION_S)
        return self.hear(events)

    def hear(self, events: Sequence[Event]) -> list[Event]:
        told(self.state, *events, now=self.world.now)
        return list(events)

    def sweep(self) -> Observed:
        (observed,) = self.hear([self.executor.observe(self.world.now, self.state)])
        assert isinstance(observed, Observed)
        assert observed.tasks_complete
        assert observed.hosts_complete
        assert observed.container_instances_complete
        return observed

    def with_an_instance(self) -> str:
        """Prepared, bought and registered: the id of the only instance."""
        self.sweep()
        prepared, accepted = self.do(SetTarget(self.pool, 1, 0), PrepareRun(RUN_ID))[::-1]
        assert isinstance(prepared, RunPrepared)
        assert isinstance(accepted, TargetAccepted)
        self.world.run_for(120)
        self.sweep()
        (name,) = self.state.instances
        return name

    def launch(self, name: str, index: int = 0, launch: int = 0) -> Launch:
        wave = self.state.next_wave
        return Launch(AttemptKey(RUN_ID, index, 1, launch), wave, self.state.started_by(wave), name, CELL)


def test_a_fleet_is_found_raised_and_its_instance_seen_to_register() -> None:
    story = Story()
    name = story.with_an_instance()
    instance = story.state.instances[name]
    assert instance.placeable
    assert instance.pool == story.pool
    assert instance.total.cpu_units == 4096
    assert instance.price_usd_per_hour > 0
    assert story.state.pools[story.pool].confirmed


def test_a_task_is_launched_on_its_instance_and_its_events_are_read() -> None:
    story = Story(work_s=5)
    name = story.with_an_instance()
    (accepted,) = story.do(story.launch(name))
    assert isinstance(accepted, LaunchAccepted)
    story.world.run_for(60)
    seen = [event for message in story.world.events if isinstance(event := to_event(message), TaskSeen)]
    assert [event.last_status for event in seen][-1] == "STOPPED"
    assert {event.key for event in seen} == {accepted.key}
    assert seen[-1].exit_code == 0
    told(story.state, *seen, now=story.world.now)
    assert story.state.runs[RUN_ID].tasks.counts()[4] == 1  # SUCCEEDED: this run expects no result


def test_gpus_that_a_task_was_given_are_known_from_the_answer() -> None:
    story = Story("p3.8xlarge", resources={"vcpus": 1, "memory": 1024, "gpus": 2})
    name = story.with_an_instance()
    first, second = story.do(story.launch(name, 0), story.launch(name, 1))
    assert isinstance(first, LaunchAccepted)
    assert isinstance(second, LaunchAccepted)
    held = set(first.gpu_ids) | set(second.gpu_ids)
    assert len(held) == 4
    assert held <= set(story.state.instances[name].gpu_ids)
    (refused,) = story.do(story.launch(name, 2))
    assert isinstance(refused, LaunchRefused)
    assert refused.reason.startswith("RESOURCE:GPU")
    assert not refused.final


class Forgetful:
    """An ECS client that carries calls out and loses their answers."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run_task(self, **request: Any) -> None:
        self._client.run_task(**request)
        raise timed_out()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@pytest.mark.parametrize("resend", [True, False])
def test_a_launch_whose_answer_was_lost_is_adopted_and_never_repeated(resend: bool) -> None:
    story = Story()
    name = story.with_an_instance()
    launch = story.launch(name)
    (doubt,) = story.do(launch, executor=story.executor_over(Forgetful(story.ecs)))
    assert isinstance(doubt, LaunchInDoubt)
    resolve = ResolveLaunches(launch.wave, launch.started_by, (launch,), story.world.now, resend)
    story.world.run_for(60)
    accepted, seen = story.do(resolve)
    assert isinstance(accepted, LaunchAccepted)
    assert isinstance(seen, TaskSeen)
    assert len(story.ecs.list_tasks(cluster="argosy")["taskArns"]) == 1


def test_the_same_request_again_finds_the_same_task() -> None:
    story = Story()
    name = story.with_an_instance()
    launch = story.launch(name)
    (first,) = story.do(launch)
    again = story.executor_over(story.ecs).carry_out([launch], story.state, story.world.now + EXECUTION_S)
    assert again == [first]


def test_an_intent_that_was_never_sent_is_disproved_once_it_is_old() -> None:
    story = Story()
    name = story.with_an_instance()
    launch = story.launch(name)
    begun(story.state, [launch], story.world.now)
    resolve = ResolveLaunches(launch.wave, launch.started_by, (launch,), story.world.now, resend=False)
    assert [type(event) for event in story.do(resolve)] == [LaunchInDoubt]
    story.world.run_for(21 * 60)
    assert [type(event) for event in story.do(resolve)] == [LaunchMissed]
    assert [type(event) for event in story.do(resolve)] == [LaunchDisproved]


def test_a_stop_is_seen_by_the_sweep_that_no_longer_lists_the_task() -> None:
    story = Story()
    name = story.with_an_instance()
    (accepted,) = story.do(story.launch(name))
    assert isinstance(accepted, LaunchAccepted)
    story.world.run_for(30)
    story.sweep()
    stop = StopAttempt(accepted.arn, CELL, accepted.key, StopCause.CANCELLED, "cancelled")
    assert [type(event) for event in story.do(stop)] == [TaskSeen]
    story.world.run_for(60)
    observed = story.sweep()
    assert [(seen.arn, seen.last_status) for seen in observed.tasks] == [(accepted.arn, "STOPPED")]
    assert len(story.state.attempts.live()) == 0
    lost = StopAttempt(accepted.arn[:-1] + "x", CELL, accepted.key, StopCause.CANCELLED, "cancelled")
    assert [type(event) for event in story.do(lost)] == [NotCarriedOut]


def test_an_instance_is_let_go_by_lowering_the_target_first_and_is_not_replaced() -> None:
    story = Story()
    name = story.with_an_instance()
    story.do(SetTarget(story.pool, 0, 0), Terminate(CELL, (name,)))
    story.world.run_for(300)
    observed = story.sweep()
    assert [(seen.instance_id, seen.state) for seen in observed.hosts] == [(name, "terminated")]
    assert not story.state.instances[name].alive
    assert (
        story.world.ec2.describe_fleet_instances(FleetId=story.state.pools[story.pool].fleet_id)["ActiveInstances"]
        == []
    )
