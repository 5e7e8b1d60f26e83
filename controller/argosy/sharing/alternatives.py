"""How much is dealt out to runs each of which may take any of several limits instead of one?

Whoever could buy from several vCPU quotas waits only where all of them are used up. He asks for the one that he likes
best; where that is closed, he asks for the next, and what he was given before lifts his level there as well. What is
closed stays so: nobody overtakes in a limit because he could do without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argosy.sharing.columns import BoolArray, IntArray
from argosy.sharing.fill import Filled

NO_OTHER = -1  # in `Way.limit`: nothing that could be closed for this way alone


class Way(NamedTuple):
    """One way to serve a task of a run."""

    limit: int  # which of the limits the run may avoid by its other ways
    takes: tuple[int, ...]  # (limits,)


class Turn(NamedTuple):
    """What is dealt out after some was given, with every run on the way that it is on by then."""

    wants: IntArray  # (runs,) tasks more
    takes: IntArray  # (runs, limits) what each of them takes
    given: IntArray  # (runs,) tasks that it has got
    taken: IntArray  # (runs, limits) what those took


Deal = Callable[[Turn], Filled]


@dataclass(frozen=True, slots=True)
class DealtByWays:
    """Who gets what, and how."""

    counts: IntArray  # (runs, ways) tasks
    closed: BoolArray  # (limits,)
    waits: BoolArray  # (runs,) whether it waits because every way that it has is closed


def dealt_by_ways(wants: IntArray, ways: Sequence[Sequence[Way]], limits: int, deal: Deal) -> DealtByWays:
    """Every run goes its first way until that is closed. ways: by run, the best of each first."""
    runs = len(ways)
    counts = np.zeros((runs, max([1, *map(len, ways)])), dtype=np.int64)
    at, closed, taken = np.zeros(runs, dtype=np.int64), np.zeros(limits, dtype=np.bool_), np.zeros((runs, limits), int)
    while True:
        has_way = np.array([each < len(its) for each, its in zip(at.tolist(), ways, strict=True)], dtype=np.bool_)
        takes, given = _takes(ways, at, limits), counts.sum(axis=1)
        may = has_way & ~(takes[:, closed] > 0).any(axis=1)
        found = deal(Turn(np.where(may, wants - given, 0), takes, given, taken))
        counts[np.flatnonzero(has_way), at[has_way]] += found.counts[has_way]
        taken = taken + found.counts[:, None] * takes
        closed = closed | found.closed
        shut = _past_closed(ways, at, closed)
        moved = (shut > at) & (counts.sum(axis=1) < wants)
        if not moved.any():
            break
        at = np.where(moved, shut, at)
    none_left = np.array([each >= len(its) > 0 for each, its in zip(at.tolist(), ways, strict=True)], dtype=np.bool_)
    return DealtByWays(counts, closed, none_left & (counts.sum(axis=1) < wants))


def _takes(ways: Sequence[Sequence[Way]], at: IntArray, limits: int) -> IntArray:
    """(runs, limits) what a task takes that goes this way."""
    listed = [its[n].takes if n < len(its) else (0,) * limits for n, its in zip(at.tolist(), ways, strict=True)]
    return np.array(listed, dtype=np.int64).reshape(len(ways), limits)


def _past_closed(ways: Sequence[Sequence[Way]], at: IntArray, closed: BoolArray) -> IntArray:
    """(runs,) the first way of each, from its present one on, that is not closed for it."""
    found = at.copy()
    for run, its in enumerate(ways):
        while found[run] < len(its) and its[found[run]].limit != NO_OTHER and closed[its[found[run]].limit]:
            found[run] += 1
    return found
