"""Closed forms that place n equal tasks by a key and a room per candidate, each equal to one task at a time.

Candidates are in row order, so that a stable order breaks ties towards the lower row. Counts are (f,) int64. The sum
of `room` is at least n; rooms are at most n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.placement.arrays import BoolArray, IntArray, sums

_MAX_PACKED: Final = 1 << 62


def fill_in_order(key: IntArray, room: IntArray, n: int) -> IntArray:
    """The lowest key first, each candidate until it is full.

    Exact when a key never rises while its instance fills: the chosen instance then stays the best until it is full.
    """
    counts = np.zeros(len(key), dtype=np.int64)
    if n == 1:
        counts[key.argmin()] = 1
        return counts
    order = _first(key, n)
    filled = np.minimum(room.take(order).cumsum(), n)
    filled[1:] -= filled[:-1].copy()
    counts[order] = filled
    return counts


def _first(key: IntArray, n: int) -> IntArray:
    """Positions of the n lowest keys (all, if there are fewer), in order; ties to the lower position.

    Every candidate takes at least one task, so n tasks reach no further than the n best candidates.
    """
    unique = with_rows(key)
    if unique is None:
        return key.argsort(kind="stable")[:n]
    if 4 * n < len(key):
        nearest = unique.argpartition(n)[:n]
        return nearest[unique[nearest].argsort()]
    return unique.argsort()


def water_level(existing: IntArray, room: IntArray, n: int) -> tuple[IntArray, IntArray, int]:
    """Whole rounds of "to where the fewest are": counts, the positions that tie for the rest, the size of the rest.

    The level is the largest one that n tasks reach everywhere; `existing` (f,) are the tasks already there.
    """
    low, high = int(existing.min()), int(existing.max()) + n
    step = 1
    while low + step <= high and int(_poured(existing, room, low + step).sum()) <= n:
        low += step
        step *= 2
    while step > 1:
        step //= 2
        if int(_poured(existing, room, low + step).sum()) <= n:
            low += step
    counts = _poured(existing, room, low)
    rest = n - int(counts.sum())
    tied = np.flatnonzero((existing + counts == low) & (counts < room)) if rest else np.empty(0, dtype=np.int64)
    return counts, tied, rest


def _poured(existing: IntArray, room: IntArray, level: int) -> IntArray:
    return np.minimum(np.maximum(level - existing, 0), room)


def take_slots(keys: IntArray, room: IntArray, straight: BoolArray, n: int) -> tuple[IntArray, int]:
    """One at a time to the lowest key, for keys that may rise and fall: counts, and how many of the n they place.

    keys: (f, s), the key of candidate i for its j-th task, ignored beyond its room. A candidate is chosen when the
    highest of its keys so far is the lowest of all, and stays chosen while its keys stay below that: sorting by this
    running maximum, then by row, gives the order of choice. It holds up to the point where a candidate with more room
    runs out of columns. straight: (f,) bool, candidates whose keys never rise; their first key represents all their
    room.
    """
    width = keys.shape[1]
    highest = np.maximum.accumulate(keys, axis=1)
    usable = np.arange(width) < np.where(straight, 1, room)[:, None]
    owner, column = np.nonzero(usable)
    order = highest[usable].argsort(kind="stable")[:n]
    owners = owner[order]
    size = np.where(straight, room, 1)[owners]
    ends_short = (column[order] == width - 1) & ~straight[owners] & (room[owners] > width)
    if ends_short.any():
        stop = int(ends_short.argmax()) + 1
        owners, size = owners[:stop], size[:stop]
    filled = np.minimum(size.cumsum(), n)
    return sums(owners, np.diff(filled, prepend=0), len(room)), int(filled[-1])


def take_blocks(last_keys: IntArray, sizes: IntArray, room: IntArray, n: int) -> IntArray:
    """The blocks of tasks that are certainly among the first n, for keys that never fall: counts, perhaps all zero.

    last_keys: (f, b), the key of the last task of each block of each candidate. sizes: (f, b) int64, 0 beyond its room.
    A task at least as good as a given block is in a block at least as good, or in the next block of its candidate: as
    long as all of those hold at most n tasks, the blocks are settled.
    """
    flat = sizes.ravel()
    order = last_keys.ravel().argsort(kind="stable")
    order = order[flat[order] > 0]
    sure = flat[order].cumsum() + int(sizes.max(axis=1).sum()) <= n
    owner, block = np.divmod(order, last_keys.shape[1])
    beyond = (block == last_keys.shape[1] - 1) & (room > sizes.sum(axis=1))[owner]
    stop = min(int(sure.sum()), int(beyond.argmax()) if beyond.any() else len(order))
    return sums(owner[:stop], flat[order[:stop]], len(room))


def draw(room: IntArray, n: int, random: np.random.Generator) -> IntArray:
    """Each task goes to one of the candidates that still have room, all equally likely.

    Full candidates stay in and their draws are thrown away, which changes no probability and lets whole blocks be drawn
    at once.
    """
    counts = np.zeros(len(room), dtype=np.int64)
    while n:
        rooms = room - counts
        open_rows = np.flatnonzero(rooms > 0)
        share = np.full(len(open_rows), 1 / len(open_rows))
        taken = np.minimum(random.multinomial(n, share), rooms[open_rows])
        counts[open_rows] += taken
        n -= int(taken.sum())
    return counts


def combine(columns: Sequence[IntArray]) -> IntArray:
    """(n,) int64 that orders rows as the tuples of `columns` do, equal tuples alike.

    Comparable within this call only.
    """
    if len(columns) == 1:
        return columns[0]
    lows = [int(column.min(initial=0)) for column in columns]
    spans = [int(column.max(initial=0)) - low + 1 for column, low in zip(columns, lows, strict=True)]
    packed, size = columns[0] - lows[0], spans[0]
    for column, low, span in zip(columns[1:], lows[1:], spans[1:], strict=True):
        size *= span
        if size > _MAX_PACKED:
            return _ranks(columns)
        packed = packed * span + (column - low)
    return packed


def with_rows(key: IntArray) -> IntArray | None:
    """(n,) int64: the key with its position as last digit, so that all differ; None if that exceeds 62 bits."""
    low, high = int(key.min()), int(key.max())
    if (high - low + 1) * len(key) > _MAX_PACKED:
        return None
    return (key - low) * len(key) + np.arange(len(key))


def _ranks(columns: Sequence[IntArray]) -> IntArray:
    """Dense ranks of the tuples."""
    order = np.lexsort(columns[::-1])
    changes = np.zeros(len(order), dtype=np.bool_)
    for column in columns:
        sorted_column = column[order]
        changes[1:] |= sorted_column[1:] != sorted_column[:-1]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(changes)
    return ranks
