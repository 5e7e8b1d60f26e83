"""Random draws among equal candidates, the same one task at a time as for many at once.

A draw is a function of the chain's seed, the batch's position in the queue, and the task's number in the batch:
SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) at that place of the seed's sequence. Nothing is kept between draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from argosy.placement.arrays import IntArray

SMALL_BATCH: Final = 8  # tasks: batches up to here draw task by task, larger ones many at once (kernels.draw)
_GAMMA: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1
_BITS: Final = 53


@dataclass(frozen=True, slots=True)
class TaskDraws:
    """The draws of the tasks of one batch."""

    seed: int
    position: int
    """Of the batch in the queue."""

    def pick(self, number: int, candidates: int) -> int:
        """The candidate that the task with this number, from 0, draws. All are equally likely, to 2^-53."""
        place = self.position * SMALL_BATCH + number + 1
        mixed = _mix((_mix(self.seed & _MASK) + place * _GAMMA) & _MASK)
        return pick(mixed >> (64 - _BITS), candidates)


def pick(drawn: int, candidates: int) -> int:
    """drawn: from 0 to 2^53 - 1."""
    return drawn * candidates >> _BITS


def draws_of(seeds: IntArray, positions: IntArray, numbers: IntArray) -> list[int]:
    """The draws of `TaskDraws` for many tasks, each a number from 0 to 2^53 - 1."""
    with np.errstate(over="ignore"):
        start = _mixed(seeds.astype(np.uint64))
        place = (positions * SMALL_BATCH + numbers + 1).astype(np.uint64)
        drawn = _mixed(start + place * np.uint64(_GAMMA))
    found: list[int] = (drawn >> np.uint64(64 - _BITS)).tolist()
    return found


def _mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def _mixed(z: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """`_mix` for a column."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
