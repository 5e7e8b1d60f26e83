"""The order in which admitted tasks start, in which small commits hold few runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from argosy.sharing.bounds import LENT, Guarantees
from argosy.sharing.columns import Columns, IntArray, Limits, Sharers
from argosy.sharing.levels import Climb, Heights, keys

BY_WEIGHT, LAST = 2, 3  # phases; guarantees come before them


class Promised(NamedTuple):
    """How many of the tasks are guaranteed to their queues."""

    guarantees: Guarantees
    group: IntArray  # (sharers,)
    counts: IntArray  # (runs,)


def turns(
    columns: Columns,
    sharers: Sharers,
    limits: Limits,
    counts: IntArray,
    quantum: int = 1,
    promised: Promised | None = None,
) -> IntArray:
    """(tasks,) the run of each task, in the order of their turns.

    counts: (runs,) how many tasks of each run start. quantum: a run takes up to that many tasks in one turn. No run is
    then ahead or behind by more than one quantum.
    """
    climb = Climb.of(columns, sharers, limits)
    run = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = number - number % max(1, quantum)
    turn = keys(climb.starts(counts)[run], climb.steps[run], step)
    phase = np.where(sharers.weight[columns.sharer[run]] == 0, LAST, BY_WEIGHT)
    if promised is not None:
        first = number < promised.counts[run]
        own = promised.guarantees.climb(columns, sharers, promised.group)
        at = keys(own.starts(promised.counts)[run], own.steps[run], step)
        keeps = promised.guarantees.kept_from[promised.group[columns.sharer]] != LENT
        phase, turn = np.where(first, np.where(keeps[run], 0, 1), phase), np.where(first, at, turn)
    order: IntArray = run[np.lexsort((run, turn, phase))]
    return order


def tasks_ahead(columns: Columns, sharers: Sharers, limits: Limits, row: int) -> IntArray:
    """(runs,) how many waiting tasks of other runs come before the first task of this run.

    The same order as `turns` with all tasks of every run, without a row for each task.

    >>> two = Columns.of([0, 1, 1], [5, 5, 5], [[1], [1], [1]])  # one run of the first queue, two of the second
    >>> used = Sharers.of([1, 1], [[2], [0]])
    >>> tasks_ahead(two, used, Limits.of([10], [0]), 2).tolist()  # 2 + 3 = 5 = the tasks of the run before it
    [4, 5, 0]
    """
    climb = Climb.of(columns, sharers, limits)
    starts, weightless = climb.starts(columns.wants), sharers.weight[columns.sharer] == 0
    level = int(keys(starts[[row]], climb.steps[[row]], np.zeros(1, dtype=np.int64))[0])
    earlier = np.arange(len(columns.wants)) < row  # comes first where levels are equal
    counts = Heights.of(starts, climb.steps, columns.wants).below(level + earlier)
    counts = np.where(weightless, counts if weightless[row] else 0, columns.wants if weightless[row] else counts)
    counts[row] = 0
    return counts
