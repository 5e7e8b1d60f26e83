"""How few instances of one size hold a known backlog? Several heuristics, the best result kept, and a lower bound.

Nothing here looks at single tasks: work is (shape, count), bins are (contents, number of equal ones). No heuristic wins
everywhere (Panigrahy et al., "Heuristics for Vector Bin Packing", 2011), and all are cheap, so all are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from argosy.placement.arrays import MAX_AMOUNT, MAX_TASKS, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """`times[i]` instances hold `patterns[i]` each: (p, k) int64 tasks by shape. method: the heuristic that won."""

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
"""(shares needed (k, a), shares left (a,), weights (a,)) -> how well each shape fits, (k,): the largest comes next."""

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
    """Large tasks first, weighted by how well their direction matches the room."""
    return lambda size, left, weights: _cosine(size, left, weights) ** power * (size @ weights)


# Weights are by how scarce each axis is. The powers are those that won on mixed two-axis backlogs, out of 2 to 64.
SCORES: Final[dict[str, Score]] = {
    "cosine": _cosine,
    "cosine^4 * size": _aligned(4),
    "cosine^16 * size": _aligned(16),
    "euclid": _euclid,
    "dot-product": _dot,
}
_MANY_SHAPES: Final = 512  # above, only the heuristic that won most often is worth its time


@dataclass(frozen=True, slots=True, eq=False)
class _Backlog:
    """What is packed. Axes that no shape uses are left out."""

    shapes: IntArray
    """(k, a) int64."""
    counts: IntArray
    """(k,) int64."""
    capacity: IntArray
    """(a,) int64."""

    @property
    def size(self) -> FloatArray:
        """(k, a) the shapes as shares of an instance."""
        share: FloatArray = self.shapes / np.maximum(self.capacity, 1)
        return share


class _Bins(NamedTuple):
    """Instances with equal contents."""

    left: IntArray  # (a,)
    pattern: IntArray  # (k,)
    times: int


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
    for method, bins in _portfolio(_Backlog(shapes[some][:, axes], counts[some], offered[axes])):
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


def _portfolio(backlog: _Backlog) -> Iterator[tuple[str, list[tuple[IntArray, int]]]]:
    """Every heuristic's packing, as (pattern, times) pairs; those that win most often first."""
    if not len(backlog.counts):
        return
    demand = (backlog.size * backlog.counts[:, None]).sum(axis=0)
    scarcity = demand / demand.max()
    few = len(backlog.counts) <= _MANY_SHAPES
    for name, score in SCORES.items() if few else [("euclid", _euclid)]:
        yield name, _bin_by_bin(backlog, score, scarcity)
    for name, order in ORDERS.items() if few else ():
        first = np.lexsort((np.arange(len(backlog.counts)), -order(backlog.size)))
        yield f"first fit by {name}", _first_fit(backlog, first)


def _bin_by_bin(backlog: _Backlog, score: Score, weights: FloatArray) -> list[tuple[IntArray, int]]:
    """Fill one instance with the best next task until none fits, and repeat that pattern as often as counts allow."""
    remaining, size = backlog.counts.copy(), backlog.size
    bins = []
    while remaining.any():
        pattern = _fill_one(backlog, remaining, lambda open_, left: score(size[open_], left, weights))
        used = pattern > 0
        times = int((remaining[used] // pattern[used]).min())
        remaining -= pattern * times
        bins.append((pattern, times))
    return bins


def _fill_one(backlog: _Backlog, remaining: IntArray, score: Callable[[IntArray, FloatArray], FloatArray]) -> IntArray:
    """score: (shapes still open, shares left (a,)) -> how well each fits."""
    shapes, capacity = backlog.shapes, backlog.capacity
    pattern = np.zeros(len(shapes), dtype=np.int64)
    left = capacity.copy()
    open_ = np.flatnonzero(remaining)
    while True:
        open_ = open_[(shapes[open_] <= left).all(axis=1) & (pattern[open_] < remaining[open_])]
        if not len(open_):
            return pattern
        chosen = open_[int(score(open_, left / np.maximum(capacity, 1)).argmax())]
        pattern[chosen] += 1
        left = left - shapes[chosen]


def _first_fit(backlog: _Backlog, order: IntArray) -> list[tuple[IntArray, int]]:
    """Largest shape first, each task into the first instance with room."""
    filled: list[_Bins] = []
    for shape in order.tolist():
        need, number = backlog.shapes[shape], int(backlog.counts[shape])
        kept: list[_Bins] = []
        for bins in filled:
            taken = min(number, _room(bins.left, need) * bins.times) if number else 0
            kept += _put(bins, shape, need, taken)
            number -= taken
        if number:
            new = -(-number // _room(backlog.capacity, need))
            kept += _put(_Bins(backlog.capacity, np.zeros_like(backlog.counts), new), shape, need, number)
        filled = kept
    return [(bins.pattern, bins.times) for bins in filled]


def _put(bins: _Bins, shape: int, need: IntArray, number: int) -> list[_Bins]:
    """`number` tasks of a shape into equal instances: full ones, one in part, and the unchanged rest."""
    if not number:
        return [bins]
    room = _room(bins.left, need)
    full, part = divmod(number, room)
    found = []
    for held, how_many in ((room, full), (part, 1 if part else 0), (0, bins.times - full - (1 if part else 0))):
        if how_many:
            changed = bins.pattern.copy()
            changed[shape] += held
            found.append(_Bins(bins.left - need * held, changed, how_many))
    return found


def _room(left: IntArray, need: IntArray) -> int:
    asked = need > 0
    return int((left[asked] // need[asked]).min())


def _with_weightless(
    patterns: IntArray, times: IntArray, weightless: IntArray, counts: IntArray
) -> tuple[IntArray, IntArray]:
    """Tasks that need nothing all join the first instance; if there is none yet, they open one."""
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
