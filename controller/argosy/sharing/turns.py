"""In which order do the tasks start that have their turn, and whose are they where a commit holds few runs?"""

from __future__ import annotations

import numpy as np

from argosy.sharing.columns import Columns, IntArray, Limits, Sharers
from argosy.sharing.levels import Climb, keys


def turns(columns: Columns, sharers: Sharers, limits: Limits, counts: IntArray, quantum: int = 1) -> IntArray:
    """(tasks,) the run of each task, in the order of their turns.

    counts: (runs,) how many tasks of each run start. quantum: so many tasks of a run go together where their turns
    allow: who comes to his turn takes that many. Then nobody is ahead or behind by more than one quantum.
    """
    climb = Climb.of(columns, sharers, limits)
    run = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
    number -= number % max(1, quantum)
    turn = keys(climb.starts(counts)[run], climb.steps[run], number)
    last = sharers.weight[columns.sharer[run]] == 0
    order: IntArray = run[np.lexsort((run, turn, last))]
    return order


def first_runs(order: IntArray, most: int) -> IntArray:
    """The `most` runs that come first in an order of turns, in that order."""
    runs, first = np.unique(order, return_index=True)
    chosen: IntArray = runs[np.argsort(first)][:most]
    return chosen
