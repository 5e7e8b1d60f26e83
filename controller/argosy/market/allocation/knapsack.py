"""The best filling of every size: one unbounded-knapsack table over a grid of cpu and memory.

`layers[g][c, m]` is the highest worth of tasks on at most `g` GPUs, `c` cpu steps and `m` memory steps. Every size is
one cell of it. A shape is added in place, block after block of as many rows as it needs: a block reads only rows that
are already final for this shape, so any number of copies is covered in one pass. All values are whole numbers, so
fillings are traced back by equality without loss from rounding.

The grid is as coarse as time allows, with steps that the shapes suggest. Steps that divide every need lose nothing:
mixes of 0.5, 1 and 2 GiB need no finer step than 512 MiB, and 15,258 and 30,517 MiB are well served by 5,086.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.placement.arrays import FloatArray, IntArray

Layer = NDArray[np.int32]
LARGEST_VALUE = 1 << 29  # of any cell: two may be added in int32
_BLOCK = 1 << 16  # cells handled at once: stays in the second-level cache
_PARTS = 48  # steps tried: each need divided by 1 .. 48
_NEAR_BEST = 8
_LONGEST = 20_000  # steps of an axis: the table is traced back step by step
_LOSSLESS = 1e-12


@dataclass(frozen=True, slots=True)
class Grid:
    """Steps of cpu units and MiB. exact: every need is a whole multiple, so rounding down and up are the same."""

    cpu_units: int
    memory_mib: int
    exact: bool

    @property
    def _steps(self) -> IntArray:
        return np.array([self.cpu_units, self.memory_mib, 1], dtype=np.int64)

    def down(self, amounts: IntArray) -> IntArray:
        return amounts // self._steps

    def up(self, amounts: IntArray) -> IntArray:
        return -(-amounts // self._steps)


def grid_for(need: IntArray, weight: FloatArray, extent: tuple[int, int], cells: int) -> Grid:
    """The grid with the least rounding of `need` (s, 3), weighted by `weight` (s,), whose table has at most `cells`.

    extent: the largest cpu units and MiB among the sizes.
    """
    share = weight / max(float(weight.sum()), 1e-300)
    steps = [steps_for(need[:, axis], share, extent[axis]) for axis in (0, 1)]
    (cpu_step, cpu_loss), (memory_step, memory_loss) = steps
    # Rows x columns: every pair of steps that is small enough; the least loss, then the fewest cells.
    size = (extent[0] // cpu_step + 1)[:, None].astype(np.float64) * (extent[1] // memory_step + 1)[None, :]
    loss = np.where(size <= cells, cpu_loss[:, None] + memory_loss[None, :], np.inf)
    near = loss <= loss.min() + _LOSSLESS
    row, column = np.unravel_index(int(np.argmin(np.where(near, size, np.inf))), size.shape)
    cpu, memory = int(cpu_step[row]), int(memory_step[column])
    return Grid(cpu, memory, not (need[:, 0] % cpu).any() and not (need[:, 1] % memory).any())


def steps_for(amount: IntArray, share: FloatArray, extent: int) -> tuple[IntArray, FloatArray]:
    """Steps worth trying, ascending, and the loss of each: the mean of rounding down and up, as a share of the need."""
    asked = amount > 0
    amount, share = amount[asked], share[asked]
    parts = np.arange(1, _PARTS + 1)
    coarse = extent // 4 ** np.arange(12) + 1  # so that some table is always small enough
    tried = np.concatenate([(amount[:, None] // parts).ravel(), [np.gcd.reduce(amount)] if len(amount) else [], coarse])
    step = np.unique(np.maximum(tried.astype(np.int64), max(1, extent // _LONGEST)))
    over = amount[None, :] % step[:, None]
    loss = (np.minimum(over, step[:, None] - over) + np.minimum(over, 1) * 0.05 * step[:, None]) / np.maximum(amount, 1)
    # An amount below the step would round down to nothing, and its bound to infinity.
    loss = np.where(step[:, None] > amount[None, :], loss + 1.0, loss)
    return _worthwhile(step, loss @ share)


def _worthwhile(step: IntArray, loss: FloatArray) -> tuple[IntArray, FloatArray]:
    """The steps that lose less than every coarser one."""
    least = np.minimum.accumulate(np.append(loss, np.inf)[:0:-1])[::-1]
    kept = loss < least - _LOSSLESS
    return step[kept], loss[kept]


def fill_table(need: IntArray, value: IntArray, sizes: IntArray) -> list[Layer]:
    """The layers for `sizes` (k, 3), `need` (s, 3) in grid steps and `value` (s,) whole numbers > 0.

    Every need must be above zero on one axis, or the value would be infinite; no cell may exceed LARGEST_VALUE.
    """
    gpus = int(sizes[:, 2].max(initial=0))
    layers: list[Layer] = []
    for g in range(gpus + 1):
        rows, columns = sizes[sizes[:, 2] >= g, :2].max(axis=0) + 1
        layer: Layer = np.zeros((rows, columns), dtype=np.int32)
        if layers:
            np.copyto(layer, layers[-1][:rows, :columns])
        for (cpu, memory, taken), worth in zip(need.tolist(), value.tolist(), strict=True):
            if taken == 0 and g == 0:
                _add_copies(layer, cpu, memory, worth)
            elif 0 < taken <= g:
                _raise(layer[cpu:, memory:], layers[g - taken], worth)
        layers.append(layer)
    return layers


def near_best_at(
    layers: Sequence[Layer], need: IntArray, value: IntArray, sizes: IntArray, least: FloatArray
) -> tuple[IntArray, IntArray]:
    """(n,) sizes and (n, s) fillings worth more than the `least` (k,) of their size: the best with one task of each
    shape, of at most `_NEAR_BEST` shapes."""
    left = sizes[:, None, :] - need[None, :, :]
    fits = np.asarray((left >= 0).all(axis=2))
    rest = values_at(layers, np.where(fits[:, :, None], left, 0).reshape(-1, 3)).reshape(fits.shape)
    worth = np.where(fits, rest + value, -1)
    shape = np.argsort(-worth, axis=1, kind="stable")[:, :_NEAR_BEST]
    row = np.repeat(np.arange(len(sizes)), shape.shape[1])
    shape = shape.ravel()
    above = worth[row, shape] > np.maximum(least[row], 0)
    row, shape = row[above], shape[above]
    pattern = patterns_at(layers, need, value, left[row, shape])
    pattern[np.arange(len(row)), shape] += 1
    return row, pattern


def _add_copies(layer: Layer, cpu: int, memory: int, worth: int) -> None:
    if cpu == 0:
        layer, cpu, memory = layer.T, memory, cpu
    for start in range(cpu, len(layer), cpu):
        end = min(start + cpu, len(layer))
        _raise(layer[start:end, memory:], layer[start - cpu : end - cpu], worth)


def _raise(target: Any, source: Any, worth: int) -> None:
    """target = max(target, source + worth), in blocks that stay in the cache; source may be larger."""
    rows, columns = target.shape
    if not rows or not columns:
        return
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        part = target[start : start + step]
        np.maximum(part, source[start : start + len(part), :columns] + np.int32(worth), out=part)


def values_at(layers: Sequence[Layer], sizes: IntArray) -> IntArray:
    """(k,) int64: the worth of the best filling of each size."""
    found = np.zeros(len(sizes), dtype=np.int64)
    for g, layer in enumerate(layers):
        here = sizes[:, 2] == g
        found[here] = layer[sizes[here, 0], sizes[here, 1]]
    return found


def patterns_at(layers: Sequence[Layer], need: IntArray, value: IntArray, sizes: IntArray) -> IntArray:
    """(k, s) int64: a best filling of each size, traced back from its cell; ties go to the lower shape."""
    pattern = np.zeros((len(sizes), len(need)), dtype=np.int64)
    left = sizes.copy()
    rows = np.arange(len(sizes))
    worth = values_at(layers, left)
    while (worth > 0).any():
        going = np.flatnonzero(worth > 0)
        rows, left, worth = rows[going], left[going], worth[going]
        before = left[:, None, :] - need[None, :, :]
        fits = np.asarray((before >= 0).all(axis=2))
        source = values_at(layers, np.where(fits[:, :, None], before, 0).reshape(-1, 3)).reshape(fits.shape)
        step = np.where(fits, source + value == worth[:, None], False)
        # Where no shape leads here, the value is that of one GPU less.
        shape, moves = np.argmax(step, axis=1), np.asarray(step.any(axis=1))
        pattern[rows[moves], shape[moves]] += 1
        left = np.where(moves[:, None], left - need[shape], left - [0, 0, 1])
        worth = np.where(moves, worth - value[shape], worth)
    return pattern
