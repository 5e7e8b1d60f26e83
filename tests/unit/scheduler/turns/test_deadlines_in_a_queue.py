"""The order within a queue: priority, then runs that can still meet their deadline, then age."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from argosy.model.actions import Launch
from argosy.model.moment import Moment
from argosy.model.state import State
from argosy.scheduler.turns import fair_order
from argosy.scheduler.turns.fair_order import FairOrder
from tests.builders import NOW, POLICY, begun, fleet, moment_of, state_with
from tests.shared_clusters import cluster, decided, launches, run, shared

TWO = {"version": 1, "queues": {"a": {}, "b": {}}}
HOUR_S = 3_600.0


def due_in(seconds: float) -> dict[str, Any]:
    return {"capacity": {"deadline": datetime.fromtimestamp(NOW + seconds, UTC).isoformat()}}


def lasting(tasks: int, seconds: float = 60.0) -> dict[str, Any]:
    return {"array": {"size": tasks, "expectedSeconds": seconds}}


def at(state: State, later_s: float = 0.0, instances: int = 4) -> Moment:
    return moment_of(state, NOW + later_s, replace(POLICY, max_instances=instances))


def order(state: State, later_s: float = 0.0, instances: int = 4) -> list[str]:
    moment, runs = at(state, later_s, instances), list(state.runs.values())
    return [each.id for each in FairOrder.of(state, runs, fair_order.latest_starts(moment, runs)).runs]


def test_the_run_that_must_begin_first_comes_first_whichever_is_older() -> None:
    state = cluster(4)
    old, later, soon = run(state, 1, 40), run(state, 2, 40, **due_in(4 * HOUR_S)), run(state, 3, 10, **due_in(HOUR_S))
    assert order(state) == [soon, later, old]
    assert launches(decided(state, max_instances=4)) == {soon: 10, later: 6}


def test_not_the_deadline_but_what_is_left_to_do_decides() -> None:
    state = cluster(4)
    short = run(state, 1, 4, **lasting(4), **due_in(HOUR_S))
    long = run(state, 2, 4, **lasting(4, 1_800.0), **due_in(1.2 * HOUR_S))
    wide = run(state, 3, 1_600, **lasting(1_600), **due_in(2 * HOUR_S))  # 16 at once, so 100 minutes
    assert order(state) == [wide, long, short]


def test_priority_comes_before_a_deadline() -> None:
    state = cluster(4)
    soon, high = run(state, 1, 10, **due_in(HOUR_S)), run(state, 2, 10, priority=1)
    assert order(state) == [high, soon]


def test_a_late_run_is_ordered_as_without_its_deadline() -> None:
    state = cluster(4)
    old = run(state, 1, 4)
    late = run(state, 2, 4, **lasting(4, 600.0), **due_in(500.0))
    new, soon = run(state, 3, 4), run(state, 4, 4, **lasting(4, 400.0), **due_in(500.0))
    assert order(state) == [soon, old, late, new]
    assert order(state, 200.0) == [old, late, new, soon]


def test_an_estimate_of_durations_makes_no_run_late() -> None:
    state = cluster(4)
    old, unknown = run(state, 1, 4), run(state, 2, 1_000, **due_in(900.0))
    assert order(state) == [unknown, old]
    assert order(state, 901.0) == [old, unknown]
    state.runs[unknown].note_duration(600.0)
    assert order(state) == [old, unknown]


def test_a_deadline_gives_no_share_of_another_queue() -> None:
    state = shared(cluster(4), TWO)
    without, soon = run(state, 1, 1_000, queue="a"), run(state, 2, 1_000, queue="b", **due_in(40 * HOUR_S))
    assert launches(decided(state, max_instances=4)) == {without: 8, soon: 8}


def test_of_two_that_are_alike_the_older_one_stays_first_while_time_passes() -> None:
    state = cluster(4)
    first, second = run(state, 1, 100, **due_in(HOUR_S)), run(state, 2, 100, **due_in(HOUR_S + 0.5))
    assert {tuple(order(state, later_s)) for later_s in range(0, 1_500, 7)} == {(first, second)}


def test_a_cluster_that_may_grow_is_counted_at_its_largest() -> None:
    state = cluster(1)
    name = run(state, 1, 400, **lasting(400), **due_in(HOUR_S))
    assert not fair_order.latest_starts(at(state, instances=1), [state.runs[name]])  # four at once: 100 minutes
    assert fair_order.latest_starts(at(state, instances=4), [state.runs[name]])


def test_of_a_cluster_without_instances_nothing_is_known() -> None:
    state = state_with(fleet())
    name = run(state, 1, 400, **lasting(400), **due_in(HOUR_S))
    assert fair_order.latest_starts(at(state), [state.runs[name]]) == {name: int((NOW + HOUR_S - 60) // 60)}


@pytest.mark.parametrize(
    "more",
    [
        {"placement": {"maxConcurrentTasks": 1}},
        {"placement": {"maxTasksPerInstance": 1}, "capacity": {"maxInstances": 1}},
    ],
)
def test_what_a_run_may_have_at_once_is_counted(more: dict[str, Any]) -> None:
    state = cluster(4)
    capacity = {**due_in(HOUR_S)["capacity"], **more.get("capacity", {})}
    few = run(state, 1, 64, **lasting(64), **(more | {"capacity": capacity}))
    assert not fair_order.latest_starts(at(state), [state.runs[few]])


def test_what_has_ended_is_not_left_to_do() -> None:
    state = cluster(4)
    name = run(state, 1, 16, **lasting(16), **due_in(HOUR_S))
    begun(state, [each for each in decided(state, max_instances=4) if isinstance(each, Launch)])
    state.runs[name].note_duration(1_200.0)
    assert fair_order.latest_starts(at(state), [state.runs[name]]) == {name: int((NOW + HOUR_S - 1_200) // 60)}


def plainly(drawn: list[tuple[int, int, float | None, int, float]], places: int) -> list[int]:
    """Sorted by hand. drawn: priority, tasks, deadline in seconds, number, seconds of a task."""

    def key(each: tuple[int, int, float | None, int, float]) -> tuple[int, float, int]:
        priority, tasks, due_s, number, seconds = each
        if due_s is None:
            return -priority, math.inf, number
        rest_s = seconds if tasks <= places else seconds + (tasks - 1) * seconds / places
        begin = math.floor((NOW + due_s - rest_s) / 60)
        return -priority, begin if due_s >= rest_s else math.inf, number

    return [each[3] for each in sorted(drawn, key=key)]


@pytest.mark.parametrize("seed", range(60))
def test_the_order_is_that_of_a_plain_sort(seed: int) -> None:
    random, state = Random(seed), cluster(2)
    drawn = [
        (
            random.choice((0, 0, 0, 5)),
            random.choice((1, 8, 30, 500)),
            random.choice((None, 600.0, 3_600.0, random.randint(60, 20_000))),
            number,
            random.choice((10.0, 60.0, 1_000.0)),
        )
        for number in range(1, 12)
    ]
    names = {}
    for priority, tasks, due_s, number, seconds in drawn:
        more = {} if due_s is None else due_in(due_s)
        names[number] = run(state, number, tasks, priority=priority, **lasting(tasks, seconds), **more)
    assert order(state, instances=2) == [names[number] for number in plainly(drawn, 8)]


def test_a_run_that_waits_for_its_first_gpu_is_not_late_for_that() -> None:
    state = cluster(4)
    old = run(state, 1, 40)
    gpus = {"resources": {"vcpus": 1, "memory": 1024, "gpus": 1}}
    waits = run(state, 2, 100, **lasting(100, HOUR_S), **due_in(10 * HOUR_S), **gpus)
    assert order(state, instances=100) == [waits, old]
