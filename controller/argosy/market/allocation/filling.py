"""Which tasks does a greedy knapsack put on an empty instance of each size? All sizes at once.

Shapes in order of value per size, under several weightings of the axes; per size the most valuable filling is kept.
Ties go to the lower shape, so equal questions get equal answers.
"""

from __future__ import annotations

import numpy as np

from argosy.placement.arrays import FloatArray, IntArray

# How much an axis counts: cpu, memory, GPUs; each relative to the largest size among the instances.
WEIGHTS = ((1.0, 1.0, 1.0), (4.0, 1.0, 1.0), (1.0, 4.0, 1.0), (1.0, 1.0, 8.0), (16.0, 1.0, 1.0), (1.0, 16.0, 1.0))

# The same with the number of tasks as the last axis.
PLACE_WEIGHTS = tuple((*axes, 1.0) for axes in WEIGHTS) + ((1.0, 1.0, 1.0, 4.0), (1.0, 1.0, 1.0, 64.0))


def best_fillings(
    sizes: IntArray, need: IntArray, value: FloatArray, most: IntArray, most_tasks: IntArray | None = None
) -> tuple[IntArray, FloatArray]:
    """(k, s) tasks by shape and (k,) their worth, for instances that offer `sizes` (k, 3).

    value: (s,) of one task; shapes worth nothing are left out. most: (s,) the most tasks of a shape on one instance.
    most_tasks: (k,) of all shapes; it is one more axis, of which every task needs one.
    """
    weightings: tuple[tuple[float, ...], ...] = WEIGHTS
    if most_tasks is not None:
        sizes, need = with_places(sizes, need, most_tasks)
        weightings = PLACE_WEIGHTS
    best = np.zeros((len(sizes), len(need)), dtype=np.int64)
    worth = np.zeros(len(sizes))
    for weights in weightings:
        pattern = fill(sizes, need, order_by_worth(sizes, need, value, weights), most)
        total = pattern @ value
        better = total > worth * (1 + 1e-12)
        best[better], worth[better] = pattern[better], total[better]
    return best, worth


def with_places(sizes: IntArray, need: IntArray, most_tasks: IntArray) -> tuple[IntArray, IntArray]:
    """`sizes` (k, 4) and `need` (s, 4) with the number of tasks as an axis."""
    return np.column_stack([sizes, most_tasks]), np.column_stack([need, np.ones(len(need), dtype=np.int64)])


def order_by_worth(sizes: IntArray, need: IntArray, value: FloatArray, weights: tuple[float, ...]) -> IntArray:
    """Shapes with a value, the highest value per weighted size first."""
    scale = np.array(weights) / np.maximum(sizes.max(axis=0, initial=1), 1)
    ratio = value / np.maximum(need @ scale, 1e-300)
    order = np.argsort(-ratio, kind="stable")
    return order[value[order] > 0].astype(np.int64)


def fill(free: IntArray, need: IntArray, order: IntArray, most: IntArray) -> IntArray:
    """(k, s): as many tasks of each shape, in order, as still fit into `free` (k, axes) and `most` (s,) allows."""
    left = free.T.copy()
    pattern = np.zeros((len(free), len(need)), dtype=np.int64)
    for shape in order.tolist():
        count = np.full(len(free), most[shape], dtype=np.int64)
        axes = np.flatnonzero(need[shape]).tolist()
        for axis in axes:
            np.minimum(count, left[axis] // need[shape, axis], out=count)
        for axis in axes:
            left[axis] -= count * need[shape, axis]
        pattern[:, shape] = count
    return pattern
