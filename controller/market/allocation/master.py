"""How often is each pattern used, and how many instances of each pool are bought, if both may be fractions? The LP, in HiGHS.

Columns: instances of a pool at its price, up to its depth; uses of a pattern; tasks left out at a price above all others, so
that there always is a solution. Rows: every shape's tasks are in patterns; every size's patterns have instances; with a
maximum share, no kind has more than its share of the bought cpu. New patterns are added as columns and the simplex goes
on from where it stood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controller.market.allocation.problem import Problem
from controller.placement.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An optimum of the LP over the patterns it knows."""

    bought: FloatArray  # (p,) instances
    used: FloatArray  # (q,) of each pattern
    left_out: FloatArray  # (s,) tasks
    task_value: FloatArray  # (s,) USD per hour: duals of the demand
    size_value: FloatArray  # (k,) USD per hour: duals of the sizes
    share_value: FloatArray  # (t,) USD per hour and cpu unit: duals of the shares
    usd_per_hour: float  # the objective, with what is left out


def is_available() -> bool:
    """Whether HiGHS is installed: without it there is the greedy answer."""
    from importlib.util import find_spec

    return find_spec("highspy") is not None


class Master:
    """The LP of one problem. Patterns are (size, tasks by shape) and are only ever added."""

    def __init__(self, problem: Problem, penalty: FloatArray) -> None:
        import highspy

        self._problem, self._highspy = problem, highspy
        self._lp: Any = highspy.Highs()
        for option, choice in (("output_flag", False), ("threads", 1), ("random_seed", 1), ("presolve", "off"), ("simplex_strategy", 4)):
            self._lp.setOptionValue(option, choice)
        self._shapes, self._sizes = len(problem.wanted.need), len(problem.sizes)
        self.kinds = int(problem.offered.kind.max(initial=-1)) + 1 if problem.max_share is not None else 0
        self.size_of = np.zeros(0, dtype=np.int64)
        self.pattern = np.zeros((0, self._shapes), dtype=np.int64)
        self._rows(problem.wanted.count)
        self._pools(penalty)
