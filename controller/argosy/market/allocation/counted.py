"""What is a filling of each size worth at most, if tasks could be cut, but there are only so many of each shape?

An LP with a row for each axis of a size. Its duals are prices of cpu, memory, GPUs and places. At any prices a filling
is worth at most what the whole size costs, plus, for as many tasks of a shape as there are, what these are worth above
their own cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_WHOLE = 1e-7
_UP = 1 + 1e-10  # above what the few float operations here can lose


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
    """HiGHS's answer for shapes that need `share` (s, axes) of what a size offers."""
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
