"""What does one allocation leave for the next? Patterns that were in use, by sizes and needs: both lists may change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argosy.market.allocation.generate import pool_prices
from argosy.market.allocation.master import Master, Solution
from argosy.market.allocation.problem import Problem
from argosy.model.orders import Patterns
from argosy.placement.arrays import IntArray

_NEAR = 0.002  # patterns that would be used if a size were cheaper by this share are kept too


@dataclass(frozen=True, slots=True)
class Kept:
    """patterns: (what the instance offers, ((what a task needs, tasks), ...))."""

    patterns: Patterns = ()


def keep(problem: Problem, master: Master, solution: Solution) -> Kept:
    """The patterns in use and those that nearly are."""
    cost = np.maximum(solution.size_value, problem.cheapest(pool_prices(problem, solution)))[master.size_of]
    used = np.zeros(len(master.size_of))
    used[: len(solution.used)] = solution.used  # patterns may have been added since
    near = (used > 0) | (master.pattern @ solution.task_value >= cost * (1 - _NEAR))
    needs = [tuple(need) for need in problem.wanted.need.tolist()]
    patterns = []
    for number in np.flatnonzero(near).tolist():
        held = np.flatnonzero(master.pattern[number]).tolist()
        tasks = tuple((needs[shape], int(master.pattern[number, shape])) for shape in held)
        patterns.append((tuple(problem.sizes[master.size_of[number]].tolist()), tasks))
    return Kept(tuple(patterns))


def recall(problem: Problem, kept: Kept) -> tuple[IntArray, IntArray]:
    """(q,) sizes and (q, s) tasks of the kept patterns whose size this problem has, less shapes it does not have."""
    sizes = {tuple(size): number for number, size in enumerate(problem.sizes.tolist())}
    shapes = {tuple(need): number for number, need in enumerate(problem.wanted.need.tolist())}
    known = [(sizes[size], tasks) for size, tasks in kept.patterns if size in sizes]
    pattern = np.zeros((len(known), len(problem.wanted.need)), dtype=np.int64)
    for row, (_, tasks) in enumerate(known):
        for need, count in tasks:
            if need in shapes:
                pattern[row, shapes[need]] = count
    pattern = np.minimum(pattern, problem.wanted.count)
    return np.array([size for size, _ in known], dtype=np.int64), pattern
