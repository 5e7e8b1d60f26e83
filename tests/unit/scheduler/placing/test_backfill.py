"""Short tasks in room that is kept for another run: only those that are gone before it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from argosy.model.actions import YieldInstance
from argosy.model.events import LaunchAccepted
from argosy.model.resources import Resources
from argosy.model.state import State
from argosy.scheduler.supply.kept_instances import SEEN, first_fit, kept_for_runs, longest_stay_s, needed_from
from tests.builders import NOW, POLICY, begun, moment_of, task, task_arn, told
from tests.shared_clusters import cluster, decided, launches, run

LONG_S = 600.0
INSTANCE = "i-00000000000000000"
GPU = {"resources": {"vcpus": 1, "gpus": 1}}


def within(seconds: float) -> dict[str, Any]:
    return {"timeout": {"attemptDurationSeconds": seconds}}


def emptying(tasks: int = 3, seen: int = SEEN, holder: dict[str, Any] | None = None, since: float = NOW) -> State:
    """An instance with four places on which that many long tasks have just begun, emptied for a run whose tasks do not
    fit there."""
    state = cluster(1)
    name = run(state, 1, tasks)
    begun(state, decided(state, max_instances=1))
    for row in state.attempts.live().tolist():
        key = state.key_of(row)
        assert key is not None
        told(state, LaunchAccepted(key, task_arn(row)))
        told(state, task(row, started_at=NOW))
    for _ in range(seen):
        state.runs[name].note_duration(LONG_S)
    holder_id = run(state, 2, 1, **(GPU if holder is None else holder))
    begun(state, [YieldInstance(INSTANCE, holder_id, 1, NOW + 3_600.0)], since)
    return state


def started(state: State, name: str) -> int:
    return launches(decided(state, max_instances=1))[name]


def test_a_task_that_is_gone_in_time_starts_on_an_instance_that_is_being_emptied() -> None:
    state = emptying()
    assert started(state, run(state, 3, 5, **within(60))) == 1


def test_what_might_still_be_there_then_does_not() -> None:
    state = emptying()
    most = int(LONG_S - longest_stay_s(state.runs[run(state, 3, 5, **within(60))], POLICY) + 60)
    assert started(state, run(state, 4, 5, **within(most), priority=1)) == 1
    assert started(state, run(state, 5, 5, **within(most + 1), priority=2)) == 0


def test_work_of_unknown_duration_does_not() -> None:
    state = emptying()
    assert started(state, run(state, 3, 5)) == 0
    assert started(state, run(state, 4, 5, array={"size": 5, "expectedSeconds": 1})) == 0  # so it says


def test_what_was_seen_often_enough_counts_half_as_long_again() -> None:
    state = emptying()
    name = run(state, 3, 5)
    for _ in range(SEEN - 1):
        state.runs[name].note_duration(100.0)
    assert started(state, name) == 0
    state.runs[name].note_duration(300.0)
    assert longest_stay_s(state.runs[name], POLICY) == pytest.approx(450 + 60 + POLICY.start_s)
    assert started(state, name) == 1


def test_if_no_end_of_the_others_is_known_nothing_starts() -> None:
    state = emptying(seen=SEEN - 1)
    assert started(state, run(state, 3, 5, **within(60))) == 0


def test_room_that_the_other_run_could_use_at_once_is_left_to_it() -> None:
    state = emptying(holder={"resources": {"vcpus": 1}})
    moment = moment_of(state)
    assert needed_from(moment, kept_for_runs(state, NOW)) == {}
    assert started(state, run(state, 3, 5, **within(60))) == 0


def test_what_came_in_later_does_not_put_the_moment_off() -> None:
    state = emptying(tasks=2)
    short = run(state, 3, 1, **within(60))
    moment = moment_of(state)
    before = needed_from(moment, kept_for_runs(state, NOW))
    begun(state, decided(state, max_instances=1), NOW + 1)
    assert len(state.attempts.of_run(state.runs[short].number)) == 1
    for _ in range(SEEN):
        state.runs[short].note_duration(2 * LONG_S)
    assert needed_from(moment, kept_for_runs(state, NOW)) == before == {INSTANCE: NOW + LONG_S}
    for row in state.attempts.of_run(1).tolist():
        told(state, task(row, "STOPPED", 3, stopped_at=NOW + 5, exit_code=0), now=NOW + 5)
    assert needed_from(moment, kept_for_runs(state, NOW)) == {}  # they are gone, and so nothing more may start


def test_an_instance_that_an_earlier_version_began_to_empty_takes_nothing() -> None:
    state = emptying()
    state.instances[INSTANCE].yields_since = 0.0
    assert started(state, run(state, 3, 5, **within(60))) == 0


def test_a_task_that_is_being_stopped_may_be_gone_at_once() -> None:
    state = emptying(tasks=1)
    (row,) = state.attempts.live().tolist()
    state.attempts.set(row, stop_cause=1, stop_at=NOW)
    assert started(state, run(state, 3, 5, **within(60))) == 0


def test_a_time_out_counts_with_the_time_to_answer_it() -> None:
    state = cluster(1)
    assert longest_stay_s(state.runs[run(state, 1, 5, **within(60))], POLICY) == 60 + 120 + 60 + POLICY.start_s


Timed = tuple[float, Resources]


def holder_starts(needs: Resources, free: Resources, running: Sequence[Timed], guests: Sequence[Timed]) -> float:
    """When the task for which room is kept finds it, or the instance is empty: one end after the other."""
    left = [has - sum(each[1][axis] for each in guests) for axis, has in enumerate(free)]
    for at, taken in sorted([(0.0, Resources(0, 0, 0)), *running, *guests], key=lambda each: each[0]):
        left = [has + more for has, more in zip(left, taken, strict=True)]
        if all(has >= need for has, need in zip(left, needs, strict=True)):
            return at
    return max(at for at, _ in [*running, *guests])


@pytest.mark.parametrize("seed", range(400))
def test_the_run_with_reserved_room_starts_no_later_than_without_a_guest(seed: int) -> None:
    """Earlier tasks end no sooner than the shortest of their runs, and guests end within their bounds."""
    random = Random(seed)
    sizes = [Resources(random.randint(0, 4), random.randint(0, 4), random.randint(0, 1)) for _ in range(5)]
    earliest = [random.uniform(1, 100) for _ in sizes]
    really = [(at * random.choice((1, 1, 1.5)), size) for at, size in zip(earliest, sizes, strict=True)]
    free = Resources(*(random.randint(0, 6) for _ in range(3)))
    needs = Resources(random.randint(0, 12), random.randint(0, 12), random.randint(0, 3))
    until = first_fit(needs, free, list(zip(earliest, sizes, strict=True)), 0.0)
    left, guests = free, list[Timed]()
    for _ in range(6):
        size = Resources(random.randint(0, 2), random.randint(0, 2), random.randint(0, 1))
        stay = random.uniform(1, 100)
        if until > 0 and stay <= until and all(a >= b for a, b in zip(left, size, strict=True)):
            left = left.minus(size)
            guests.append((stay, size))
    assert holder_starts(needs, free, really, guests) == holder_starts(needs, free, really, [])
