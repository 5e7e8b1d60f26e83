"""Which few prices value thousands of distinct tasks? One per direction in which tasks need cpu and memory.

A task without GPUs lies between two neighbouring directions and is the sum of a part along each: its value is the sum
of the values of its parts. Prices that let no instance be worth too much for parts do so for whole tasks, so a bound
for parts is a bound for tasks. Tasks that fit into fewer sizes have rows of their own. Tasks with GPUs are grouped with
those that need about the same; their rows are a guide, not a bound.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from argosy.market.allocation.problem import Problem
from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_GPU_GROUPS = 12
_THRESHOLDS = (1.2, 1.5, 2.0, 3.0, 5.0, 25.0, 1e9)  # sizes nearer to each other than this factor share rows


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Row r is worth `unit[r]` (cpu units, MiB, GPUs); task s needs `share[n]` of row `row[n]` where `task[n] == s`."""

    unit: FloatArray  # (r, 3)
    fits: BoolArray  # (k, r) whether any task of the row fits into the size
    task: IntArray
    row: IntArray
    share: FloatArray

    @property
    def with_gpus(self) -> BoolArray:
        """(r,)"""
        found: BoolArray = self.unit[:, 2] > 0
        return found

    def demand(self, count: IntArray) -> FloatArray:
        """(r,) how much of each row `count` (s,) tasks need."""
        found = np.bincount(self.row, weights=count[self.task] * self.share, minlength=len(self.unit))
        return found.astype(np.float64)

    def value(self, price: FloatArray, tasks: int) -> FloatArray:
        """(s,) what one task is worth when a unit of each row is worth `price` (r,)."""
        found = np.bincount(self.task, weights=self.share * price[self.row], minlength=tasks)
        return found.astype(np.float64)


def directions_of(problem: Problem, knots: int, most: int) -> Directions:
    """About `most` rows, for the tasks that fit somewhere: bands of sizes are merged until there are few enough."""
    need = problem.backlog.need
    plain = np.flatnonzero((need[:, 2] == 0) & ~problem.unplaceable & (problem.backlog.count > 0))
    gpu = np.flatnonzero((need[:, 2] > 0) & ~problem.unplaceable & (problem.backlog.count > 0))
    parts = [_Rows(np.zeros((0, 3)), *(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0))]
    if len(plain):
        parts.append(_plain_rows(problem, plain, knots, most))
    if len(gpu):
        parts.append(_gpu_rows(problem, gpu))
    offsets = np.cumsum([0, *[len(part.unit) for part in parts]])
    unit = np.concatenate([part.unit for part in parts])
    task = np.concatenate([part.task for part in parts])
    row = np.concatenate([part.row + offset for part, offset in zip(parts, offsets, strict=False)])
    share = np.concatenate([part.share for part in parts])
    order = np.argsort(row, kind="stable")
    starts = np.searchsorted(row[order], np.arange(len(unit)))
    holds = problem.room[:, task[order]] > 0
    fits = np.logical_or.reduceat(holds, starts, axis=1) if len(unit) else holds
    return Directions(unit, fits, task, row, share)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    unit: FloatArray
    task: IntArray
    row: IntArray
    share: FloatArray


def _plain_rows(problem: Problem, tasks: IntArray, knots: int, most: int) -> _Rows:
    need = np.maximum(problem.backlog.need[tasks, :2], 1e-3)
    weight = problem.backlog.count[tasks] * (need[:, 0] / 1024 + need[:, 1] / 8192)
    ratio = need[:, 1] / need[:, 0]
    knot = _knots(ratio, weight, knots)
    at = np.clip(np.searchsorted(knot, ratio, side="right") - 1, 0, len(knot) - 2)
    low, high = knot[at], knot[at + 1]
    # cpu = a + b and memory = a * low + b * high.
    upper = np.clip((need[:, 1] - need[:, 0] * low) / (high - low), 0, need[:, 0])
    for factor in _THRESHOLDS:
        band = _bands(problem, problem.backlog.need[tasks], factor)
        code = (np.concatenate([at, at + 1]) + (band * len(knot))[np.r_[0 : len(band), 0 : len(band)]]).astype(np.int64)
        kept, row = np.unique(code, return_inverse=True)
        if len(kept) <= most:
            break
    unit = np.stack([np.full(len(kept), 1024.0), 1024.0 * knot[kept % len(knot)], np.zeros(len(kept))], axis=1)
    share = np.concatenate([need[:, 0] - upper, upper]) / 1024
    return _Rows(unit, np.concatenate([tasks, tasks]), row.reshape(-1).astype(np.int64), share)


def _knots(ratio: FloatArray, weight: FloatArray, most: int) -> FloatArray:
    """MiB per cpu unit: quantiles of what is asked for, from the least to the most."""
    order = np.argsort(ratio, kind="stable")
    over = np.cumsum(weight[order])
    knot = np.interp(np.linspace(0, 1, most) * over[-1], over, np.log(ratio[order]))
    knot[0], knot[-1] = np.log(ratio[order[0]]) - 1e-6, np.log(ratio[order[-1]]) + 1e-6
    kept = np.concatenate([[True], np.diff(knot) > 1e-7])
    found: FloatArray = np.exp(knot[kept])
    return found


def _bands(problem: Problem, need: IntArray, factor: float) -> IntArray:
    """A number for each need (s, 3): equal where the smallest size that holds it is about equally large."""
    volume = problem.sizes[:, 0] / 1024 + problem.sizes[:, 1] / 8192 + 1e-3
    least = np.full(len(need), np.inf)
    for size in np.argsort(-volume).tolist():
        least[(need <= problem.sizes[size]).all(axis=1)] = volume[size]
    code = np.floor(np.log(least / float(volume.min())) / np.log(factor)).astype(np.int64)
    found: IntArray = np.unique(code, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return found


def _gpu_rows(problem: Problem, tasks: IntArray) -> _Rows:
    need, count = problem.backlog.need[tasks].astype(np.float64), problem.backlog.count[tasks]
    scale = need @ (1 / np.maximum(problem.sizes.max(axis=0), 1))
    row = grouped(problem.backlog.need[tasks], count * scale, _GPU_GROUPS)
    rows = int(row.max()) + 1
    total = np.stack([np.bincount(row, weights=count * need[:, axis], minlength=rows) for axis in range(3)], axis=1)
    of_row = np.bincount(row, weights=count, minlength=rows)
    mean = np.bincount(row, weights=count * scale, minlength=rows) / of_row
    return _Rows(total / of_row[:, None], tasks, row, scale / mean[row])


def grouped(need: IntArray, weight: FloatArray, most: int) -> IntArray:
    """(s,) a group number for each need (s, 3), at most `most` groups and one per number of GPUs at least.

    The group whose members differ most is halved, along the axis on which they do, until there are enough.
    """
    place = np.log(np.maximum(need[:, :2], 1))
    heap: list[tuple[float, int, int, IntArray]] = []

    def push(members: IntArray) -> None:
        reach = np.ptp(place[members], axis=0)
        axis = int(reach.argmax())
        heapq.heappush(heap, (-float(weight[members].sum() * reach[axis]), int(members[0]), axis, members))

    for gpus in np.unique(need[:, 2]).tolist():
        push(np.flatnonzero(need[:, 2] == gpus).astype(np.int64))
    while len(heap) < most and heap[0][0] < 0:
        _, _, axis, members = heapq.heappop(heap)
        members = members[np.argsort(place[members, axis], kind="stable")]
        over = np.cumsum(weight[members])
        half = min(max(1, int(np.searchsorted(over, over[-1] / 2))), len(members) - 1)
        push(members[:half])
        push(members[half:])
    group = np.zeros(len(need), dtype=np.int64)
    for number, (_, _, _, members) in enumerate(sorted(heap, key=lambda entry: entry[1])):
        group[members] = number
    return group
