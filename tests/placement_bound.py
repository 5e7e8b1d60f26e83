"""How many instances does a backlog need at least? The pattern LP's bound, priced exactly: slow, for tests."""

from __future__ import annotations

import highspy
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def pattern_bound(shapes: Ints, counts: Ints, capacity: tuple[int, int], rounds: int = 300) -> int:
    """For two axes in small whole units.

    The duals of the last LP, divided by the most that any pattern is worth, are a valid bound.
    """
    patterns = [
        np.eye(len(shapes), dtype=np.int64)[s] * int(min(np.array(capacity) // np.maximum(shapes[s], 1)))
        for s in range(len(shapes))
    ]
    best = 0.0
    for _ in range(rounds):
        duals = _duals(patterns, counts)
        worth, pattern = _best_pattern(shapes, duals, capacity)
        best = max(best, float(counts @ duals) / max(worth, 1e-12))
        if worth <= 1 + 1e-7:
            break
        patterns.append(pattern)
    return int(np.ceil(best - 1e-6))


def _duals(patterns: list[Ints], counts: Ints) -> NDArray[np.float64]:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for count in counts.tolist():
        solver.addRow(float(count), highspy.kHighsInf, 0, np.array([], dtype=np.int32), np.array([]))
    for pattern in patterns:
        used = np.flatnonzero(pattern).astype(np.int32)
        solver.addCol(1.0, 0.0, highspy.kHighsInf, len(used), used, pattern[used].astype(np.float64))
    solver.run()
    return np.maximum(np.array(solver.getSolution().row_dual), 0)


def _best_pattern(shapes: Ints, values: NDArray[np.float64], capacity: tuple[int, int]) -> tuple[float, Ints]:
    """The unbounded knapsack over two axes, by dynamic programming over every (cpu, memory)."""
    worth = np.zeros((capacity[0] + 1, capacity[1] + 1))
    chosen = np.full(worth.shape, -1)
    for cpu in range(capacity[0] + 1):
        for memory in range(capacity[1] + 1):
            for s, (c, m) in enumerate(shapes.tolist()):
                if c <= cpu and m <= memory and worth[cpu - c, memory - m] + values[s] > worth[cpu, memory] + 1e-12:
                    worth[cpu, memory], chosen[cpu, memory] = worth[cpu - c, memory - m] + values[s], s
    pattern, cpu, memory = np.zeros(len(shapes), dtype=np.int64), *capacity
    while chosen[cpu, memory] >= 0:
        s = chosen[cpu, memory]
        pattern[s] += 1
        cpu, memory = cpu - int(shapes[s, 0]), memory - int(shapes[s, 1])
    return float(worth[capacity]), pattern
