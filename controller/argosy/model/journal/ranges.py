"""How are many equal changes one line? Rows are grouped by what is equal in them, and named by ranges of indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_RANGES = 2_000  # of one line: about 30 KB


def grouped(keys: Sequence[NDArray[Any]], indexes: NDArray[Any]) -> Iterator[tuple[tuple[Any, ...], list[list[int]]]]:
    """The values of `keys` that occur together, and the ranges of the indexes of the rows with them. What has more than
    MOST_RANGES comes in several pieces. keys: columns of equal length, `indexes` as well."""
    if not len(indexes):
        return
    order = np.lexsort([indexes, *keys[::-1]])
    columns, sorted_indexes = [key[order] for key in keys], indexes[order].astype(np.int64)
    changes = np.zeros(len(order) - 1, dtype=np.bool_)
    for column in columns:
        changes |= column[1:] != column[:-1]
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    together = zip(*(column[starts].tolist() for column in columns), strict=True)
    for values, (start, end) in zip(together, pairwise([*starts, len(order)]), strict=True):
        found = ranges(sorted_indexes[start:end])
        for first in range(0, len(found), MOST_RANGES):
            yield values, found[first : first + MOST_RANGES]


def ranges(indexes: NDArray[np.int64]) -> list[list[int]]:
    """Ascending indexes as [first, last] of each unbroken stretch."""
    if len(indexes) == 1:  # most often
        return [[int(indexes[0])] * 2]
    breaks = np.flatnonzero(np.diff(indexes) != 1)
    firsts, lasts = indexes[np.r_[0, breaks + 1]], indexes[np.r_[breaks, len(indexes) - 1]]
    return [list(pair) for pair in zip(firsts.tolist(), lasts.tolist(), strict=True)]


def indexes_of(pairs: Sequence[Sequence[int]]) -> Iterator[int]:
    """The inverse of `ranges`."""
    for first, last in pairs:
        yield from range(first, last + 1)
