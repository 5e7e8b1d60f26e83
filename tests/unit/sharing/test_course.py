"""When a waiting run starts: by hand, and by the thousand against one step and one task at a time."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from argosy.sharing.columns import Columns, Sharers
from argosy.sharing.course import BusyRuns, RoomInTime, StartCourse, course, ends_in_s
from tests.course_oracle import TimedCase, drawn_in_time, plain_course, plain_end

HORIZON_S = 3_600.0


def laid_out(case: TimedCase) -> tuple[BusyRuns, Sharers, RoomInTime, int]:
    sharer, wants, takes, seconds, most = zip(*case.runs, strict=True)
    who, left = ([each[n] for each in case.live] for n in (0, 1))
    runs = BusyRuns.of(Columns.of(sharer, wants, takes), seconds, most, (who, left, [1] * len(who)))
    weight, parts = zip(*case.sharers, strict=True)
    sharers = Sharers.of(weight, np.zeros((len(weight), len(case.capacity))), parts)
    comes_in, comes = ([each[n] for each in case.comes] for n in (0, 1))
    return runs, sharers, RoomInTime.of(case.capacity, comes_in, comes, case.starts), case.row


def found(case: TimedCase, horizon_s: float = HORIZON_S) -> StartCourse:
    return course(*laid_out(case), horizon_s)


def end(case: TimedCase, horizon_s: float = HORIZON_S) -> float | None:
    return ends_in_s(*laid_out(case), horizon_s)


def one_limit(runs: list[tuple[int, int, float]], places: int, row: int, **more: object) -> StartCourse:
    """runs: sharer, tasks, seconds; each task takes one place, and each sharer has the weight 1."""
    sharers = ((1, 1),) * (max(owner for owner, _, _ in runs) + 1)
    rows = tuple((owner, tasks, (1,), seconds, 10**6) for owner, tasks, seconds in runs)
    values = {"live": (), "comes": (), "starts": math.inf, **more}
    return found(TimedCase(sharers, rows, capacity=(places,), row=row, **values), 10**6)  # type: ignore[arg-type]


def test_a_run_with_room_starts_at_once() -> None:
    assert one_limit([(0, 4, 60.0)], places=4, row=0).starts_in_s == 0


def test_what_comes_first_has_to_start_first() -> None:
    told = one_limit([(0, 40, 60.0), (0, 1, 60.0)], places=4, row=1)
    assert told.starts_in_s == 600
    assert (told.ahead.tolist(), told.ended) == ([40, 0], 40)


def test_another_queue_is_not_waited_for() -> None:
    told = one_limit([(0, 4_000, 60.0), (1, 1, 60.0)], places=4, row=1, live=((0, 50.0),) * 4)
    assert (told.starts_in_s, told.ahead.tolist()) == (60, [1, 0])  # of those that stand alike, the first


def test_what_is_behind_it_in_its_queue_does_not_come_first() -> None:
    assert one_limit([(0, 1, 60.0), (0, 900, 60.0)], places=1, row=0, live=((1, 50.0),)).starts_in_s == 60


def test_room_that_is_ordered_is_waited_for() -> None:
    assert one_limit([(0, 1, 60.0)], places=0, row=0, comes=((180.0, (4,)),)).starts_in_s == 180


def test_a_place_serves_many_short_tasks_in_a_step() -> None:
    assert one_limit([(0, 100, 3.0), (0, 1, 3.0)], places=1, row=1).starts_in_s == 300


def test_where_nothing_ends_nothing_starts() -> None:
    assert one_limit([(0, 1, 60.0)], places=1, row=0, live=((0, math.inf),)).starts_in_s is None
    assert one_limit([(0, 9, math.inf), (0, 1, 60.0)], places=4, row=1).starts_in_s is None


def test_a_task_that_is_too_large_never_starts() -> None:
    case = TimedCase(((1, 1),), ((0, 1, (5,), 60.0, 9),), (), (4,), (), math.inf, 0)
    assert found(case).starts_in_s is None


def test_far_off_steps_are_longer_by_little() -> None:
    told = one_limit([(0, 100_000, 600.0), (0, 1, 60.0)], places=100, row=1)
    assert told.starts_in_s == pytest.approx(600_000, rel=0.05)


def test_the_course_equals_the_plain_one() -> None:
    random = Random(46)
    for number in range(400):
        case = drawn_in_time(random)
        told = found(case)
        assert (told.starts_in_s, told.ahead.tolist(), told.ended) == plain_course(case, HORIZON_S), (number, case)


def test_so_does_the_end_of_a_run() -> None:
    random = Random(51)
    for number in range(300):
        case = drawn_in_time(random)
        assert end(case) == plain_end(case, HORIZON_S), (number, case)


def test_a_run_ends_when_its_last_task_does() -> None:
    case = TimedCase(((1, 1),), ((0, 8, (1,), 60.0, 9),), ((0, 50.0),) * 4, (4,), (), math.inf, 0)
    assert end(case) == 180.0


@pytest.mark.deep
def test_the_course_equals_the_plain_one_ten_thousand_times() -> None:
    random = Random(47)
    for number in range(10_000):
        case = drawn_in_time(random)
        told = found(case)
        assert (told.starts_in_s, told.ahead.tolist(), told.ended) == plain_course(case, HORIZON_S), (number, case)
