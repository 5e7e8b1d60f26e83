"""Runs, sharers and limits as columns.

A limit is anything finite in the deployment (instances, launches of a tick, memory of a cluster that may not grow),
each in its own unit. A sharer has a share of the limits: a queue, or an owner within one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

MOST = (1 << 33) - 1  # of one limit, or of what a task takes of it: see `levels.scaled`
MOST_WEIGHT = 1_000  # also the most owners that divide a weight: with `MOST`, products stay below 2^43
ONE_FACTOR, MOST_FACTOR = 64, 256  # factors of weights, in 64ths, range from a quarter to four


def clipped(given: ArrayLike, least: int = 0, most: int = MOST) -> IntArray:
    """`np.clip`, which takes three times as long. What a task takes is clipped to MOST + 1, above any free amount: it
    then fits nowhere."""
    found: IntArray = np.minimum(np.maximum(np.asarray(given, dtype=np.int64), least), most)
    return found


@dataclass(frozen=True, slots=True)
class Limits:
    """The capacity of each limit and the free part of it; shape (limits,)."""

    capacity: IntArray
    free: IntArray

    @classmethod
    def of(cls, capacity: ArrayLike, free: ArrayLike) -> Limits:
        """Clips amounts so that sums cannot overflow. Overuse counts as 0 free."""
        return cls(clipped(capacity), clipped(free))

    def __len__(self) -> int:
        return len(self.capacity)

    def first(self) -> Limits:
        """The first limit alone."""
        return Limits(self.capacity[:1], self.free[:1])


@dataclass(frozen=True, slots=True)
class Sharers:
    """The sharers of the limits, in the order that breaks ties."""

    weight: IntArray  # (sharers,); 0 = served only when no other sharer has demand
    parts: IntArray  # (sharers,) the number of equal parts of that weight
    used: IntArray  # (sharers, limits) what it uses now
    factor: IntArray  # (sharers,) the factor of its weight, in parts of ONE_FACTOR (`history`)

    @classmethod
    def of(cls, weight: ArrayLike, used: ArrayLike, parts: ArrayLike = 1, factor: ArrayLike = ONE_FACTOR) -> Sharers:
        """Weights from 0 to MOST_WEIGHT, parts from 1 to MOST_WEIGHT, factors from 1 to MOST_FACTOR."""
        weights = clipped(weight, 0, MOST_WEIGHT)
        divided = clipped(np.broadcast_to(parts, weights.shape), 1, MOST_WEIGHT)
        times = clipped(np.broadcast_to(factor, weights.shape), 1, MOST_FACTOR)
        return cls(weights, divided, clipped(used), times)


@dataclass(frozen=True, slots=True)
class Columns:
    """Runs with tasks that could start, sorted by sharer and, within one, by turn."""

    sharer: IntArray  # (runs,) row of `Sharers`
    wants: IntArray  # (runs,) tasks
    takes: IntArray  # (runs, limits) what a task takes of each limit

    @classmethod
    def of(cls, sharer: ArrayLike, wants: ArrayLike, takes: ArrayLike) -> Columns:
        """Raises ValueError if the runs are not sorted by sharer."""
        sharers, counts = np.asarray(sharer, dtype=np.int64), np.asarray(wants, dtype=np.int64)
        if (np.diff(sharers) < 0).any():
            raise ValueError("runs have to be sorted by sharer")
        return cls(sharers, np.maximum(counts, 0), clipped(takes, most=MOST + 1))
