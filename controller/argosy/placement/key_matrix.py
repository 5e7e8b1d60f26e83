"""Placement of many small batches, task by task, on a matrix of keys: kinds of task x instances.

A decision is the lowest entry of one row, and each task changes one column. Placing a task lowers the key of its
instance for every kind. If the chain is a weighted sum of the free amounts, the amount depends only on the task and
the kind, so one subtraction brings the column up to date; if the instance was idle, another one for busy-first. A
spread over instances rises by one for the kinds of the task's group, which is part of the same subtraction. A curved
step, such as `fragmentation`, is worked out again for the instance that has changed, and the keys move by the
difference (`_Curve`). Where a chain ends with a draw, the decision is one of the lowest entries.

Tasks that share a GPU leave the free amounts of GPUs to others: what one may open counts as taken (`gpu_shares`). Their
own keys change only with the number of idle GPUs. Whether they fit is computed for the one row that has changed; rows
in the same position have the same limits (`LazyColumns`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import numpy as np

from argosy.placement.arrays import IntArray
from argosy.placement.candidates import KindCandidates, RowCandidates
from argosy.placement.demand import Batch, Queue
from argosy.placement.draws import SMALL_BATCH, draws_of, pick
from argosy.placement.fitness import AXES, CPU, GPU, MEMORY, Mix
from argosy.placement.gpu_shares import LazyColumns
from argosy.placement.keys import BUSY_FIRST, SHARED_FIRST, Key, Trend
from argosy.placement.pass_state import PassState
from argosy.placement.strategy import Random, SpreadInstances
from argosy.placement.task_kinds import TaskKind

MATRIX_FROM: Final = 64  # batches: below this, making the matrix takes longer than it saves
_KINDS: Final = 20  # kinds among MATRIX_FROM batches, more in proportion: above this, the same holds
_MAX_CELLS: Final = 1 << 23  # of the matrix: 64 MiB
_MAX_KNOWN: Final = 1 << 20  # keys of curved steps that are kept: 8 MiB
_KEY_LIMIT: Final = 1 << 61
_NONE: Final = 1 << 62  # larger entries mean "does not fit": _NEVER, and what was added or subtracted since
_NEVER: Final = 3 << 61  # no sum of changes reaches _KEY_LIMIT
_STEPPED: Final = (BUSY_FIRST, SHARED_FIRST)  # keys that change once, by one
Chain = tuple[Key | SpreadInstances, ...]


@dataclass(frozen=True, slots=True)
class _Reach:
    """Upper bounds of the values in keys. amounts: cpu units, MiB and GPUs of an instance. tasks: of one group on
    one."""

    amounts: tuple[int, int, int]
    tasks: int

    @classmethod
    def of(cls, state: PassState, kinds: Sequence[TaskKind], queue: Queue) -> _Reach:
        cpu, memory, gpu = np.maximum(state.free, state.supply.total).max(axis=1, initial=0).tolist()
        spread = {kind.rules.batch.group for kind in kinds if any(isinstance(s, SpreadInstances) for s in kind.steps)}
        before = max((int(state.supply.of_group(group).max(initial=0)) for group in spread), default=0)
        return cls((cpu, memory, gpu), before + int(queue.count.sum()))


def stretches(
    queue: Queue, kinds: Sequence[TaskKind], state: PassState, matrix_from: int
) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, whether a matrix pays) of the parts of a queue, in order. The queue has at least one batch, and no
    part with a matrix has fewer than `matrix_from`."""
    reach = _Reach.of(state, kinds, queue)
    able = np.array([_able(kind, reach) for kind in kinds], dtype=np.bool_)
    small = able[queue.kind] & (queue.count <= SMALL_BATCH)  # above this, the closed form of a batch is quicker
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


def _able(kind: TaskKind, reach: _Reach) -> bool:
    """Whether only free resources, built-in keys of them and the tasks of the group matter, and the keys fit into one
    number."""
    batch, chain = kind.rules.batch, _chain(kind)
    if not kind.rules.simple_but_for_shares or batch.soft or batch.finish_at or kind.names_function:
        return False
    if len(chain) < len(kind.steps) and not isinstance(kind.steps[len(chain)], Random):
        return False
    return _digits(chain, reach)[0] < _KEY_LIMIT


def _chain(kind: TaskKind) -> Chain:
    """The steps before the first draw (which leaves nothing to decide), and before the first step without a key for
    each row."""
    return tuple(takewhile(lambda step: isinstance(step, Key | SpreadInstances), kind.steps))  # type: ignore[arg-type]


def _is_curved(key: Key) -> bool:
    """Whether the keys of a row are more than a subtraction away from those before the task was placed."""
    return key.weights is None and key.trend is not Trend.STILL and key not in _STEPPED


def _digits(chain: Chain, reach: _Reach) -> tuple[int, list[int]]:
    """The size of the combined key, and the factor of each step's key in it."""
    size, factors = 1, []
    for step in reversed(chain):
        factors.append(size)
        size *= 2 * (step.high(reach.amounts) if isinstance(step, Key) else reach.tasks) + 1
    return size, factors[::-1]


def place_stretch(
    queue: Queue, kinds: Sequence[TaskKind], state: PassState, mix: Mix, stretch: slice
) -> tuple[IntArray, IntArray, IntArray]:
    """Place the batches of a stretch and update `state`: the columns batch, row and count of an Assignment."""
    present, local = np.unique(queue.kind[stretch], return_inverse=True)
    state.own()
    board = _KeyMatrix([kinds[index] for index in present.tolist()], state, mix, _Reach.of(state, kinds, queue))
    batches: list[int] = []
    rows: list[int] = []
    counts, drawn, first = queue.count[stretch].tolist(), _drawn(queue, kinds, stretch), 0
    for position, kind in enumerate(local.tolist()):
        for number in range(first, first + counts[position]):
            row = board.place_one(kind, drawn[number] if drawn else None)
            if row < 0:
                break
            batches.append(position)
            rows.append(row)
        first += counts[position]
    batch, row_of = np.array(batches, dtype=np.int64), np.array(rows, dtype=np.int64)
    _settle(state, board.kinds, local[batch], row_of)
    board.settle()
    pairs, count = np.unique(batch * max(1, len(state.supply)) + row_of, return_counts=True)
    batch, row_of = np.divmod(pairs, max(1, len(state.supply)))
    return batch + stretch.start, row_of, count.astype(np.int64, copy=False)


def _drawn(queue: Queue, kinds: Sequence[TaskKind], stretch: slice) -> list[int] | None:
    """The draws of the tasks of a stretch, batch after batch; None if no chain draws."""
    seeds = np.array([kind.seed if kind.draws else -1 for kind in kinds], dtype=np.int64)[queue.kind[stretch]]
    if (seeds < 0).all():
        return None
    counts = queue.count[stretch]
    position = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(position)) - (counts.cumsum() - counts)[position]
    return draws_of(np.maximum(seeds, 0)[position], position + stretch.start, number)


def _settle(state: PassState, kinds: Sequence[TaskKind], kind: IntArray, row: IntArray) -> None:
    """Update the columns that no key of a stretch uses: running tasks, in all and by group."""
    groups = sorted({k.rules.batch.group for k in kinds})
    group_of_kind = np.array([groups.index(k.rules.batch.group) for k in kinds], dtype=np.int64)
    for number, group in enumerate(groups):
        mine = row[group_of_kind[kind] == number]
        if len(mine):
            state.count_tasks(group, *np.unique(mine, return_counts=True))


class _SharesOfBoard:
    """The changes that a task with GPUs, shared or whole, makes on its row for the other kinds."""

    def __init__(self, kinds: Sequence[TaskKind], state: PassState, weights: IntArray, per_last: IntArray) -> None:
        """weights: (k, 3), of which those of GPUs are set to 0 for kinds that share them. per_last: (k,) by how much
        the keys fall with the last idle GPU of their row."""
        batches = [kind.rules.batch for kind in kinds]
        mib, owner = np.array([(batch.gpu_share_mib, batch.gpu_owner) for batch in batches], dtype=np.int64).T
        self._batches, self._sharers, self._per_last = batches, mib.nonzero()[0], per_last
        self.touches = [len(self._sharers) > 0 and bool(batch.gpu_share_mib or batch.gpus) for batch in batches]
        if len(self._sharers):
            self._rows = LazyColumns(state.gpu_shares(), mib[self._sharers], owner[self._sharers])
        self._per_idle = np.where(mib > 0, weights[:, GPU], 0)
        weights[self._sharers, GPU] = 0
        self._per_opened = weights[:, GPU] + self._per_idle
        self._drops: dict[tuple[int, int], IntArray] = {}

    def follow(self, kind: int, row: int, idle: int, column: IntArray) -> int:
        """A task of a kind was placed on `row` with `idle` GPUs. column: (k,) the keys there. Returns the GPUs that it
        may have opened."""
        batch = self._batches[kind]
        if batch.gpu_share_mib:
            closed = self._rows.share(row, idle, batch.gpu_share_mib, batch.gpu_owner)
        else:
            closed = self._rows.give(row, idle, batch.gpus)
        if closed is not None:
            column[self._sharers[closed]] = _NEVER
        return min(idle, 1) if batch.gpu_share_mib else 0

    def drop(self, kind: int, idle: int, by_needs: IntArray) -> IntArray:
        """(k,) by how much the keys fall, `by_needs` of the task included."""
        batch = self._batches[kind]
        case = kind, min(idle, 2) if batch.gpu_share_mib else min(idle - batch.gpus, 1)
        found = self._drops.get(case)
        if found is None:
            found = self._drops[case] = by_needs + self._by_idle_gpus(batch, case[1])
        return found

    def _by_idle_gpus(self, batch: Batch, case: int) -> IntArray:
        """case: idle GPUs before a share, at most 2, or after a task with whole GPUs, at most 1."""
        if batch.gpu_share_mib:
            last = self._per_opened - self._per_idle + self._per_last
            return (np.zeros_like(last), last, self._per_opened)[case]
        return batch.gpus * self._per_idle if case else (batch.gpus - 1) * self._per_idle + self._per_last

    def settle(self) -> None:
        """When a stretch ends."""
        if any(self.touches):
            self._rows.settle()


class _Curve:
    """The part that a curved step has in the keys of the w kinds that follow it: worked out for a row when it changes,
    and the keys move by the difference."""

    def __init__(self, step: Key, chains: Sequence[Chain], matrix: _KeyMatrix) -> None:
        who = [index for index, chain in enumerate(chains) if step in chain]
        batches = [matrix.kinds[index].rules.batch for index in who]
        self._step, self._who = step, np.array(who, dtype=np.int64)
        self._state, self._mix = matrix.state, matrix.mix
        self._factors = np.array([_factor(chains[index], step, matrix.reach) for index in who], dtype=np.int64)
        self._needs = np.array([batch.need for batch in batches], dtype=np.int64).T.copy()
        self._shares_mib = np.array([batch.gpu_share_mib for batch in batches], dtype=np.int64)
        self._images = [batch.image for batch in batches]
        self._values = [*np.stack([matrix.values[index, step] for index in who], axis=1)]
        self._nature = _natures(matrix.state)
        self._known: dict[tuple[int, ...], IntArray] = {}

    def follow(self, row: int, free: Sequence[int], column: IntArray) -> None:
        """A task was placed on `row`. free: (3,) there, column: (k,) the keys there."""
        before, now, keys = self._values[row], self._at(row, free), column[self._who]
        column[self._who] = np.where(keys >= _NONE, _NEVER, keys + (now - before) * self._factors)
        self._values[row] = now

    def _at(self, row: int, free: Sequence[int]) -> IntArray:
        """(w,) the step's keys on a row: the same as on any other of its nature with as much free."""
        place = self._nature[row], *free
        found = self._known.get(place)
        if found is None:
            kinds = self._needs, self._shares_mib, np.zeros(1), self._images
            found = self._step.of(KindCandidates(self._state, row, free, *kinds, self._mix))
            if len(self._known) * len(self._who) < _MAX_KNOWN:
                self._known[place] = found
        return found


def _natures(state: PassState) -> list[int]:
    """(m,) equal where only what is free makes a difference to a curved step."""
    shares = state.gpu_shares()
    columns = *state.supply.total, shares.memory, *shares.known
    numbers: dict[tuple[int, ...], int] = {}
    return [numbers.setdefault(nature, len(numbers)) for nature in zip(*(c.tolist() for c in columns), strict=True)]


class _KeyMatrix:
    """The matrix. keys: (k, m) int64, the combined key of kind i on row j; 2^62 or more where the task does not fit."""

    def __init__(self, kinds: Sequence[TaskKind], state: PassState, mix: Mix, reach: _Reach) -> None:
        self.kinds, self.state, self.mix, self.reach = kinds, state, mix, reach
        self.values: dict[tuple[int, Key], IntArray] = {}  # (m,) of the curved steps of each kind, at the start
        self._needs = np.array([kind.rules.batch.need for kind in kinds], dtype=np.int64).T.copy()
        chains = [_chain(kind) for kind in kinds]
        self.keys = np.empty((len(kinds), len(state.supply)), dtype=np.int64)
        rows = np.arange(len(state.supply))
        for index, kind in enumerate(kinds):
            seen = RowCandidates(state, kind.rules.batch, rows, None, mix)
            self.keys[index] = self._combined(index, chains[index], seen)
            short = (state.free < self._needs[:, index : index + 1]).any(axis=0)
            if share_mib := kind.rules.batch.gpu_share_mib:
                shares = state.gpu_shares()
                short |= shares.room(rows, state.free[GPU], share_mib) < 1
                short |= ~shares.open_to(rows, kind.rules.batch.gpu_owner)
            self.keys[index, short | ~kind.rules.allowed] = _NEVER
        weights = _weights(chains, reach)
        per_last = np.array([_factor(chain, SHARED_FIRST, reach) for chain in chains], dtype=np.int64)
        self.shares = _SharesOfBoard(kinds, state, weights, per_last)
        self._drop = np.ascontiguousarray((weights @ self._needs).T) - _rises(kinds, chains, reach)
        self._woken = np.array([_factor(chain, BUSY_FIRST, reach) for chain in chains], dtype=np.int64)
        self._draws = [kind.draws for kind in kinds]
        self._idle = ((state.running_tasks == 0) & self._woken.any()).tolist()
        self._left: list[int] | None = None
        if state.tasks_left is not None:
            self.keys[:, state.tasks_left <= 0] = _NEVER
            self._left = state.tasks_left.tolist()
        curved = dict.fromkeys(step for chain in chains for step in chain if isinstance(step, Key) and _is_curved(step))
        self._curves = [_Curve(step, chains, self) for step in curved]
        self._alive = [len(state.supply) > 0] * len(kinds)
        # Views are made once: to make one takes as long as to use it. Single numbers are quicker outside numpy.
        self._of_kind, self._columns, self._drop_of = [*self.keys], [*self.keys.T], [*self._drop]
        self._free = state.free.T.tolist()
        self._need_of = self._needs.T.tolist()
        order = self._needs.argsort(axis=1, kind="stable")
        self._by_need = [(np.take(need, at).tolist(), at) for need, at in zip(self._needs, order, strict=True)]

    def _combined(self, index: int, chain: Chain, seen: RowCandidates) -> IntArray:
        """(m,) the combined keys of a kind."""
        found = np.zeros(len(seen.rows), dtype=np.int64)
        for step, factor in zip(chain, _digits(chain, self.reach)[1], strict=True):
            value = step.of(seen) if isinstance(step, Key) else self.state.of_group(seen.batch.group)
            found += value * factor
            if isinstance(step, Key) and _is_curved(step):
                self.values[index, step] = value
        return found

    def place_one(self, kind: int, drawn: int | None) -> int:
        """The row that takes one more task of a kind, or -1; free resources and the row's keys are updated."""
        if not self._alive[kind]:
            return -1
        keys = self._of_kind[kind]
        row = int(keys.argmin())
        lowest = keys.item(row)
        if lowest >= _NONE:
            self._alive[kind] = False  # free resources only shrink during a pass
            return -1
        if drawn is not None and self._draws[kind]:
            equal = (keys == lowest).nonzero()[0]
            row = int(equal[pick(drawn, len(equal))])
        free, need, column = self._free[row], self._need_of[kind], self._columns[row]
        drop, opened = self._drop_of[kind], 0
        if self.shares.touches[kind]:
            drop = self.shares.drop(kind, free[GPU], drop)
            opened = self.shares.follow(kind, row, free[GPU], column)
        column -= drop
        if self._idle[row]:
            self._idle[row] = False
            column -= self._woken
        self._take(free, (need[CPU], need[MEMORY], need[GPU] + opened), column)
        for curve in self._curves:
            curve.follow(row, free, column)
        if self._left is not None:
            self._left[row] -= 1
            if not self._left[row]:
                column[:] = _NEVER
        return row

    def _take(self, free: list[int], amounts: tuple[int, int, int], column: IntArray) -> None:
        """Take amounts from what is free on a row; the kinds that need more than is left never fit there again."""
        for axis, amount in enumerate(amounts):
            if amount:
                before = free[axis]
                free[axis] = left = before - amount
                needs, kinds = self._by_need[axis]
                first = bisect_right(needs, left)
                if first < len(needs) and needs[first] <= before:
                    column[kinds[first : bisect_right(needs, before)]] = _NEVER

    def settle(self) -> None:
        """When a stretch ends."""
        self.state.free[:] = np.array(self._free, dtype=np.int64).reshape(-1, len(AXES)).T
        self.shares.settle()


def _factor(chain: Chain, step: Key | SpreadInstances, reach: _Reach) -> int:
    """The factor of a step's key in the chain's combined key; 0 if the chain lacks it."""
    return sum(factor for each, factor in zip(chain, _digits(chain, reach)[1], strict=True) if each == step)


def _weights(chains: Sequence[Chain], reach: _Reach) -> IntArray:
    """(k, 3) int64: by how much a unit of each resource, when it is taken, lowers the keys of kind i on its row."""
    weights = np.zeros((len(chains), 3), dtype=np.int64)
    for index, chain in enumerate(chains):
        _, factors = _digits(chain, reach)
        for step, factor in zip(chain, factors, strict=True):
            if isinstance(step, Key) and step.weights is not None:
                weights[index] += factor * np.array(step.weights, dtype=np.int64)
    return weights


def _rises(kinds: Sequence[TaskKind], chains: Sequence[Chain], reach: _Reach) -> IntArray:
    """(k, k) int64: by how much a task of kind i raises the keys of kind j on its row, if j spreads the same group."""
    groups = np.array([kind.rules.batch.group for kind in kinds])
    factors = np.array([_factor(chain, SpreadInstances(), reach) for chain in chains], dtype=np.int64)
    return np.where(groups[:, None] == groups[None, :], factors[None, :], 0)
