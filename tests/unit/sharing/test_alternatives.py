"""Runs that may use any of several limits: by hand and by the thousand."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from argosy.sharing.alternatives import NO_OTHER, LaterRounds, Way, WayCounts, dealt_by_ways
from argosy.sharing.columns import MOST, Columns, IntArray, Limits, Sharers
from argosy.sharing.fill import TaskCounts, fill
from tests.sharing_oracle import Case
from tests.ways_oracle import WaysCase, dealt, drawn_ways

AT_A_TIME = 1_000
GPU, CPU, BOTH = ((0, 1),), ((1, 1),), ((1, 1), (0, 1))


def by_ways(given: WaysCase) -> WayCounts:
    case, first = given.case, len(given.case.limits)
    capacity, free = zip(*case.limits, *given.further, strict=True)
    weight, parts, own = zip(*case.sharers, strict=True)
    used = np.array([[*its, *more] for its, more in zip(own, given.used, strict=True)], dtype=np.int64)
    sharer = np.array([each for each, _, _ in case.runs], dtype=np.int64)
    left = np.minimum(np.array(free, dtype=np.int64), MOST)

    def deal(turn: LaterRounds) -> TaskCounts:
        has: IntArray = used.copy()
        np.add.at(has, sharer, turn.taken)
        now = np.maximum(0, left - turn.taken.sum(axis=0))
        return fill(
            Columns.of(sharer, turn.wants, turn.takes), Sharers.of(weight, has, parts), Limits.of(capacity, now)
        )

    ways = [
        [
            Way(NO_OTHER if its[0] is None else first + its[0], tuple(given.takes(run, number)))
            for number, its in enumerate(given.ways[run])
        ]
        for run in range(len(case.runs))
    ]
    return dealt_by_ways(np.array([tasks for _, tasks, _ in case.runs], dtype=np.int64), ways, len(capacity), deal)


def asking(runs: list[tuple[int, int, tuple[tuple[int | None, int], ...]]], free: tuple[int, ...]) -> WaysCase:
    """Of sharers of equal weight: (sharer, tasks, ways) each. free: of limits of 100 each."""
    sharers = tuple((1, 1, ()) for _ in range(1 + max(sharer for sharer, _, _ in runs)))
    case = Case(sharers, tuple((sharer, tasks, ()) for sharer, tasks, _ in runs), ())
    nothing = tuple((0,) * len(free) for _ in sharers)
    return WaysCase(case, tuple((100, left) for left in free), nothing, tuple(ways for _, _, ways in runs))


def test_a_large_task_that_waits_for_one_limit_holds_back_no_run_that_does_not_need_it() -> None:
    """The hardest case: a run that may use either limit is between one that needs the full limit and one that needs
    the other. None of them waits for a limit that it can avoid, and the rest of the full one stays for the first."""
    runs = [(0, 1, ((0, 96),)), (1, 40, ((0, 1), (1, 1))), (2, 40, CPU)]
    found = by_ways(asking(runs, (50, 80)))
    assert found.counts.tolist() == [[0, 0], [0, 40], [40, 0]]
    assert found.waits.tolist() == [True, False, False]


def test_a_run_with_another_quota_uses_it_when_its_turn_in_the_first_ends() -> None:
    found = by_ways(asking([(0, 100, GPU), (1, 100, ((0, 1), (1, 1)))], (8, 8)))
    assert found.counts.tolist() == [[4, 0], [4, 8]]
    assert found.waits.tolist() == [True, True]


def test_what_was_given_on_one_way_counts_on_the_next() -> None:
    """The run that came through another limit has a higher level there than one that had nothing yet."""
    found = by_ways(asking([(0, 60, ((0, 1), (1, 1))), (1, 30, ((1, 1),))], (40, 30)))
    assert found.counts.tolist() == [[40, 0], [30, 0]]


def test_a_way_without_a_limit_serves_the_rest() -> None:
    found = by_ways(asking([(0, 100, ((0, 1), (None, 0))), (1, 100, GPU)], (10,)))
    assert found.counts.tolist() == [[5, 95], [5, 0]]
    assert found.waits.tolist() == [False, True]


def test_a_run_without_a_way_gets_nothing_and_waits_for_no_limit() -> None:
    found = by_ways(asking([(0, 10, ()), (1, 10, GPU)], (4,)))
    assert (found.counts.sum(axis=1).tolist(), found.waits.tolist()) == ([0, 4], [False, True])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_ways_equal_dealing_out_one_task_at_a_time(block: int) -> None:
    for seed in range(block * AT_A_TIME, (block + 1) * AT_A_TIME):
        given = drawn_ways(Random(seed))
        found, wanted = by_ways(given).counts.tolist(), dealt(given)
        assert [its[: len(ways)] for its, ways in zip(found, wanted, strict=True)] == wanted, seed
