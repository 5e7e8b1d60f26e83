"""Free room lies in pieces: a large task waits for a large one to end, or for many small ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from argosy.sharing.columns import Columns, Sharers
from argosy.sharing.course import BusyRuns, RoomInTime, StartCourse, course
from argosy.sharing.pieces import WHOLE, Holes, Pieces

QUARTER = WHOLE // 4


def pieces(free: list[int], instances: int = 10, sizes: tuple[int, ...] = (QUARTER, 4 * QUARTER)) -> Pieces:
    """Two runs: a task of the first takes a quarter of an instance, one of the second a whole one."""
    return Pieces.of(sizes, free, [], instances)


def start_of_large(ends_s: list[float], instances: int) -> StartCourse:
    """A small run of a queue has all places, and tasks end at those times; a large task of another queue waits."""
    columns = Columns.of([0, 1], [1_000, 1], [(1,), (4,)])
    live = (np.zeros(len(ends_s)), ends_s, np.ones(len(ends_s)))
    runs = BusyRuns.of(columns, [300.0, 300.0], live=live)
    runs = replace(runs, pieces=pieces([], instances))
    return course(runs, Sharers.of([1, 1], np.zeros((2, 1))), RoomInTime.of([len(ends_s)]), 1)


def test_pieces_are_of_the_kind_that_fits_into_them() -> None:
    holes = Holes(pieces([QUARTER, 2 * QUARTER, 4 * QUARTER, 100]))
    assert len(holes) == 1
    assert holes.free.tolist() == [4 * QUARTER]


def test_a_small_task_takes_a_small_piece_first() -> None:
    holes = Holes(pieces([QUARTER, 4 * QUARTER]))
    holes.take(np.array([1, 0]), np.ones(2))
    assert holes.free.tolist() == [4 * QUARTER]
    holes.take(np.array([1, 0]), np.ones(2))
    assert holes.free.tolist() == [3 * QUARTER]


def test_idle_pieces_that_are_more_than_lie_apart_are_one() -> None:
    holes = Holes(pieces([], instances=2))
    holes.end(np.array([0]), np.array([2]), np.ones(1))
    holes.take(np.zeros(2), np.ones(2))
    assert holes.free.tolist() == [0]
    holes.end(np.array([0]), np.array([6]), np.ones(1))
    holes.take(np.zeros(2), np.ones(2))
    assert holes.free.tolist() == [5 * QUARTER]  # half of what two instances can keep in too small pieces lies apart


def test_what_comes_is_whole() -> None:
    holes = Holes(Pieces.of([QUARTER, WHOLE], [], [WHOLE, WHOLE], 3))
    holes.come(np.array([True, False]))
    assert holes.free.tolist() == [WHOLE]


def test_of_many_sizes_few_kinds_are_told_apart() -> None:
    assert len(Holes(pieces([], sizes=tuple(range(1, 400))))) == 5


def test_a_large_task_waits_while_small_ones_take_what_small_ones_leave() -> None:
    scattered = start_of_large([30.0 * n for n in range(1, 41)], instances=10).starts_in_s
    assert scattered is not None
    assert scattered > 3_600
