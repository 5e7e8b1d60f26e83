"""How are tasks allotted to runs that may use any of several limits?

A run that can buy from several vCPU quotas waits only when all of them are used up. It asks for its preferred quota
first and, when that is closed, for the next. Its earlier allotments raise its level there as well. A closed limit
stays closed, so no run overtakes another within a limit, whatever alternatives it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argosy.sharing.columns import BoolArray, IntArray
from argosy.sharing.fill import TaskCounts

NO_OTHER = -1  # in `Way.limit`: no single limit closes this way


class Way(NamedTuple):
    """One way to serve a task of a run."""

    limit: int  # which limits the run can avoid by its other ways
    takes: tuple[int, ...]  # (limits,)


class LaterRounds(NamedTuple):
    """Later rounds of the distribution, with every run on its current way."""

    wants: IntArray  # (runs,) remaining tasks
    takes: IntArray  # (runs, limits) what each run takes
    given: IntArray  # (runs,) tasks that each run has received
    taken: IntArray  # (runs, limits) what those took


Deal = Callable[[LaterRounds], TaskCounts]


@dataclass(frozen=True, slots=True)
class WayCounts:
    """The tasks of each run by way, and the closed limits."""

    counts: IntArray  # (runs, ways) tasks
    closed: BoolArray  # (limits,)
    waits: BoolArray  # (runs,) whether the run waits because all of its ways are closed


def dealt_by_ways(wants: IntArray, ways: Sequence[Sequence[Way]], limits: int, deal: Deal) -> WayCounts:
    """Each run uses its first way until that is closed. ways: by run, in order of preference."""
    runs = len(ways)
    counts = np.zeros((runs, max([1, *map(len, ways)])), dtype=np.int64)
    at, closed, taken = np.zeros(runs, dtype=np.int64), np.zeros(limits, dtype=np.bool_), np.zeros((runs, limits), int)
    while True:
        has_way = np.array([each < len(its) for each, its in zip(at.tolist(), ways, strict=True)], dtype=np.bool_)
        takes, given = _takes(ways, at, limits), counts.sum(axis=1)
        may = has_way & ~(takes[:, closed] > 0).any(axis=1)
        found = deal(LaterRounds(np.where(may, wants - given, 0), takes, given, taken))
        counts[np.flatnonzero(has_way), at[has_way]] += found.counts[has_way]
        taken = taken + found.counts[:, None] * takes
        closed = closed | found.closed
        shut = _past_closed(ways, at, closed)
        moved = (shut > at) & (counts.sum(axis=1) < wants)
        if not moved.any():
            break
        at = np.where(moved, shut, at)
    none_left = np.array([each >= len(its) > 0 for each, its in zip(at.tolist(), ways, strict=True)], dtype=np.bool_)
    return WayCounts(counts, closed, none_left & (counts.sum(axis=1) < wants))


def _takes(ways: Sequence[Sequence[Way]], at: IntArray, limits: int) -> IntArray:
    """(runs, limits) the needs of a task on this way."""
    listed = [its[n].takes if n < len(its) else (0,) * limits for n, its in zip(at.tolist(), ways, strict=True)]
    return np.array(listed, dtype=np.int64).reshape(len(ways), limits)


def _past_closed(ways: Sequence[Sequence[Way]], at: IntArray, closed: BoolArray) -> IntArray:
    """(runs,) the first open way of each run, from its present one on."""
    found = at.copy()
    for run, its in enumerate(ways):
        while found[run] < len(its) and its[found[run]].limit != NO_OTHER and closed[its[found[run]].limit]:
            found[run] += 1
    return found
