"""How much of our instances do other owners' tasks take, and what follows from refusals?"""

from __future__ import annotations

from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.messages.ecs import container_instance_seen
from argosy.model.actions import Launch, SetTarget
from argosy.model.events import LaunchAccepted, LaunchRefused
from argosy.model.resources import NOTHING, Resources
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.scheduler.decide import decide
from tests.builders import (
    NOW,
    begun,
    container_instance,
    instance_id,
    launched,
    moment_of,
    state_with_instance,
    task_arn,
    told,
    without_runs,
)

CATALOGUE = load_catalogue()


def seen(version: int, cpu: int, memory: int, gpus: int = 0, **overrides: Any) -> Any:
    return container_instance(version=version, remaining=(cpu, memory, gpus), **overrides)


def foreign(state: State) -> Resources:
    return state.instances[instance_id(1)].foreign


def test_what_strangers_take_counts_once_it_was_seen_for_some_time() -> None:
    state = state_with_instance()
    told(state, seen(2, 1024, 2000), now=NOW + 100)
    assert foreign(state) == NOTHING  # our own state may only be slightly out of date
    told(state, seen(3, 1024, 2000), now=NOW + 111)
    assert foreign(state) == Resources(3072, 5000, 0)
    told(state, seen(4, 4096, 7000), now=NOW + 112)
    assert foreign(state) == NOTHING  # they are gone: their room is used at once


def test_what_was_not_seen_every_time_is_not_believed() -> None:
    state = state_with_instance()
    told(state, seen(2, 1024, 2000), now=NOW + 100)
    told(state, seen(3, 4096, 7000), now=NOW + 105)
    told(state, seen(4, 1024, 2000), now=NOW + 112)
    assert foreign(state) == NOTHING


def test_our_own_attempts_are_no_strangers() -> None:
    state = state_with_instance()
    launched(state)
    for second in (100, 120):
        told(state, seen(second, 3072, 5976), now=NOW + second)
    assert foreign(state) == NOTHING
    for second in (200, 220):
        told(state, seen(second, 2048, 5000), now=NOW + second)
    assert foreign(state) == Resources(1024, 976, 0)


def test_nothing_is_concluded_while_a_launch_is_under_way() -> None:
    state = state_with_instance()
    told(state, seen(2, 1024, 2000), now=NOW + 100)
    told(state, seen(3, 1024, 2000), now=NOW + 111)
    launched(state, now=NOW + 112)
    told(state, seen(4, 1024, 2000), now=NOW + 113)  # ours is in flight: it may or may not be counted
    assert foreign(state) == Resources(3072, 5000, 0)


def test_placement_and_buying_count_on_what_strangers_leave() -> None:
    state = state_with_instance(tasks=4)
    for second in (100, 120):
        told(state, seen(second, 1024, 7000), now=NOW + second)
    actions = decide(moment_of(state, NOW + 121))
    assert len([a for a in actions if isinstance(a, Launch)]) == 1
    assert [a.spot_target for a in actions if isinstance(a, SetTarget)] == [2]


def test_gpus_that_ecs_does_not_speak_of_are_taken_to_be_free() -> None:
    registered = [
        {"name": "CPU", "type": "INTEGER", "integerValue": 8192},
        {"name": "MEMORY", "type": "INTEGER", "integerValue": 60_000},
        {"name": "GPU", "type": "STRINGSET", "stringSetValue": ["GPU-1", "GPU-2"]},
    ]
    shown: dict[str, Any] = {
        "containerInstanceArn": "arn:aws:ecs:us-east-1:1:container-instance/c/1",
        "registeredResources": registered,
    }
    assert container_instance_seen(shown, "us-east-1").remaining is None
    shown["remainingResources"] = registered[:2]
    assert container_instance_seen(shown, "us-east-1").remaining == (8192, 60_000, 2)
    shown["remainingResources"] = [*registered[:2], {"name": "GPU", "stringSetValue": ["GPU-2"]}]
    assert container_instance_seen(shown, "us-east-1").remaining == (8192, 60_000, 1)


def refused(state: State, reason: str, now: float) -> None:
    run = next(iter(state.runs.values()))
    launches = [a for a in decide(moment_of(state, now)) if isinstance(a, Launch)]
    begun(state, launches[:1], now=now)
    told(state, LaunchRefused(launches[0].key, reason), now=now)
    assert run.tasks["launch"][launches[0].key.index] > 0


def launches(state: State, now: float) -> int:
    return sum(isinstance(action, Launch) for action in decide(moment_of(state, now)))


def test_an_instance_that_had_no_room_is_left_alone_for_a_while_and_nothing_is_bought_for_that() -> None:
    state = state_with_instance(tasks=1)
    refused(state, "RESOURCE:MEMORY", NOW + 1)
    assert launches(state, NOW + 10) == 0
    assert not [a for a in decide(moment_of(state, NOW + 10)) if isinstance(a, SetTarget)]
    assert launches(state, NOW + 17) == 1
    refused(state, "RESOURCE:MEMORY", NOW + 17)
    assert launches(state, NOW + 40) == 0  # twice as long
    assert launches(state, NOW + 48) == 1


def test_what_refuses_again_and_again_is_not_counted_on_and_room_is_bought() -> None:
    state = state_with_instance(tasks=1)
    for moment in (1, 17, 48):
        refused(state, "RESOURCE:PORTS", NOW + moment)
    (target,) = [a for a in decide(moment_of(state, NOW + 55)) if isinstance(a, SetTarget)]
    assert target.spot_target == 2


def test_a_refusal_makes_the_next_sighting_of_strangers_count_at_once() -> None:
    state = state_with_instance(tasks=1)
    refused(state, "RESOURCE:CPU", NOW + 1)
    told(state, seen(2, 512, 7000), now=NOW + 2)
    assert foreign(state) == Resources(3584, 0, 0)


def test_a_task_that_is_taken_ends_the_pauses() -> None:
    state = state_with_instance(tasks=2)
    refused(state, "RESOURCE:CPU", NOW + 1)
    (launch, *_) = [a for a in decide(moment_of(state, NOW + 20)) if isinstance(a, Launch)]
    begun(state, [launch], now=NOW + 20)
    told(state, LaunchAccepted(launch.key, task_arn(1)), now=NOW + 20)
    instance = state.instances[instance_id(1)]
    assert (instance.refusals, instance.paused_until) == (0, 0.0)


@pytest.mark.parametrize("reason", ["AGENT", "MISSING", "ThrottlingException"])
def test_other_refusals_say_nothing_about_room(reason: str) -> None:
    state = state_with_instance(tasks=1)
    refused(state, reason, NOW + 1)
    assert state.instances[instance_id(1)].paused_until == 0.0


def test_what_strangers_take_outlives_a_restart_and_older_records_know_of_none() -> None:
    state = state_with_instance()
    for second in (100, 120):
        told(state, seen(second, 1024, 7000), now=NOW + second)
    items = {sort_key: body for (partition, sort_key), body in documents.changed(state).items() if partition == "STATE"}
    without_runs(state)
    again = documents.restore(1, items | {"ROOT": documents.encode({"format": documents.FORMAT, "runs": []})}, {})
    assert foreign(again) == Resources(3072, 0, 0)
    bucket = next(key for key in items if key.startswith("INSTANCES"))
    (record,) = documents.decode(items[bucket])
    older = {name: value for name, value in record.items() if name not in ("foreign", "foreign_seen", "foreign_since")}
    again = documents.restore(
        1, {bucket: documents.encode([older]), "ROOT": documents.encode({"format": documents.FORMAT, "runs": []})}, {}
    )
    assert foreign(again) == NOTHING
