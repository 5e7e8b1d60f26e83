"""How few instances of one size hold a known backlog? A portfolio of heuristics, the best kept, beside a bound none can
beat.

Nothing here looks at single tasks: work is (shape, count), bins are (contents, how many alike). No heuristic wins
everywhere (Panigrahy et al., "Heuristics for Vector Bin Packing", 2011), and all are cheap: so all are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from argosy.placement.arrays import MAX_AMOUNT, MAX_TASKS, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """`times[i]` instances hold `patterns[i]` each: (p, k) int64 tasks by shape.

    `method` says which heuristic it was.
    """

    patterns: IntArray
    times: IntArray
    instances: int
    lower_bound: int
    unplaced: IntArray
    """(k,) int64: tasks of shapes that are too large for an empty instance."""
    method: str


Order = Callable[[FloatArray], FloatArray]
"""Sizes as shares of an instance (k, a) -> how large each shape is, (k,)."""
Score = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""(shares needed (k, a), shares left (a,), weights (a,)) -> how well each shape fits, (k,): the largest is packed
next.
"""

ORDERS: Final[dict[str, Order]] = {
    "product": lambda size: np.prod(np.maximum(size, 1e-6), axis=1),
    "sum": lambda size: size.sum(axis=1),
    "maximum": lambda size: size.max(axis=1),
}


def _dot(size: FloatArray, left: FloatArray, weights: FloatArray) -> FloatArray:
    return (size * left) @ weights


def _euclid(size: FloatArray, left: FloatArray, weights: FloatArray) -> FloatArray:
    return -(((left - size) ** 2) @ weights)


def _cosine(size: FloatArray, left: FloatArray, weights: FloatArray) -> FloatArray:
    asked, offered = size * weights, left * weights
    alignment: FloatArray = (asked @ offered) / np.maximum(
        np.sqrt((asked * asked).sum(axis=1) * (offered * offered).sum()), 1e-12
    )
    return alignment


def _aligned(power: int) -> Score:
    """Large tasks first, but the more so the better they point where there is room."""
    return lambda size, left, weights: _cosine(size, left, weights) ** power * (size @ weights)


# With weights by how scarce each axis is. The powers are the ones that won on mixed two-axis backlogs, between 2 and
# 64.
SCORES: Final[dict[str, Score]] = {
    "cosine": _cosine,
    "cosine^4 * size": _aligned(4),
    "cosine^16 * size": _aligned(16),
    "euclid": _euclid,
    "dot-product": _dot,
}
_MANY_SHAPES: Final = 512  # above, only the two heuristics that won most often are worth their time


def pack(shapes: IntArray, counts: IntArray, capacity: Sequence[int]) -> Packing:
    """The best packing found of `counts[i]` tasks of `shapes[i]` (k, 3) into instances that offer `capacity` (3,).

    ValueError for a negative number or one beyond `MAX_AMOUNT` or `MAX_TASKS`.
    """
    shapes, offered = np.asarray(shapes, dtype=np.int64).reshape(-1, 3), np.asarray(capacity, dtype=np.int64)
    counts = np.asarray(counts, dtype=np.int64)
    _refuse_impossible(shapes, counts, offered)
    fits = (shapes <= offered).all(axis=1)
    unplaced = np.where(fits, 0, counts)
    some = np.flatnonzero(fits & (counts > 0) & (shapes > 0).any(axis=1))
    weightless = np.flatnonzero(fits & (counts > 0) & ~(shapes > 0).any(axis=1))
    axes = np.flatnonzero((shapes[some] > 0).any(axis=0)) if len(some) else np.arange(1)
    bound = max(lower_bound(shapes[some], counts[some], offered), int(len(weightless) > 0))
    best: tuple[int, str, list[tuple[IntArray, int]]] | None = None
    for method, bins in _portfolio(shapes[some][:, axes], counts[some], offered[axes]):
        used = sum(times for _, times in bins)
        if best is None or used < best[0]:
            best = used, method, bins
        if used <= bound:
            break
    used, method, bins = best if best is not None else (0, "", [])
    patterns = np.zeros((len(bins), len(shapes)), dtype=np.int64)
    if bins:
        patterns[:, some] = [pattern for pattern, _ in bins]
    times = np.array([times for _, times in bins], dtype=np.int64)
    return Packing(*_with_weightless(patterns, times, weightless, counts), max(used, bound), bound, unplaced, method)


def lower_bound(shapes: IntArray, counts: IntArray, capacity: IntArray) -> int:
    """No packing needs fewer instances: the largest of the axes' own bounds (Martello and Toth's L2, 1990)."""
    if not counts.sum():
        return 0
    return max(_axis_bound(shapes[:, axis], counts, int(capacity[axis])) for axis in range(shapes.shape[1]))


def _axis_bound(size: IntArray, counts: IntArray, capacity: int) -> int:
    if not size.any():
        return 1
    best = 0
    for small in {0, *size[2 * size <= capacity].tolist()}:
        alone, half = size > capacity - small, (2 * size > capacity) & (size <= capacity - small)
        middling = (2 * size <= capacity) & (size >= small)
        room = int(counts[half].sum()) * capacity - int((size * counts)[half].sum())
        rest = int((size * counts)[middling].sum()) - room
        best = max(best, int(counts[alone | half].sum()) + max(0, -(-rest // capacity)))
    return best


def _portfolio(
    shapes: IntArray, counts: IntArray, capacity: IntArray
) -> Iterator[tuple[str, list[tuple[IntArray, int]]]]:
    """Every heuristic's packing, as (pattern, times) pairs; the ones that win most often first."""
    if not len(counts):
        return
    size = shapes / np.maximum(capacity, 1)
    demand = (size * counts[:, None]).sum(axis=0)
    scarce = demand / demand.max()
    few = len(counts) <= _MANY_SHAPES
    for name, score in SCORES.items() if few else [("euclid", _euclid)]:
        yield name, _bin_by_bin(shapes, counts, capacity, size, score, scarce)
    for name, order in ORDERS.items() if few else ():
        first = np.lexsort((np.arange(len(counts)), -order(size)))
        yield f"first fit by {name}", _first_fit(shapes, counts, capacity, first)


def _bin_by_bin(
    shapes: IntArray, counts: IntArray, capacity: IntArray, size: FloatArray, score: Score, weights: FloatArray
) -> list[tuple[IntArray, int]]:
    """Fill one instance with the best next task until none fits, and repeat that pattern as often as the counts
    allow.
    """
    remaining = counts.copy()
    bins = []
    while remaining.any():
        pattern = _fill_one(shapes, remaining, capacity, size, score, weights)
        used = pattern > 0
        times = int((remaining[used] // pattern[used]).min())
        remaining -= pattern * times
        bins.append((pattern, times))
    return bins


def _fill_one(
    shapes: IntArray, remaining: IntArray, capacity: IntArray, size: FloatArray, score: Score, weights: FloatArray
) -> IntArray:
    pattern = np.zeros(len(shapes), dtype=np.int64)
    left = capacity.copy()
    open_ = np.flatnonzero(remaining)
    while True:
        open_ = open_[(shapes[open_] <= left).all(axis=1) & (pattern[open_] < remaining[open_])]
        if not len(open_):
            return pattern
        chosen = open_[int(score(size[open_], left / np.maximum(capacity, 1), weights).argmax())]
        pattern[chosen] += 1
        left = left - shapes[chosen]


def _first_fit(shapes: IntArray, counts: IntArray, capacity: IntArray, order: IntArray) -> list[tuple[IntArray, int]]:
    """Largest shape first, each task into the first instance with room; instances that are alike are kept as one."""
    bins: list[tuple[IntArray, IntArray, int]] = []  # left (a,), pattern (k,), times
    for shape in order.tolist():
        need, number = shapes[shape], int(counts[shape])
        kept: list[tuple[IntArray, IntArray, int]] = []
        for left, pattern, times in bins:
            room = _room(left, need) if number else 0
            kept += _put(left, pattern, times, shape, need, min(number, room * times), room)
            number -= min(number, room * times)
        if number:
            room = _room(capacity, need)
            empty = np.zeros(len(shapes), dtype=np.int64)
            kept += _put(capacity, empty, -(-number // room), shape, need, number, room)
        bins = kept
    return [(pattern, times) for _, pattern, times in bins]


def _put(
    left: IntArray, pattern: IntArray, times: int, shape: int, need: IntArray, number: int, room: int
) -> list[tuple[IntArray, IntArray, int]]:
    """`number` tasks into `times` like instances with `room` each: full ones, one in part, and those left as they
    were.
    """
    if not number:
        return [(left, pattern, times)]
    full, part = divmod(number, room)
    found = []
    for held, how_many in ((room, full), (part, 1 if part else 0), (0, times - full - (1 if part else 0))):
        if how_many:
            changed = pattern.copy()
            changed[shape] += held
            found.append((left - need * held, changed, how_many))
    return found


def _room(left: IntArray, need: IntArray) -> int:
    asked = need > 0
    return int((left[asked] // need[asked]).min())


def _with_weightless(
    patterns: IntArray, times: IntArray, weightless: IntArray, counts: IntArray
) -> tuple[IntArray, IntArray]:
    """Tasks that need nothing all go with the first instance, or have one to themselves."""
    if not len(weightless):
        return patterns, times
    one = patterns[:1].copy() if len(times) else np.zeros((1, len(counts)), dtype=np.int64)
    one[0, weightless] = counts[weightless]
    if not len(times):
        return one, np.ones(1, dtype=np.int64)
    rest = times.copy()
    rest[0] -= 1
    return np.concatenate([one, patterns]), np.concatenate([np.ones(1, dtype=np.int64), rest])


def _refuse_impossible(shapes: IntArray, counts: IntArray, capacity: IntArray) -> None:
    if min(shapes.min(initial=0), counts.min(initial=0), capacity.min(initial=0)) < 0:
        raise ValueError("a shape, a count or a capacity is negative")
    if max(shapes.max(initial=0), capacity.max(initial=0)) > MAX_AMOUNT or counts.sum() > MAX_TASKS:
        raise ValueError(f"a shape or capacity is above {MAX_AMOUNT}, or there are more than {MAX_TASKS} tasks")
