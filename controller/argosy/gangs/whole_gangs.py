"""Where do whole gangs go: each on distinct instances of one zone, or not at all?

A gang takes the first zone in which enough instances have room, and there the instances with most room left; ties go to
the lower row. `tests/unit/gangs` has the loop that places one gang at a time, with which this always agrees.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def whole_gangs(room: IntArray, zone: IntArray, size: int, most: int) -> IntArray:
    """(n, size): the rows of each gang by rank, n <= most. room: (m,) tasks that each row takes. zone: (m,) codes, in
    the order in which zones are tried.

    Two gangs of two on three instances with room for one task each, all in one zone: the second does not fit.

    >>> whole_gangs(np.array([1, 1, 1]), np.array([0, 0, 0]), 2, 2).tolist()
    [[0, 1]]
    """
    found = [np.empty((0, size), dtype=np.int64)]
    for code in np.unique(zone[room > 0]).tolist():
        rows = np.flatnonzero((zone == code) & (room > 0))
        placed = _in_zone(rows, room[rows], size, most)
        most -= len(placed)
        found.append(placed)
    return np.concatenate(found)


def _in_zone(rows: IntArray, room: IntArray, size: int, most: int) -> IntArray:
    if len(rows) < size or most <= 0:
        return np.empty((0, size), dtype=np.int64)
    if (room == room[0]).all():
        return rows[_in_turn(len(rows), int(room[0]), size, most)]
    left, found = room.copy(), list[IntArray]()
    while len(found) < most:
        chosen = np.sort(np.argsort(-left, kind="stable")[:size])
        if left[chosen].min() <= 0:
            break
        left[chosen] -= 1
        found.append(rows[chosen])
    return np.array(found, dtype=np.int64).reshape(-1, size)


def _in_turn(rows: int, room: int, size: int, most: int) -> IntArray:
    """Instances with equal room are used in turn: those with most room left are the ones that were used least."""
    gangs = min(most, rows * room // size)
    turns = np.arange(gangs * size, dtype=np.int64).reshape(-1, size)
    return np.sort(turns % rows, axis=1)
