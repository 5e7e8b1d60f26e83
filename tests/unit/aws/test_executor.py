"""The order of things, and that every action has an outcome."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from argosy.aws.cell import Coordination, HomeClients
from argosy.aws.executor import AwsExecutor
from argosy.model.actions import (
    Action,
    CloseRun,
    DeregisterDefinition,
    FoldHistory,
    Launch,
    PrepareRun,
    ResolveLaunches,
    SetTarget,
    StopAttempt,
    StopOrphan,
    Terminate,
    VerifyResult,
)
from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.events import (
    DefinitionDeregistered,
    Event,
    HostStateChanged,
    LaunchAccepted,
    LaunchRefused,
    NotCarriedOut,
    Observed,
    ResultSeen,
    RunClosed,
    RunPrepared,
    TargetAccepted,
    TaskSeen,
)
from argosy.model.state import State
from tests.builders import CELL, NOW, RUN_ID, instance_id, prepared, state_with_instance, task_arn
from tests.fakes.aws import DEPLOYMENT, Clock, ScriptedClient, cell, refusal, timed_out

POOL = f"{CELL}/c5.xlarge/us-east-1a"
SOON = NOW + 5


def started(**request: Any) -> dict[str, Any]:
    index = next(
        e["value"]
        for e in request["overrides"]["containerOverrides"][0]["environment"]
        if e["name"] == "ARGOSY_TASK_INDEX"
    )
    return {"tasks": [{"taskArn": task_arn(int(index))}]}


ECS = {
    "run_task": started,
    "stop_task": {"task": {"taskArn": task_arn(99), "desiredStatus": "STOPPED"}},
    "list_tasks": {"taskArns": []},
    "describe_task_definition": {"taskDefinition": {"taskDefinitionArn": prepared().task_definition}},
    "deregister_task_definition": {},
    "list_container_instances": {"containerInstanceArns": []},
}
EC2 = {
    "modify_fleet": {},
    "terminate_instances": {
        "TerminatingInstances": [{"InstanceId": instance_id(1), "CurrentState": {"Name": "shutting-down"}}]
    },
    "describe_fleets": {"Fleets": []},
    "describe_instances": {"Reservations": []},
}
S3 = {"put_object": {}, "head_object": {"ETag": '"1"', "ContentLength": 3, "Metadata": {}}, "list_objects_v2": {}}


class Site:
    """An executor whose clients write into one record of calls."""

    def __init__(self, threads: int = 1, pace: float = 1000, **scripts: Any) -> None:
        self.clock, self.signs = Clock(), 0
        services = {"ecs": ECS, "ec2": EC2, "s3": S3, "events": {"put_events": {}}}
        self.clients = {
            name: ScriptedClient(name, **{**script, **{op: scripts[op] for op in scripts if op in script}})
            for name, script in services.items()
        }
        self.calls: list[tuple[str, dict[str, Any]]] = []
        for client in self.clients.values():
            client.calls = self.calls
        place = cell(self.clock, self.clients["ecs"], self.clients["ec2"], pace=pace)
        self.executor = AwsExecutor(
            replace(DEPLOYMENT, threads=threads),
            [place],
            HomeClients(self.clients["s3"], self.clients["events"]),
            self.clock,
            Coordination(keep_alive=self.sign),
        )

    def sign(self) -> None:
        self.signs += 1

    def carry_out(self, *actions: Action, state: State | None = None, deadline: float = SOON) -> list[Event]:
        return self.executor.carry_out(actions, state or state_with_instance(), deadline)

    @property
    def operations(self) -> list[str]:
        return [name for name, _ in self.calls]


def launch(index: int, run_id: str = RUN_ID) -> Launch:
    return Launch(AttemptKey(run_id, index, 1, 0), 1, "argosy-testtest-1", instance_id(1), CELL)


STOP = StopAttempt(task_arn(99), CELL, AttemptKey(RUN_ID, 9, 1, 0), StopCause.INTERRUPTED, "spot")
EVERYTHING: Sequence[Action] = (
    launch(0),
    ResolveLaunches(1, "argosy-testtest-0", (launch(5),), NOW, True),
    CloseRun(RUN_ID),
    FoldHistory(RUN_ID),
    VerifyResult(RUN_ID, 1, 1),
    PrepareRun(RUN_ID),
    Terminate(CELL, (instance_id(1),)),
    SetTarget(POOL, 0, 0),
    StopOrphan(task_arn(98), CELL),
    STOP,
)


def test_stops_come_before_targets_targets_before_terminations_and_launches_last() -> None:
    site = Site()
    events = site.carry_out(*EVERYTHING)
    order = [
        name for name in site.operations if name in ("stop_task", "modify_fleet", "terminate_instances", "run_task")
    ]
    assert order == ["stop_task"] * 2 + ["modify_fleet", "terminate_instances"] + ["run_task"] * 2
    kinds = [type(event) for event in events]
    assert kinds == [
        TaskSeen,
        TaskSeen,
        TargetAccepted,
        HostStateChanged,
        RunPrepared,
        ResultSeen,
        RunClosed,
        NotCarriedOut,  # there is no history to fold
        LaunchAccepted,
        LaunchAccepted,
    ]


def test_what_no_run_needs_goes_after_the_launches_and_only_if_they_leave_time() -> None:
    def slow(**request: Any) -> dict[str, Any]:
        site.clock.at += 3
        return started(**request)

    unused = DeregisterDefinition("argosy-0a1b2c3d4e5f")
    for launches, left in ((1, True), (2, False)):
        site = Site(run_task=slow)
        *_, last = site.carry_out(unused, *(launch(index) for index in range(launches)))
        assert ("deregister_task_definition" in site.operations) is left
        assert last == (DefinitionDeregistered(unused.family) if left else NotCarriedOut("the time limit was reached"))
        assert site.operations.count("run_task") == launches


def test_a_definition_that_a_run_has_got_in_the_same_tick_stays() -> None:
    """The state that was decided on does not show the run pinned to it yet."""
    state = state_with_instance()
    run = state.runs[RUN_ID]
    definition, run.task_definition = run.task_definition, ""
    site = Site()
    [found] = [event for event in site.carry_out(PrepareRun(RUN_ID), state=state) if isinstance(event, RunPrepared)]
    assert found.task_definition == definition
    [family] = {request["taskDefinition"] for name, request in site.calls if name == "describe_task_definition"}
    first, last = site.carry_out(PrepareRun(RUN_ID), DeregisterDefinition(family), state=state)
    assert isinstance(first, RunPrepared)
    assert isinstance(last, NotCarriedOut)
    assert "deregister_task_definition" not in site.operations


def test_after_the_time_limit_every_action_is_reported_as_not_begun_and_nothing_is_called() -> None:
    site = Site()
    events = site.carry_out(*EVERYTHING, deadline=NOW - 1)
    assert site.calls == []
    assert len(events) == len(EVERYTHING)
    assert {type(event).__name__ for event in events} == {"NotCarriedOut", "LaunchInDoubt"}
    keys = [event.key for event in events if isinstance(event, NotCarriedOut) and event.key]
    assert keys == [STOP.key, launch(0).key]


def test_trouble_with_every_call_is_reported_and_raises_nothing() -> None:
    operations = {name: timed_out() for scripts in (ECS, EC2, S3) for name in scripts}
    site = Site(put_events=timed_out(), **operations)
    events = site.carry_out(*EVERYTHING)
    assert len(events) == len(EVERYTHING)
    swept = site.executor.observe(NOW, State())
    assert isinstance(swept, Observed)
    assert [swept.tasks_complete, swept.hosts_complete, swept.container_instances_complete] == [False] * 3


def test_a_target_that_is_refused_keeps_its_instances() -> None:
    site = Site(modify_fleet=timed_out())
    events = site.carry_out(SetTarget(POOL, 0, 0), Terminate(CELL, (instance_id(1),)))
    assert [type(event) for event in events] == [NotCarriedOut, NotCarriedOut]
    assert "terminate_instances" not in site.operations


def test_runs_that_are_closed_and_kinds_that_are_unknown_are_not_carried_out() -> None:
    site = Site()
    actions = (PrepareRun("gone"), VerifyResult("gone", 0, 1), CloseRun("gone"), FoldHistory("gone"), "dance")
    events = site.carry_out(*actions)  # type: ignore[arg-type]
    assert [type(event) for event in events] == [NotCarriedOut] * 5
    assert site.calls == []


def test_a_run_that_may_not_launch_is_asked_for_once_and_checked_once() -> None:
    gate = threading.Barrier(2, timeout=0.2)  # two requests under way at a time would meet here

    def refuse(**_: Any) -> dict[str, Any]:
        with contextlib.suppress(threading.BrokenBarrierError):
            gate.wait()
            pytest.fail("a second task was sent before the first was answered")
        raise refusal("AccessDeniedException", "not authorized to perform: iam:PassRole")

    site = Site(threads=8, run_task=refuse)
    events = site.carry_out(*(launch(index) for index in range(10)))
    assert site.operations == ["run_task"] * 2
    assert [type(event) for event in events] == [LaunchRefused] + [NotCarriedOut] * 9
    assert all(isinstance(event, NotCarriedOut) and event.key for event in events[1:])


def test_a_run_that_has_launched_before_sends_no_task_ahead() -> None:
    """Its first two launches meet at the gate: they are under way at the same time."""
    gate = threading.Barrier(2, timeout=60)

    def meet(**request: Any) -> dict[str, Any]:
        gate.wait()
        return started(**request)

    state = state_with_instance()
    state.runs[RUN_ID].attempts = 1
    site = Site(threads=2, run_task=meet)
    events = site.carry_out(launch(0), launch(1), state=state)
    assert [type(event) for event in events] == [LaunchAccepted] * 2


def test_every_thread_has_ended_when_carrying_out_returns() -> None:
    before = threading.active_count()
    Site(threads=8).carry_out(*(launch(index) for index in range(9)), *(VerifyResult(RUN_ID, i, 1) for i in range(9)))
    assert threading.active_count() == before


def test_stops_and_look_ups_leave_time_for_launches() -> None:
    state = state_with_instance()
    state.runs[RUN_ID].attempts = 1
    site = Site(pace=10)
    stops = [StopOrphan(task_arn(1000 + number), CELL) for number in range(200)]
    events = site.carry_out(*stops, *(launch(index) for index in range(10)), state=state)
    assert site.operations.count("stop_task") == 10 + 20  # the burst, and two of five seconds
    assert sum(isinstance(event, LaunchAccepted) for event in events) == 10
    assert len(events) == 210


def test_look_ups_stop_when_their_share_of_the_time_is_used_up() -> None:
    site = Site()
    verifications = [VerifyResult(RUN_ID, index, 1) for index in range(10)]

    def slow(**_: Any) -> dict[str, Any]:
        site.clock.at += 1
        return {"ContentLength": 1, "Metadata": {}}

    site.clients["s3"].scripts["head_object"] = slow
    events = site.carry_out(*verifications)
    assert [type(event) for event in events] == [ResultSeen] * 4 + [NotCarriedOut] * 6


@pytest.mark.parametrize("threads", [1, 8])
def test_events_come_in_the_order_of_their_actions(threads: int) -> None:
    state = state_with_instance(tasks=100)
    state.runs[RUN_ID].attempts = 1
    events = Site(threads=threads).carry_out(*(launch(index) for index in range(10)), state=state)
    assert [event.key.index for event in events if isinstance(event, LaunchAccepted)] == list(range(10))


def test_the_sweep_of_an_empty_deployment_is_complete() -> None:
    site = Site()
    assert site.executor.observe(NOW, State()) == Observed(
        at=NOW, whole_cells=frozenset({CELL}), cells=frozenset({CELL}), reservations_read=frozenset({CELL})
    )


def test_every_hundred_looked_up_results_there_is_a_sign_of_life() -> None:
    site = Site()
    events = site.carry_out(*[VerifyResult(RUN_ID, index, 1) for index in range(250)], state=state_with_instance(300))
    assert [event.index for event in events if isinstance(event, ResultSeen)] == list(range(250))
    assert site.signs == 3
