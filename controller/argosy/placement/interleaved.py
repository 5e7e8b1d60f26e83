"""How are many small batches placed, task by task? On a matrix of keys, kinds of task x instances.

A decision is the lowest entry of one row, and each task changes one column. Placing a task lowers the key of its
instance for every kind. Where the chain is a weighted sum of what stays free, the amount depends only on the task and
the kind, so one subtraction brings the column up to date; where the instance was idle, another one for busy-first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from argosy.placement.arrays import FAR, IntArray
from argosy.placement.candidates import KindCandidates, RowCandidates
from argosy.placement.demand import Queue
from argosy.placement.fitness import Mix
from argosy.placement.keys import BUSY_FIRST, Key, Trend
from argosy.placement.pass_state import PassState
from argosy.placement.task_kinds import TaskKind

_SMALL_BATCH: Final = 8  # tasks: above, the closed form of a batch is quicker
MATRIX_FROM: Final = 64  # batches: below, making the matrix takes longer than it saves
_KINDS: Final = 20  # kinds among MATRIX_FROM batches, and in proportion: above, the same holds
_MAX_CELLS: Final = 1 << 23  # of the matrix: 64 MiB
_KEY_LIMIT: Final = 1 << 61
_NONE: Final = 1 << 62  # larger entries mean "does not fit": FAR, less what was subtracted since
Chain = tuple[Key, ...]


def stretches(
    queue: Queue, kinds: Sequence[TaskKind], state: PassState, matrix_from: int
) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, whether a matrix pays) of the parts of a queue, in order; never below `matrix_from` batches."""
    end = len(queue.kind)
    if end < max(1, matrix_from):
        yield 0, end, False
        return
    top = _top(state)
    able = np.array([_able(kind, top) for kind in kinds], dtype=np.bool_)
    small = able[queue.kind] & (queue.count <= _SMALL_BATCH)
    edges = np.flatnonzero(np.diff(small, prepend=not small[0], append=not small[-1]))
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if small[start]:
            yield from _cut(queue, start, stop, max(1, _MAX_CELLS // max(1, len(state.supply))), matrix_from)
        else:
            yield start, stop, False


def _cut(queue: Queue, start: int, stop: int, most_kinds: int, matrix_from: int) -> Iterator[tuple[int, int, bool]]:
    while start < stop:
        _, firsts = np.unique(queue.kind[start:stop], return_index=True)
        until = start + int(np.sort(firsts)[most_kinds]) if len(firsts) > most_kinds else stop
        length, present = until - start, min(len(firsts), most_kinds)
        yield start, until, length >= matrix_from and length * _KINDS >= matrix_from * present
        start = until


def _top(state: PassState) -> tuple[int, int, int]:
    cpu, memory, gpu = np.maximum(state.free, state.supply.total).max(axis=1, initial=0).tolist()
    return cpu, memory, gpu


def _able(kind: TaskKind, top: tuple[int, int, int]) -> bool:
    """Whether only free resources and built-in keys of them matter, and the keys fit into one number."""
    batch, chain = kind.rules.batch, _chain(kind)
    if not kind.rules.simple or batch.soft or batch.finish_at or kind.names_function:
        return False
    if len(chain) < len(kind.steps) or (BUSY_FIRST in chain and _is_curved(chain)):
        return False  # a curved chain is worked out anew, from running tasks that are counted at the end of a stretch
    return _digits(chain, top)[0] < _KEY_LIMIT


def _chain(kind: TaskKind) -> Chain:
    return tuple(step for step in kind.steps if isinstance(step, Key))


def _is_curved(chain: Chain) -> bool:
    """Whether the keys of a row are more than a subtraction away from those before the task was placed."""
    return any(key.weights is None and key.trend is not Trend.STILL and key is not BUSY_FIRST for key in chain)


def _digits(chain: Chain, top: tuple[int, int, int]) -> tuple[int, list[int]]:
    """The size of the combined key, and what each key is multiplied by in it."""
    size, factors = 1, []
    for key in reversed(chain):
        factors.append(size)
        size *= 2 * key.high(top) + 1
    return size, factors[::-1]


def place_stretch(
    queue: Queue, kinds: Sequence[TaskKind], state: PassState, mix: Mix, stretch: slice
) -> tuple[IntArray, IntArray, IntArray]:
    """Place the batches of a stretch and update `state`: the columns batch, row and count of an Assignment."""
    present, local = np.unique(queue.kind[stretch], return_inverse=True)
    board = _Board([kinds[index] for index in present.tolist()], state, mix)
    batches: list[int] = []
    rows: list[int] = []
    counts = queue.count[stretch].tolist()
    for position, kind in enumerate(local.tolist()):
        for _ in range(counts[position]):
            row = board.place_one(kind)
            if row < 0:
                break
            batches.append(position)
            rows.append(row)
    batch, row_of = np.array(batches, dtype=np.int64), np.array(rows, dtype=np.int64)
    _settle(state, board.kinds, local[batch], row_of)
    pairs, count = np.unique(batch * max(1, len(state.supply)) + row_of, return_counts=True)
    batch, row_of = np.divmod(pairs, max(1, len(state.supply)))
    return batch + stretch.start, row_of, count.astype(np.int64, copy=False)


def _settle(state: PassState, kinds: Sequence[TaskKind], kind: IntArray, row: IntArray) -> None:
    """Update the columns that no key of a stretch looks at: running tasks, in all and by group."""
    groups = sorted({k.rules.batch.group for k in kinds})
    group_of_kind = np.array([groups.index(k.rules.batch.group) for k in kinds], dtype=np.int64)
    for number, group in enumerate(groups):
        mine = row[group_of_kind[kind] == number]
        if len(mine):
            state.count_tasks(group, *np.unique(mine, return_counts=True))


class _Board:
    """The matrix. keys: (k, m) int64, the combined key of kind i on row j; 2^62 or more where the task does not fit."""

    def __init__(self, kinds: Sequence[TaskKind], state: PassState, mix: Mix) -> None:
        self.kinds, self._state, self._mix = kinds, state, mix
        self._needs = np.array([kind.rules.batch.need for kind in kinds], dtype=np.int64).T.copy()
        self._steps = [tuple(need) for need in self._needs.T.tolist()]
        top = _top(state)
        chains = [_chain(kind) for kind in kinds]
        self.keys = np.empty((len(kinds), len(state.supply)), dtype=np.int64)
        rows = np.arange(len(state.supply))
        for index, kind in enumerate(kinds):
            seen = RowCandidates(state, kind.rules.batch, rows, None, mix)
            self.keys[index] = _combined(chains[index], seen, top)
            short = (state.free < self._needs[:, index : index + 1]).any(axis=0)
            self.keys[index, short | ~kind.rules.allowed] = FAR
        self._drop = _drops(chains, self._needs, top)
        self._woken = np.array([_factor(chain, BUSY_FIRST, top) for chain in chains], dtype=np.int64)
        self._idle = (state.running_tasks == 0).tolist()
        self._left: list[int] | None = None
        if state.tasks_left is not None:
            self.keys[:, state.tasks_left <= 0] = FAR
            self._left = state.tasks_left.tolist()
        self._recomputed = self._curved(chains, top)
        self._alive = [len(state.supply) > 0] * len(kinds)
        self._columns = [self.keys[:, row] for row in range(len(state.supply))]
        self._free = [self._state.free[:, row] for row in range(len(state.supply))]
        self._short = np.empty(self._needs.shape, dtype=np.bool_)
        self._any_short = np.empty(len(kinds), dtype=np.bool_)

    def _curved(self, chains: Sequence[Chain], top: tuple[int, int, int]) -> list[tuple[Chain, IntArray, IntArray]]:
        """The chains whose keys are more than a subtraction, with the kinds that follow them and their needs."""
        found = []
        for chain in {chain for chain in chains if _is_curved(chain)}:
            who = np.array([index for index, other in enumerate(chains) if other == chain], dtype=np.int64)
            found.append((chain, who, self._needs[:, who].copy()))
        self._top = top
        return found

    def place_one(self, kind: int) -> int:
        """The row that takes one more task of a kind, or -1; free resources and the row's keys are updated."""
        if not self._alive[kind]:
            return -1
        keys = self.keys[kind]
        row = int(keys.argmin())
        if keys[row] >= _NONE:
            self._alive[kind] = False  # free resources only shrink during a pass
            return -1
        free, column = self._free[row], self._columns[row]
        free -= self._needs[:, kind]
        column -= self._drop[kind]
        if self._idle[row]:
            self._idle[row] = False
            column -= self._woken
        np.greater(self._needs, free[:, None], out=self._short)
        np.logical_or.reduce(self._short, axis=0, out=self._any_short)
        for chain, who, needs in self._recomputed:
            seen = KindCandidates(self._state, row, needs, np.zeros(1), self._mix)
            column[who] = np.where(column[who] >= _NONE, FAR, _combined(chain, seen, self._top))
        np.copyto(column, FAR, where=self._any_short)
        if self._left is not None:
            self._left[row] -= 1
            if not self._left[row]:
                column[:] = FAR
        return row


def _combined(chain: Chain, seen: RowCandidates | KindCandidates, top: tuple[int, int, int]) -> IntArray:
    _, factors = _digits(chain, top)
    terms = [key.of(seen) * factor for key, factor in zip(chain, factors, strict=True)]
    return sum(terms[1:], start=terms[0])


def _factor(chain: Chain, key: Key, top: tuple[int, int, int]) -> int:
    """What a key is multiplied by in the chain's combined key; 0 if the chain lacks it."""
    return sum(factor for each, factor in zip(chain, _digits(chain, top)[1], strict=True) if each is key)


def _drops(chains: Sequence[Chain], needs: IntArray, top: tuple[int, int, int]) -> IntArray:
    """(k, k) int64: by how much a task of kind i lowers the keys of kind j on its row; 0 unless weighted sums."""
    weights = np.zeros((len(chains), 3), dtype=np.int64)
    for index, chain in enumerate(chains):
        _, factors = _digits(chain, top)
        for key, factor in zip(chain, factors, strict=True):
            if key.weights is not None:
                weights[index] += factor * np.array(key.weights, dtype=np.int64)
    return np.ascontiguousarray((weights @ needs).T)
