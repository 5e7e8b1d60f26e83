"""A fact's changes are stored: a controller that starts later has the state of the previous one.

One case at least for every kind of fact. Between two facts everything is committed, so that each has to mark its own
changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from argosy.engine.loading import load, load_run
from argosy.lifecycle.apply import apply, pass_time
from argosy.lifecycle.dependencies import pack_statuses
from argosy.lifecycle.suspension import suspend
from argosy.model.actions import Launch
from argosy.model.arns import family_of
from argosy.model.attempts import AttemptKey
from argosy.model.damage import UnreadableState
from argosy.model.events import (
    ActionFailed,
    ClusterScaled,
    ControllerStarted,
    DefinitionDeregistered,
    DependencyEnded,
    EnvironmentAsked,
    Event,
    HistoryPartWritten,
    HistoryRead,
    HostStateChanged,
    InterruptionWarned,
    LaunchAccepted,
    LaunchDisproved,
    LaunchInDoubt,
    LaunchMissed,
    LaunchRefused,
    ManifestPartWritten,
    NotCarriedOut,
    Observed,
    PoolShort,
    RebalanceAdvised,
    ResultSeen,
    RunCancelled,
    RunClosed,
    RunNotPrepared,
    RunNotResumed,
    RunResumed,
    RunRetried,
    RunUpdated,
    SharingAsked,
    TargetAccepted,
    TasksCancelled,
)
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
from argosy.model.services.ports import PortBinding
from argosy.model.services.targets import TargetPlace, TargetsDeregistered, TargetsRegistered
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.suspensions import MOST_UNWATCHED
from argosy.model.tasks import TaskStatus
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    MemoryStore,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    prepared,
    spec,
    state_with,
    state_with_instance,
    submit_request,
    submitted,
    task,
    task_arn,
)
from tests.stored_alike import StoredState, forgotten

POOL = f"{CELL}/c5.xlarge/us-east-1a"
KEY = AttemptKey(RUN_ID, 0, 1, 0)
SERVICE_SPEC = spec(name="web", kind="service", service={"desired": 2}, array={"size": 2})
SERVICE = submit_request(
    "web-261121-062733-k3f9", NOW, SERVICE_SPEC, 2, "argosy/web", "s3://results/web/", expects_result=False
)
FAMILY = family_of(prepared().task_definition)
LATER = NOW + POLICY.absence_s + 100
GONE = Observed(LATER, hosts=(host(1),), container_instances=(container_instance(1),))
BACK = replace(GONE, at=LATER + 1, tasks=(task(1, "RUNNING"),))  # nothing new about it
RESERVED = ReservationSeen("cr-1", CELL, "c5.xlarge", "us-east-1a", "capacity-block", "active", 2, 2, NOW, NOW + 9e4)
UP = [LaunchAccepted(KEY, task_arn(1)), task(1, "RUNNING")]
ONLY_TASK = [*UP, task(1, "STOPPED", 9, exit_code=0)]
DOCUMENT = {"version": 1, "queues": {"research": {"weight": 2}, "team": {"within": "owners"}}}
CASES: list[list[Event]] = [
    [submitted("second-261121-062733-k3f9"), prepared("second-261121-062733-k3f9")],
    [RunNotPrepared(RUN_ID, "no such image", final=False), RunNotPrepared(RUN_ID, "no such image", final=True)],
    [RunCancelled(CancelRequest(RUN_ID, NOW, "enough")), RunClosed(RUN_ID), DefinitionDeregistered(FAMILY)],
    [RunCancelled(CancelRequest(RUN_ID, NOW, "enough"))],
    [*UP, TasksCancelled(CancelTasksRequest(RUN_ID, NOW, ((0, 1),)))],
    [TasksCancelled(CancelTasksRequest(RUN_ID, NOW, ((0, 2),)))],
    [*UP, RunCancelled(CancelRequest(RUN_ID, NOW, "enough")), task(1, "STOPPED", 9, exit_code=137)],
    [*UP, task(1, "STOPPED", 9, exit_code=1), task(1, "STOPPED", 9, exit_code=1)],
    [*UP, replace(task(1, "RUNNING"), health="UNHEALTHY", looked_at=NOW + 5, ports=(PortBinding(80, 40_000),))],
    [*ONLY_TASK, ResultSeen(RUN_ID, 0, 1, 5)],
    [*UP, task(1, "STOPPED", 9, exit_code=1), HistoryPartWritten(RUN_ID, "", HistoryPart("000000000004", 1, 0, 0))],
    [LaunchRefused(KEY, "RESOURCE:CPU"), ControllerStarted()],
    [LaunchRefused(KEY, "AccessDeniedException", "no", final=True)],
    [LaunchInDoubt(KEY, "no reply"), LaunchMissed(KEY), LaunchMissed(KEY)],
    [LaunchInDoubt(KEY, "no reply"), LaunchDisproved(KEY)],
    [replace(container_instance(1), version=50, status="DRAINING")],
    [replace(container_instance(1), version=50, agent_connected=False), replace(container_instance(1), version=51)],
    [replace(container_instance(1), version=50, remaining=(1024, 1024, 0)), Observed(NOW + 60), Observed(NOW + 120)],
    [host(2), container_instance(2), host(2, state="shutting-down"), host(2, state="terminated")],
    [*UP, HostStateChanged(instance_id(1), "shutting-down", NOW + 5), HostStateChanged(instance_id(1), "terminated")],
    [*UP, RebalanceAdvised(instance_id(1), NOW + 5)],
    [*UP, InterruptionWarned(instance_id(1), NOW + 5)],
    [InterruptionWarned(instance_id(1), NOW + 5)],
    [InterruptionWarned(instance_id(2), NOW + 5), RebalanceAdvised(instance_id(2), NOW + 5), host(2)],
    [RebalanceAdvised(instance_id(2), NOW + 5), container_instance(2)],
    [*UP, GONE, BACK, replace(GONE, at=LATER + POLICY.absence_s + 2)],
    [*UP, GONE, replace(GONE, at=LATER + POLICY.absence_s + 2)],
    [*UP, Observed(LATER), Observed(LATER + POLICY.absence_s + 1), Observed(LATER + 2 * POLICY.absence_s + 2)],
    [fleet(spot_target=4, spot_usd_per_hour=0.07), TargetAccepted(POOL, 4), OrderAnswered(POOL, 0)],
    [fleet("g5.xlarge"), replace(fleet("g5.xlarge"), fleet_id="another")],
    [fleet(), RESERVED, replace(RESERVED, state="expired"), Observed(LATER, reservations_read=frozenset({CELL}))],
    [
        EnvironmentAsked(EnvironmentRequest("web", NOW, "create", revision=1, desired=2)),
        TargetsRegistered("web", (TargetPlace("web", "i-1", 8080),)),
        TargetsDeregistered("web", (TargetPlace("web", "i-1", 8080),)),
    ],
    [PoolShort(POOL, "no capacity"), HistoryRead(POOL, PoolShort(POOL, "a dead AMI", lasting=True))],
    [HistoryRead(POOL, None)],
    [
        ManifestPartWritten(RUN_ID, 0, ManifestBound(), ManifestBound(10)),
        ManifestPartWritten(RUN_ID, 0, ManifestBound(10), ManifestBound(10, 7), "attempts/0000010/1/x"),
    ],
    [
        EnvironmentAsked(EnvironmentRequest("web", NOW, "create", revision=1, desired=2)),
        EnvironmentAsked(EnvironmentRequest("web", NOW, "update", revision=2)),
        EnvironmentAsked(EnvironmentRequest("web", NOW, "deploy", revision=2, token="t", submit=SERVICE)),
        EnvironmentAsked(EnvironmentRequest("web", NOW, "stop", reason="enough")),
        EnvironmentAsked(EnvironmentRequest("web", NOW, "thaw")),
        EnvironmentAsked(EnvironmentRequest("web", NOW, "scale", desired=5)),
        EnvironmentAsked(EnvironmentRequest("web", NOW, "freeze")),
        EnvironmentAsked(EnvironmentRequest("web", NOW, "delete")),
        ClusterScaled(ScaleRequest(NOW, 3, ("c5.xlarge",), NOW + 60)),
    ],
    [host(), ConsoleRead(instance_id(1), "argosy boot: no network", NOW)],
    [host(), container_instance(), HostHealthChanged(instance_id(1), "ECS says IMPAIRED", NOW)],
    [host(), container_instance(), DrainAsked(DrainRequest(NOW, instance_id(1), NOW + 3600.0))],
    [SharingAsked(SharingRequest(DOCUMENT, 0, NOW)), SharingAsked(SharingRequest({**DOCUMENT, "queues": {}}, 1, NOW))],
    [RunUpdated(UpdateRequest(RUN_ID, NOW, {"priority": 5, "deadline": "2027-01-15T12:00:00+00:00"}, "it is urgent"))],
    [NotCarriedOut("throttled", about=Subject(Act.CLOSE, RUN_ID)), NotCarriedOut("lost", KEY)],
]


def launch_of(state: State) -> Launch:
    return Launch(KEY, state.next_wave, state.started_by(state.next_wave), instance_id(1), CELL)


def committed(state: State, store: MemoryStore) -> None:
    store.commit(state.version, documents.changed(state), ())
    documents.committed(state)


def follow(state: State, facts: Sequence[Event], store: MemoryStore) -> list[str]:
    committed(state, store)
    lost = forgotten(state, store)
    for fact in facts:
        at = fact.at if isinstance(fact, Observed) else NOW + 5
        apply(state, fact, at, POLICY)
        pass_time(state, at, POLICY)
        committed(state, store)
        lost += forgotten(state, store)
    return lost


def test_a_document_that_the_store_lost_is_found_without_a_load_as_well() -> None:
    state, store = state_with_instance(tasks=3), MemoryStore()
    begun(state, [launch_of(state)])
    committed(state, store)
    stored = StoredState()
    assert stored.forgotten(state, store) == []
    for key in list(store.items):
        body = store.items.pop(key)
        found = stored.forgotten(state, store)
        if key == (documents.STATE, documents.ROOT):
            with pytest.raises(UnreadableState, match="root"):
                load(store)
        else:
            assert {*found} <= {*forgotten(state, store)}
        assert found != []
        store.items[key] = body
        assert stored.forgotten(state, store) == []


@pytest.mark.parametrize("facts", CASES, ids=lambda facts: "-".join(type(fact).__name__ for fact in facts))
def test_what_a_fact_changes_is_stored(facts: list[Event]) -> None:
    state = state_with_instance(tasks=3, expects_result=True)
    begun(state, [launch_of(state)])
    assert follow(state, facts, MemoryStore()) == []


def test_what_reopening_a_run_changes_is_stored() -> None:
    once = {"attempts": 1, "evaluateOnExit": []}
    state, store = state_with_instance(tasks=1, retryStrategy=once), MemoryStore()
    begun(state, [launch_of(state)])
    failed = task(1, "STOPPED", 9, exit_code=1)
    assert follow(state, [*UP, failed], store) == []
    for seconds in (30, 700):  # until it is known that the instance was not going down
        pass_time(state, NOW + seconds, POLICY)
    committed(state, store)
    assert state.runs[RUN_ID].tasks["status"][0] == TaskStatus.FAILED
    apply(state, RunClosed(RUN_ID), NOW + 701, POLICY)
    committed(state, store)
    closed = load_run(store, RUN_ID)
    apply(
        state,
        RunRetried(RetryRequest(RUN_ID, NOW + 800, tasks=((0, 0),), size={"memory": 4096}), stored=closed),
        NOW + 800,
        POLICY,
    )
    committed(state, store)
    assert forgotten(state, store) == []
    assert load(store).runs[RUN_ID].retries == 1


@pytest.mark.parametrize("lines", [("a", "a"), ("a", "b")])
def test_what_the_logs_of_failures_change_is_stored(lines: tuple[str, ...]) -> None:
    once = {"attempts": 1, "stopAfterAlike": 1}
    state = state_with_instance(tasks=3, retryStrategy=once)
    begun(state, [launch_of(state)])
    facts = [*UP, task(1, "STOPPED", 9, exit_code=1), RebalanceAdvised(instance_id(1)), FailuresRead(RUN_ID, lines)]
    assert follow(state, facts, MemoryStore()) == []


def test_what_leaving_a_run_alone_and_trying_it_again_changes_is_stored() -> None:
    state, store = state_with_instance(tasks=1), MemoryStore()
    begun(state, [launch_of(state)])
    assert follow(state, UP, store) == []
    suspend(state, RunRecord.of(state.runs[RUN_ID]), "a fault", NOW + 5)
    committed(state, store)
    assert forgotten(state, store) == []
    state.suspended[RUN_ID].times = MOST_UNWATCHED
    assert follow(state, [RebalanceAdvised(instance_id(1)), task(1, "STOPPED", 9, exit_code=0)], store) == []
    assert load(store).attempts["stop_at"][0]
    assert load(store).attempts["left_at"][0]
    stored = load_run(store, RUN_ID, ended=False)
    assert stored is not None
    apply(state, RunNotResumed(RUN_ID, "its record cannot be read"), NOW + 300, POLICY)
    committed(state, store)
    assert forgotten(state, store) == []
    assert load(store).suspended[RUN_ID].reason == "its record cannot be read"
    apply(state, RunResumed(RUN_ID, stored), NOW + 400, POLICY)
    committed(state, store)
    assert forgotten(state, store) == []


def test_what_the_end_of_a_dependency_changes_is_stored() -> None:
    """As a whole, and task by task."""
    whole, single = "whole-261121-062733-aaaa", "single-261121-062733-bbbb"
    state, store = state_with(), MemoryStore()
    apply(state, submitted(RUN_ID, tasks=3, array={"size": 3}, dependsOn=[{"run": whole}]), NOW, POLICY)
    second = submitted("s-261121-062733-k3f9", 3, array={"size": 3}, dependsOn=[{"run": single, "type": "N_TO_N"}])
    apply(state, second, NOW, POLICY)
    committed(state, store)
    assert load(store).runs[RUN_ID].unmet == [whole]
    statuses = np.array([TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.SUCCEEDED])
    for event in (
        DependencyEnded(whole, RunStatus.SUCCEEDED, (0, 0, 0, 0, 3, 0, 0)),
        DependencyEnded(single, RunStatus.PARTIAL, (0, 0, 0, 0, 2, 1, 0), pack_statuses(statuses)),
    ):
        apply(state, event, NOW + 5, POLICY)
        committed(state, store)
        assert forgotten(state, store) == []
    assert not load(store).runs[RUN_ID].held
    after = load(store).runs["s-261121-062733-k3f9"]
    assert after.tasks["met"].tolist() == [1, 0, 1]
    assert after.tasks["status"].tolist() == [TaskStatus.PENDING, TaskStatus.CANCELLED, TaskStatus.PENDING]


def test_every_kind_of_fact_has_a_case() -> None:
    """ActionFailed is the engine's own: it is not applied."""
    seen = {type(fact) for facts in CASES for fact in facts}
    seen |= {FailuresRead, RunClosed, RunRetried, RunResumed, RunNotResumed, ActionFailed, DependencyEnded}
    assert seen == set(get_args(Event))


def test_every_fact_has_a_key_for_the_set_that_is_set_apart() -> None:
    for facts in CASES:
        assert {*facts} == {*map(deepcopy, facts)}


def test_a_task_that_one_sweep_missed_and_another_showed_is_not_lost_at_the_next_miss_after_a_restart() -> None:
    """Forgiven in memory and not in the store, its first absence would count again for the next controller."""
    state, store = state_with_instance(tasks=1), MemoryStore()
    begun(state, [launch_of(state)])
    assert follow(state, [*UP, GONE, BACK], store) == []
    again = load(store)
    apply(again, replace(GONE, at=LATER + 2 * POLICY.absence_s), LATER + 2 * POLICY.absence_s, POLICY)
    assert again.runs[RUN_ID].tasks["status"][0] == TaskStatus.RUNNING
