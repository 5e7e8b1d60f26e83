"""Upper bounds of the worth of a filling of each size, if tasks could be split.

For prices a, b of cpu and memory with `a * cpu_s + b * memory_s >= value_s` for every CPU shape, no filling without GPU
tasks is worth more than `a * cpu + b * memory`; a GPU then costs the part of the worth of the most valuable GPU shape
above that. The best (a, b) is where two shapes (or one shape and an axis) are tight. Each candidate is scaled until
it holds for all shapes, so rounding errors can only raise the bound.

Where there are few tasks of a shape, `counted_worth` is sharper: an LP with a row for each axis of a size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_UP = 1 + 1e-10  # above the rounding loss of the few float operations here
_CANDIDATES = 20_000
_MANY = 300  # shapes: of more, only those that some mix of prices puts first are compared
_MIXES = 192
_PLACE_QUANTILES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_WHOLE = 1e-7


def relaxed_worth(sizes: IntArray, need: IntArray, value: FloatArray, most_tasks: IntArray | None = None) -> FloatArray:
    """(k,) an upper bound of the worth of any filling of `sizes` (k, 3) with tasks `need` (s, 3) of `value` (s,) >= 0.

    Only shapes count that fit at least once. most_tasks: (k,) the most tasks on an instance. At any price of a place,
    no filling is worth more than the cost of its places plus the worth of its tasks above that; the best of some prices
    counts.
    """
    return (
        _relaxed(sizes, need, value) if most_tasks is None else by_place_price(sizes, need, value, most_tasks)[1].min(0)
    )


def by_place_price(
    sizes: IntArray, need: IntArray, value: FloatArray, most_tasks: IntArray
) -> tuple[FloatArray, FloatArray]:
    """(q,) prices of a place, from 0 to the worth of the most valuable tasks, and (q, k) the bound at each.

    It is infinite at prices above 0 for sizes that no mix of valued tasks fills with that many.
    """
    worthy, bounds = value > 0, [_relaxed(sizes, need, value)]
    least = need[worthy].min(axis=0, initial=np.iinfo(np.int64).max)
    open_ = np.flatnonzero((sizes // np.maximum(least, 1) > most_tasks[:, None]).all(axis=1, where=least > 0))
    prices = np.unique(np.quantile(value[worthy], _PLACE_QUANTILES)) if len(open_) and worthy.any() else np.zeros(0)
    for price in prices:
        above = _relaxed(sizes[open_], need, np.maximum(value - price, 0))
        bounds.append(np.full(len(sizes), np.inf))
        bounds[-1][open_] = above + price * most_tasks[open_] * _UP
    return np.concatenate([[0.0], prices]), np.array(bounds)


def _relaxed(sizes: IntArray, need: IntArray, value: FloatArray) -> FloatArray:
    fits = (need[None, :, :] <= sizes[:, None, :]).all(axis=2) & (value > 0)
    alike, of_size = np.unique(fits, axis=0, return_inverse=True)
    worth = np.zeros(len(sizes))
    for number, shapes in enumerate(alike):
        if shapes.any():
            rows = of_size.reshape(-1) == number
            kept = np.flatnonzero(shapes)
            if len(kept) <= _MANY:
                kept = kept[undominated(need[kept], value[kept])]
            worth[rows] = _cut(sizes[rows].astype(np.float64), need[kept].astype(np.float64), value[kept])
    return worth


def covering(need: IntArray, value: FloatArray, size: IntArray) -> FloatArray:
    """(2,) prices of a cpu unit and a MiB at which no task (s, 2) of `value` (s,) is worth more than it pays.

    Of the known ones, those at which `size` (2,) costs least.
    """
    if not len(need):
        return np.zeros(2)
    found = _prices(need.astype(np.float64), value) * _UP
    cheapest: FloatArray = found[int((found @ size).argmin())]
    return cheapest


def undominated(need: IntArray, value: IntArray | FloatArray) -> IntArray:
    """Shapes with a value, except where another shape needs no more and is worth no less; ties to the lower."""
    smaller = (need[:, None, :] <= need[None, :, :]).all(axis=2) & (value[:, None] >= value[None, :])
    earlier = np.arange(len(need))[:, None] < np.arange(len(need))[None, :]
    beaten = (smaller & (~smaller.T | earlier)).any(axis=0)
    return np.flatnonzero(~beaten & (value > 0))


def _cut(sizes: FloatArray, need: FloatArray, value: FloatArray) -> FloatArray:
    alone, sized = need[:, 2] == 0, need[:, :2].any(axis=1)
    prices = _prices(need[alone, :2], value[alone]) if alone.any() else np.zeros((1, 2))
    # With GPU tasks, cpu and memory may cost more than CPU tasks alone would make them.
    if not alone.all() and sized.any():
        prices = np.concatenate([prices, _prices(need[sized, :2], value[sized])])
    rest = np.maximum(value - prices @ need[:, :2].T, 0) * ~alone
    per_gpu = np.max(rest / np.maximum(need[:, 2], 1), axis=1)
    lowest: FloatArray = (prices @ sizes[:, :2].T + per_gpu[:, None] * sizes[:, 2]).min(axis=0) * _UP
    return lowest


def _neighbours(need: FloatArray, value: FloatArray) -> tuple[IntArray, IntArray]:
    """Pairs of shapes that are worth most for their cost at neighbouring mixes of the prices of cpu and memory."""
    ratio = np.log(np.maximum(need[:, 1], 1) / np.maximum(need[:, 0], 1))
    mixes = np.exp(np.linspace(-float(ratio.max()) - 1, 1 - float(ratio.min()), _MIXES))
    cost = np.maximum(need @ np.stack([np.ones(_MIXES), mixes]), 1e-300)
    first = np.array(list(dict.fromkeys((value[:, None] / cost).argmax(axis=0).tolist())), dtype=np.int64)
    return first[:-1], first[1:]


def _prices(need: FloatArray, value: FloatArray) -> FloatArray:
    """(c, 2) candidate prices of cpu and memory, each scaled so that no shape is worth more than it costs."""
    first, second = _neighbours(need, value) if len(need) > _MANY else np.triu_indices(len(need), 1)
    if len(first) > _CANDIDATES:  # many shapes: those nearest to one another in what they ask for
        order = np.argsort(np.arctan2(need[:, 1], need[:, 0]), kind="stable")
        pairs = [(order[:-gap], order[gap:]) for gap in range(1, max(2, _CANDIDATES // len(need)))]
        first, second = np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])
    (c1, m1), (c2, m2) = need[first].T, need[second].T
    det = c1 * m2 - c2 * m1
    cut = np.abs(det) > 1e-9 * np.maximum(c1 * m2, c2 * m1)
    first, second, c1, m1, c2, m2, det = (x[cut] for x in (first, second, c1, m1, c2, m2, det))
    found = np.stack([(value[first] * m2 - value[second] * m1), (value[second] * c1 - value[first] * c2)], axis=1)
    found = found / det[:, None]
    found = found[(found >= 0).all(axis=1)]
    scale = 1 / np.maximum(need.max(axis=0), 1)
    found = np.vstack([found, scale * np.eye(2), scale])
    cost = found @ need.T
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.max(np.where(value > 0, value / cost, 0.0), axis=1)
    usable = np.isfinite(factor)
    # Candidates that had to be scaled up a lot are inside; other candidates give better bounds.
    usable &= (factor <= 1 + 1e-6) | (np.arange(len(found)) >= len(found) - 3)
    kept: FloatArray = found[usable] * np.maximum(factor[usable, None], 0)
    return kept


def counted_worth(sizes: IntArray, need: IntArray, value: FloatArray, count: IntArray) -> FloatArray:
    """(k,) at least the worth of any filling of `sizes` (k, axes) with at most `count` (s,) tasks `need` (s, axes).

    value: (s,) >= 0. Needs highspy.
    """
    found = np.zeros(len(sizes))
    for row, size in enumerate(sizes):
        fits = _fits(size, need, value, count)
        if fits.any():
            share, worth, most = need[fits] / np.maximum(size, 1), value[fits], count[fits].astype(np.float64)
            price = np.maximum(-np.array(_solved(share, worth, most).row_dual), 0.0)
            found[row] = float(price.sum() + most @ np.maximum(worth - share @ price, 0)) * _UP
    return found


def whole_parts(sizes: IntArray, need: IntArray, value: FloatArray, count: IntArray) -> IntArray:
    """(k, s) the tasks that the best filling holds whole if tasks may be cut: all but one per axis. Needs highspy."""
    found = np.zeros((len(sizes), len(need)), dtype=np.int64)
    for row, size in enumerate(sizes):
        fits = _fits(size, need, value, count)
        if fits.any():
            held = _solved(need[fits] / np.maximum(size, 1), value[fits], count[fits].astype(np.float64)).col_value
            found[row, fits] = np.floor(np.array(held) + _WHOLE)
    fitting = (found @ need <= sizes).all(axis=1)
    found[~fitting] = 0
    return found


def _fits(size: IntArray, need: IntArray, value: FloatArray, count: IntArray) -> BoolArray:
    found: BoolArray = (need <= size).all(axis=1) & (value > 0) & (count > 0)
    return found


def _solved(share: FloatArray, worth: FloatArray, most: FloatArray) -> Any:
    """HiGHS's answer for shapes that need the share `share` (s, axes) of a size's resources."""
    import highspy

    engine: Any = highspy.Highs
    lp, none, zero = engine(), np.zeros(0, dtype=np.int32), np.zeros(share.shape[1])
    for option, choice in (("output_flag", False), ("threads", 1), ("presolve", "off")):
        lp.setOptionValue(option, choice)
    lp.addRows(len(zero), zero - highspy.kHighsInf, zero + 1, 0, zero.astype(np.int32), none, none.astype(np.float64))
    shape, axis = share.nonzero()
    ends = np.bincount(shape, minlength=len(share)).cumsum()
    starts, rows = np.append(0, ends[:-1]).astype(np.int32), axis.astype(np.int32)
    lp.addCols(len(share), -worth, np.zeros(len(share)), most, len(shape), starts, rows, share[shape, axis])
    lp.run()
    return lp.getSolution()
