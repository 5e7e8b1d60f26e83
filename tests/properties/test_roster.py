"""After every event and action, a roster that has followed the state equals one made from scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, get_args

import hypothesis.strategies as st
from hypothesis import given, settings

from argosy.lifecycle.apply import apply, pass_time
from argosy.lifecycle.begin import begin
from argosy.lifecycle.pools import close_cells
from argosy.lifecycle.suspension import suspend
from argosy.model import events
from argosy.model.arns import family_of
from argosy.model.attempts import AttemptKey
from argosy.model.events import Event
from argosy.model.failure_texts import FailuresRead
from argosy.model.history_parts import HistoryPart
from argosy.model.host_care import ConsoleRead, DrainAsked, DrainRequest, HostHealthChanged
from argosy.model.inbox import (
    CancelRequest,
    CancelTasksRequest,
    EnvironmentRequest,
    RetryRequest,
    ScaleRequest,
    SharingRequest,
    UpdateRequest,
)
from argosy.model.pools import OrderAnswered, ReservationSeen
from argosy.model.run_record import RunRecord
from argosy.model.runs import ManifestBound, RunStatus
from argosy.model.services.targets import TargetPlace, TargetsDeregistered, TargetsRegistered
from argosy.model.state import State
from argosy.model.stored.documents import changed, committed
from argosy.scheduler.decide import decide
from argosy.scheduler.supply.roster import Roster
from argosy.spec.parse import parse_spec, to_json
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    container_instance,
    fleet,
    host,
    instance_id,
    moment_of,
    prepared,
    submit_request,
    submitted,
    task,
    task_arn,
)
from tests.harness.simulation.controllers.kept_rows import differences

RUNS = ("a-261121-062733-aaaa", "b-261121-062734-bbbb", "c-261121-062735-cccc")
ZONE = "attribute:ecs.availability-zone"
DOCUMENTS: tuple[dict[str, Any], ...] = (
    {"version": 1, "queues": {"team": {"weight": 2}}},
    {"version": 1, "queues": {"default": {"within": "owners"}, "team": {"weight": 0}}},
)
FORMS: tuple[dict[str, Any], ...] = (  # each reads another property of an instance
    {"placement": {"group": "team", "constraints": [f"{ZONE} == us-east-1a"]}},
    {
        "resources": {"vcpus": 0.5, "memory": 512, "diskGiB": 5},
        "container": {"image": "argosy/digits", "hostPorts": [8080]},
        "placement": {"group": "team", "strategy": [f"spread:{ZONE}", "binpack:memory"]},
    },
    {
        "queue": "team",
        "priority": 3,
        "resources": {"vcpus": 1, "memory": 900},
        "placement": {"constraints": ["not(task:group == team)"], "strategy": ["finish-together"]},
    },
)
INSTANCES = 4
Drawn = tuple[int, int, int, int]  # what an event is about: a run, a task of it, an instance, and one more number


def key(state: State, run: int, index: int) -> AttemptKey:
    """The live attempt at the task, if there is one."""
    known = state.runs.get(RUNS[run])
    row = state.attempts.row_of_task.get((known.number, index)) if known else None
    return (state.key_of(row) if row is not None else None) or AttemptKey(RUNS[run], index, 1, 0)


def arn(run: int, index: int) -> str:
    return task_arn(100 * run + index + 1)


def daemon_of(state: State) -> str:
    """The id of its latest run."""
    env = state.environments.get(WATCH)
    return env.target.run_id if env and env.target else "none-261121-062733-eeee"


def daemon_key(state: State, index: int) -> AttemptKey:
    known = state.runs.get(daemon_of(state))
    row = state.attempts.row_of_task.get((known.number, index)) if known else None
    return (state.key_of(row) if row is not None else None) or AttemptKey(daemon_of(state), index, 1, 0)


def a_sweep(state: State, drawn: Drawn, at: float) -> Event:
    """One that shows some of the instances, and all fleets."""
    _, _, instance, more = drawn
    shown = [number for number in range(INSTANCES) if more % 2 or number != instance]
    return events.Observed(
        at,
        fleets=(fleet(spot_target=more),),
        hosts=tuple(host(number) for number in shown),
        container_instances=tuple(container_instance(number, version=more) for number in shown),
    )


WATCH = "watch"  # a daemon


def a_daemon(at: float, number: int) -> EnvironmentRequest:
    """Deployed, with needs, a query and an order that differ."""
    spec = {
        "version": 1,
        "kind": "daemon",
        "name": WATCH,
        "container": {"image": "argosy/web", **({"hostPorts": [8080]} if number == 3 else {})},
        "resources": {"vcpus": 0.25 * (1 + number % 3), "memory": 256},
        "daemon": {
            "instances": f"{ZONE} == us-east-1{'ab'[number % 2]}" if number > 4 else f"{ZONE} exists",
            "update": {"order": "stop-first" if number % 2 else "start-first", "healthySeconds": 5},
        },
    }
    run_id = f"{WATCH}-261121-06273{number}-dddd"
    submit = submit_request(run_id, at, to_json(parse_spec(spec)), 1, "argosy/web", f"s3://r/{run_id}/", False)
    return EnvironmentRequest(WATCH, at, "deploy", revision=number + 1, token=f"{number}@{at}", submit=submit)


CHANGES = ("create", "update", "scale", "freeze", "thaw", "delete")


def reserved(drawn: Drawn, at: float) -> ReservationSeen:
    """A Capacity Block, whose end is near and may move."""
    state = "expired" if drawn[3] == 7 else "active"
    ends_at = at + 2_000.0 + 400.0 * drawn[3]
    return ReservationSeen(
        "cr-1", CELL, "c5.xlarge", "us-east-1a", "capacity-block", state, 3, drawn[2] % 4, 0.0, ends_at
    )


EVENTS: Sequence[Callable[[State, Drawn, float], Event]] = (
    lambda _, d, at: submitted(RUNS[d[0]], tasks=5, expects_result=d[3] == 7, **FORMS[d[0]]),
    lambda _, d, at: replace(
        prepared(RUNS[d[0]], **FORMS[d[0]]), host_ports=((8080, "tcp"),) if d[0] == 1 else ()
    ),
    lambda _, d, at: events.RunNotPrepared(RUNS[d[0]], "no such image", final=d[3] == 7),
    lambda _, d, at: events.RunCancelled(CancelRequest(RUNS[d[0]], at, "enough")),
    lambda _, d, at: events.TasksCancelled(CancelTasksRequest(RUNS[d[0]], at, ((d[1], d[1] + d[3]),))),
    lambda s, d, at: events.RunRetried(RetryRequest(RUNS[d[0]], at, cancelled=True)),
    lambda _, d, at: events.RunUpdated(UpdateRequest(RUNS[d[0]], at, {"priority": d[3], "maxInstances": 1 + d[1]})),
    lambda _, d, at: events.EnvironmentAsked(
        EnvironmentRequest("web", at, CHANGES[d[3] % len(CHANGES)], revision=d[1] + 1, desired=d[3])
    ),
    lambda _, d, at: events.DependencyEnded(RUNS[d[0]], RunStatus.SUCCEEDED, (0,) * 7),
    lambda _, d, at: events.ClusterScaled(ScaleRequest(at, d[3] % 4, until=at + 60 * (d[1] % 3))),
    lambda _, d, at: DrainAsked(DrainRequest(at, instance_id(d[1]), at + 60 * (d[3] % 3))),
    lambda _, d, at: ConsoleRead(instance_id(d[1]), "argosy boot: no network", at),
    lambda _, d, at: reserved(d, at),
    lambda _, d, at: OrderAnswered(f"{CELL}/c5.xlarge/us-east-1a", d[3]),
    lambda _, d, at: HostHealthChanged(instance_id(d[1]), "ECS says IMPAIRED" * (d[3] % 2), at),
    lambda s, d, at: events.SharingAsked(SharingRequest(DOCUMENTS[d[3] % 2], s.sharing.revision, at)),
    lambda _, d, at: events.EnvironmentAsked(a_daemon(at, d[3])),
    lambda s, d, at: replace(
        prepared(daemon_of(s)), cpu_units=256 * (1 + d[3] % 3), memory_mib=256, host_ports=()
    ),
    lambda s, d, at: replace(task(1, "RUNNING", 2 + d[3]), arn=arn(3, d[1]), key=daemon_key(s, d[1])),
    lambda s, d, at: replace(task(1, "STOPPED", 9 + d[3], exit_code=d[3] % 2), arn=arn(3, d[1])),
    lambda _, d, at: events.RunClosed(RUNS[d[0]]),
    lambda _, d, at: events.DefinitionDeregistered(family_of(prepared().task_definition)),
    lambda _, d, at: events.ManifestPartWritten(RUNS[d[0]], 0, ManifestBound(), ManifestBound(5)),
    lambda _, d, at: events.HistoryPartWritten(RUNS[d[0]], "", HistoryPart("000000000004", 1, 0, 0)),
    lambda _, d, at: events.ResultSeen(RUNS[d[0]], d[1], d[3] % 2, 5),
    lambda _, d, at: events.NotCarriedOut("throttled"),
    lambda _, d, at: events.ControllerStarted(),
    lambda _, d, at: FailuresRead(RUNS[d[0]], ("a", "ab"[d[3] % 2])),
    lambda s, d, at: events.LaunchAccepted(key(s, d[0], d[1]), arn(d[0], d[1])),
    lambda s, d, at: events.LaunchRefused(key(s, d[0], d[1]), "RESOURCE:CPU"),
    lambda s, d, at: events.LaunchInDoubt(key(s, d[0], d[1]), "no reply"),
    lambda s, d, at: events.LaunchMissed(key(s, d[0], d[1])),
    lambda s, d, at: events.LaunchDisproved(key(s, d[0], d[1])),
    lambda s, d, at: replace(task(1, "RUNNING", 2 + d[3]), arn=arn(d[0], d[1]), key=key(s, d[0], d[1])),
    lambda s, d, at: replace(task(1, "STOPPED", 9 + d[3], exit_code=d[3] % 2), arn=arn(d[0], d[1])),
    lambda _, d, at: container_instance(
        d[2],
        version=d[3],
        agent_connected=d[3] % 5 != 0,
        status="DRAINING" if d[3] == 7 else "ACTIVE",
        remaining=(1024 * (d[3] % 4), 7000, 0),
        memory_mib=7000 * (1 + d[3] % 3),
        attributes={"ecs.availability-zone": f"us-east-1{'ab'[d[3] % 2]}", "colour": str(d[3])},
    ),
    lambda _, d, at: host(d[2], state=("running", "running", "shutting-down", "terminated")[d[3] % 4]),
    lambda _, d, at: events.HostStateChanged(instance_id(d[2]), ("stopping", "terminated")[d[3] % 2], at),
    lambda _, d, at: events.InterruptionWarned(instance_id(d[2]), at),
    lambda _, d, at: events.RebalanceAdvised(instance_id(d[2]), at),
    lambda _, d, at: fleet(zone=f"us-east-1{'ab'[d[3] % 2]}", spot_target=d[3]),
    lambda _, d, at: events.TargetAccepted(f"{CELL}/c5.xlarge/us-east-1a", d[3]),
    lambda _, d, at: TargetsRegistered("web", (TargetPlace("web", "i-1", 8080),)),
    lambda _, d, at: TargetsDeregistered("web", (TargetPlace("web", "i-1", 8080),)),
    lambda _, d, at: events.PoolShort(f"{CELL}/c5.xlarge/us-east-1a", "no capacity"),
    lambda _, d, at: events.HistoryRead(f"{CELL}/c5.xlarge/us-east-1a", None),
    a_sweep,
)  # fmt: skip


class FollowedState:
    """A state with random events, and a roster that follows it."""

    def __init__(self) -> None:
        self.state, self.roster, self.at = State(epoch="e"), Roster(), NOW
        for zone in "ab":
            self.take(fleet(zone=f"us-east-1{zone}"))
        for number in range(INSTANCES):
            self.take(host(number))
            self.take(container_instance(number))
        for number, run_id in enumerate(RUNS):
            self.take(submitted(run_id, tasks=5, **FORMS[number]))
        self.take(prepared(RUNS[0], **FORMS[0]))
        self.take(events.EnvironmentAsked(EnvironmentRequest(WATCH, NOW, "create", revision=1, is_daemon=True)))

    def take(self, event: Event) -> None:
        apply(self.state, event, self.at, POLICY)
        self.check(event)

    def check(self, what: object) -> None:
        assert not list(differences(self.roster, moment_of(self.state, self.at))), what

    def step(self, kind: int, drawn: Drawn) -> None:
        """One event, or something else that changes the state."""
        if kind < len(EVENTS):
            self.take(EVENTS[kind](self.state, drawn, self.at))
        elif kind == len(EVENTS):
            self.decide()
        elif kind == len(EVENTS) + 1:
            self.at += (1, 20, 200, 2000)[drawn[3] % 4]
            pass_time(self.state, self.at, POLICY)
        elif kind == len(EVENTS) + 2:
            self.suspend_or_resume(RUNS[drawn[0]])
        elif kind == len(EVENTS) + 3:
            close_cells(self.state, {CELL: "its stack is being deleted"} if drawn[3] == 7 else {})
        else:
            changed(self.state)
            committed(self.state)
        self.check((kind, drawn))

    def decide(self) -> None:
        for action in decide(moment_of(self.state, self.at), roster=self.roster):
            begin(self.state, action, self.at, POLICY)
            self.check(action)

    def suspend_or_resume(self, run_id: str) -> None:
        run, found = self.state.runs.get(run_id), self.state.suspended.get(run_id)
        if run is not None and run.task_definition and not run.done:
            self.left = run
            suspend(self.state, RunRecord.of(run), "our own fault", self.at)
        elif found is not None:
            self.take(events.RunResumed(run_id, self.left))


KINDS = [*range(len(EVENTS) + 5), *[len(EVENTS)] * 6, *[len(EVENTS) + 1] * 4]  # more decisions, and more time
drawn = st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, INSTANCES), st.integers(0, 7))
steps = st.lists(st.tuples(st.sampled_from(KINDS), drawn), min_size=5, max_size=40)


@settings(max_examples=25)
@given(steps)
def test_kept_columns_equal_columns_made_from_scratch_after_every_event_and_action(
    taken: list[tuple[int, Drawn]],
) -> None:
    followed = FollowedState()
    for kind, about in taken:
        followed.step(kind, about)


def test_every_kind_of_event_is_drawn() -> None:
    state = State()
    made = {type(make(state, (0, 0, 0, 1), NOW)) for make in EVENTS}
    assert set(get_args(Event)) - made == {events.RunResumed, events.RunNotResumed, events.ActionFailed}
