"""How fine must the knapsack's grid be? As coarse as time allows, with steps that the shapes themselves suggest.

Steps of which every need is a whole multiple lose nothing: mixes of 0.5, 1 and 2 GiB need no finer step than 512 MiB,
and 15,258 and 30,517 MiB are well served by 5,086.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argosy.placement.arrays import FloatArray, IntArray

_PARTS = 48  # steps tried: each need divided by 1 .. 48
_LONGEST = 20_000  # steps of an axis: the way back through the table is walked step by step
_LOSSLESS = 1e-12


@dataclass(frozen=True, slots=True)
class Grid:
    """Steps of cpu units and MiB; `exact` = every need is a whole multiple, so rounding down and up are the same."""

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

    extent: the largest cpu units and MiB of the sizes to be looked up.
    """
    share = weight / max(float(weight.sum()), 1e-300)
    steps = [_steps(need[:, axis], share, extent[axis]) for axis in (0, 1)]
    (cpu_step, cpu_loss), (memory_step, memory_loss) = steps
    # Rows by columns: every pair of steps that is small enough; the least loss, then the fewest cells.
    size = (extent[0] // cpu_step + 1)[:, None].astype(np.float64) * (extent[1] // memory_step + 1)[None, :]
    loss = np.where(size <= cells, cpu_loss[:, None] + memory_loss[None, :], np.inf)
    near = loss <= loss.min() + _LOSSLESS
    row, column = np.unravel_index(int(np.argmin(np.where(near, size, np.inf))), size.shape)
    cpu, memory = int(cpu_step[row]), int(memory_step[column])
    return Grid(cpu, memory, not (need[:, 0] % cpu).any() and not (need[:, 1] % memory).any())


def _steps(amount: IntArray, share: FloatArray, extent: int) -> tuple[IntArray, FloatArray]:
    """Steps worth trying, ascending, and what each loses: the mean of down and up, as a share of the need."""
    asked = amount > 0
    amount, share = amount[asked], share[asked]
    parts = np.arange(1, _PARTS + 1)
    coarse = extent // 4 ** np.arange(12) + 1  # so that some table is small enough, whatever is asked for
    tried = np.concatenate([(amount[:, None] // parts).ravel(), [np.gcd.reduce(amount)] if len(amount) else [], coarse])
    step = np.unique(np.maximum(tried.astype(np.int64), max(1, extent // _LONGEST)))
    over = amount[None, :] % step[:, None]
    loss = (np.minimum(over, step[:, None] - over) + np.minimum(over, 1) * 0.05 * step[:, None]) / np.maximum(amount, 1)
    # An amount below the step would round down to nothing, and its bound to infinity.
    loss = np.where(step[:, None] > amount[None, :], loss + 1.0, loss)
    return _worthwhile(step, loss @ share)


def _worthwhile(step: IntArray, loss: FloatArray) -> tuple[IntArray, FloatArray]:
    """Those that lose less than every coarser one."""
    least = np.minimum.accumulate(np.append(loss, np.inf)[:0:-1])[::-1]
    kept = loss < least - _LOSSLESS
    return step[kept], loss[kept]
