"""Who waits, for how much of which limit? Runs and limits as columns.

A limit is anything that the deployment has a finite amount of (instances, launches of a tick, memory of a cluster that
may not grow), each in a unit of its own. A sharer is who has a share of them: a queue, or an owner within one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

MOST = (1 << 33) - 1  # of one limit, or of what a task takes of it: see `levels.scaled`
MOST_WEIGHT = 1_000  # and most owners among whom a weight is divided: with `MOST`, products stay below 2^43
ONE_FACTOR, MOST_FACTOR = 64, 256  # by which a weight counts more or less: in 64ths, from a quarter to four times


@dataclass(frozen=True, slots=True)
class Limits:
    """What there is of each limit, and what of it is free; shape (limits,)."""

    capacity: IntArray
    free: IntArray

    @classmethod
    def of(cls, capacity: ArrayLike, free: ArrayLike) -> Limits:
        """Amounts are cut to what can be added without overflow. What is over-used is not free."""
        return cls(_amounts(capacity), _amounts(free))

    def __len__(self) -> int:
        return len(self.capacity)

    def first(self) -> Limits:
        """The first of them alone."""
        return Limits(self.capacity[:1], self.free[:1])


@dataclass(frozen=True, slots=True)
class Sharers:
    """Who shares the limits, in the order in which ties are decided."""

    weight: IntArray  # (sharers,); 0 = gets what nobody else wants
    parts: IntArray  # (sharers,) into how many equal parts that weight is divided
    used: IntArray  # (sharers, limits) what it uses now
    factor: IntArray  # (sharers,) in parts of ONE_FACTOR: by how much its weight counts more or less (`history`)

    @classmethod
    def of(cls, weight: ArrayLike, used: ArrayLike, parts: ArrayLike = 1, factor: ArrayLike = ONE_FACTOR) -> Sharers:
        """Weights from 0 to MOST_WEIGHT, parts from 1 to MOST_WEIGHT, factors from 1 to MOST_FACTOR."""
        weights = np.clip(np.asarray(weight, dtype=np.int64), 0, MOST_WEIGHT)
        divided = np.clip(np.broadcast_to(np.asarray(parts, dtype=np.int64), weights.shape), 1, MOST_WEIGHT)
        times = np.clip(np.broadcast_to(np.asarray(factor, dtype=np.int64), weights.shape), 1, MOST_FACTOR)
        return cls(weights, divided, _amounts(used), times)


@dataclass(frozen=True, slots=True)
class Columns:
    """Runs with tasks that could start, sorted by sharer and, within one, by whose turn is first."""

    sharer: IntArray  # (runs,) row of `Sharers`
    wants: IntArray  # (runs,) tasks
    takes: IntArray  # (runs, limits) what a task takes of each limit

    @classmethod
    def of(cls, sharer: ArrayLike, wants: ArrayLike, takes: ArrayLike) -> Columns:
        """Raises ValueError where the runs are not sorted by sharer."""
        sharers, counts = np.asarray(sharer, dtype=np.int64), np.asarray(wants, dtype=np.int64)
        if (np.diff(sharers) < 0).any():
            raise ValueError("runs have to be sorted by sharer")
        return cls(sharers, np.maximum(counts, 0), _amounts(takes, MOST + 1))


def _amounts(given: ArrayLike, most: int = MOST) -> IntArray:
    """`most` for what tasks take is above what any limit has free: a task that was cut fits nowhere."""
    return np.clip(np.asarray(given, dtype=np.int64), 0, most)
