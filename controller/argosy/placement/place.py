"""Placement of a queue, batch by batch in queue order; each batch sees the room that earlier batches left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from types import MappingProxyType
from typing import Final

import numpy as np

from argosy.placement import key_matrix
from argosy.placement.arrays import BoolArray, IntArray, empty_rows
from argosy.placement.candidates import mix_of
from argosy.placement.chain import BatchTurn, kept_key, leading_keys
from argosy.placement.demand import Batch, Queue
from argosy.placement.feasibility import fitting, most_instances, room
from argosy.placement.fitness import Fitness, Mix
from argosy.placement.pass_state import PassState
from argosy.placement.strategy import Step
from argosy.placement.supply import Supply
from argosy.placement.task_kinds import TaskKind

_NO_FITNESS: Final[Mapping[str, Fitness]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """`count[i]` tasks of batch `batch[i]` go to row `row[i]`."""

    batch: IntArray
    """(p,) int64, ascending."""
    row: IntArray
    """(p,) int64, ascending within a batch."""
    count: IntArray
    """(p,) int64, positive."""
    unplaced: IntArray
    """(b,) int64: tasks of each batch that found no place."""

    @property
    def placed(self) -> int:
        """How many tasks found a place."""
        return int(self.count.sum())

    def tasks(self) -> Counter[tuple[int, int]]:
        """(batch, row) -> tasks."""
        pairs = zip(self.batch.tolist(), self.row.tolist(), strict=True)
        return Counter(dict(zip(pairs, self.count.tolist(), strict=True)))


def place(batches: Sequence[Batch], supply: Supply, *, fitness: Mapping[str, Fitness] = _NO_FITNESS) -> Assignment:
    """Where the tasks of a queue go. `supply` does not change. fitness: users' functions that strategies may name.

    ValueError for an invalid strategy, constraint or number; a task that fits nowhere is merely unplaced.
    """
    return place_queue(Queue.of(batches), supply, fitness=fitness)


def place_queue(
    queue: Queue,
    supply: Supply,
    *,
    fitness: Mapping[str, Fitness] = _NO_FITNESS,
    matrix_from: int = key_matrix.MATRIX_FROM,
) -> Assignment:
    """`place` for a queue that is columns already. matrix_from: changes speed only (`key_matrix`)."""
    return place_further(queue, PassState(supply, queue), fitness=fitness, matrix_from=matrix_from, is_last=True)


def place_further(
    queue: Queue,
    state: PassState,
    *,
    fitness: Mapping[str, Fitness] = _NO_FITNESS,
    matrix_from: int = key_matrix.MATRIX_FROM,
    is_last: bool = False,
) -> Assignment:
    """`place_queue` on the room that an earlier pass has left. The state stays usable, unless this pass `is_last`."""
    mix = state.supply.mix or mix_of(queue)
    kinds = [TaskKind.of(batch, state.supply, fitness) for batch in queue.kinds]
    plan: list[tuple[IntArray, IntArray, IntArray]] = []
    unplaced = queue.count.copy()
    batches = len(queue.kind)
    one_by_one = [(0, batches, False)]
    few = batches < max(1, matrix_from)
    for start, stop, many in one_by_one if few else key_matrix.stretches(queue, kinds, state, matrix_from):
        if many:
            plan.append(key_matrix.place_stretch(queue, kinds, state, mix, slice(start, stop)))
            np.subtract.at(unplaced, plan[-1][0], plan[-1][2])
            continue
        for position in range(start, stop):
            kind = kinds[queue.kind[position]]
            rows, counts = _placed(kind, int(queue.count[position]), position, state, mix)
            if len(rows):
                plan.append((np.full(len(rows), position, dtype=np.int64), rows, counts))
                unplaced[position] -= counts.sum()
                if not is_last or position + 1 < batches:
                    state.take(kind.rules.batch, rows, counts)
    if len(plan) == 1:
        return Assignment(*plan[0], unplaced)
    batch, row, count = map(np.concatenate, zip(*plan, strict=True)) if plan else (empty_rows(),) * 3
    return Assignment(batch, row, count, unplaced)


def _placed(kind: TaskKind, n: int, position: int, state: PassState, mix: Mix) -> tuple[IntArray, IntArray]:
    """Where n tasks of a kind go: the rows used, ascending, and how many tasks go to each."""
    rows = fitting(kind.rules, state)
    if not len(rows) or not n:
        return empty_rows(), empty_rows()
    steps, is_simple = kind.steps_now(state), kind.rules.simple
    if is_simple and not kind.draws:
        rows, rooms, steps = _first_class(kind, steps, n, rows, state, mix)
    else:
        rooms = room(kind.rules, state, rows)
    turn = BatchTurn(state, kind.rules.batch, mix, rows, rooms, kind.random(position, n))
    if n == 1 and is_simple and len(keys := [*leading_keys(steps)]) == len(steps):
        return turn.first_choice(keys), np.ones(1, np.int64)
    if not is_simple:
        turn = turn.only(rooms > 0)
        most = most_instances(kind.rules, state)
        if most is not None:
            turn = turn.only(_opened(turn, steps, n, most))
    counts = turn.place(steps, n)
    used = counts.nonzero()[0]
    return turn.rows[used], counts[used]


def _first_class(
    kind: TaskKind, steps: tuple[Step, ...], n: int, rows: IntArray, state: PassState, mix: Mix
) -> tuple[IntArray, IntArray, tuple[Step, ...]]:
    """Rows, their rooms, and the steps of the chain that distinguish them. Keys by size do not change: if the rows with
    the lowest key hold all n tasks, no other row gets any."""
    kept = tuple(takewhile(lambda key: key.by_size, leading_keys(steps)))
    if kept:
        column = kept_key(kept, kind.rules.batch, state.supply, mix).take(rows)
        best = rows[column == column.min()]
        rooms = np.ones(len(best), np.int64) if n == 1 else room(kind.rules, state, best)
        if n == 1 or rooms.sum() >= n:
            return best, rooms, steps[len(kept) :]
    return rows, room(kind.rules, state, rows), steps


def _opened(turn: BatchTurn, steps: tuple[Step, ...], n: int, most: int) -> BoolArray:
    """(f,) bool: the rows that remain when only `most` instances may run tasks of the group.

    Until the last new instance is opened, placing without the limit does the same as placing with it. So the instances
    that it opens first remain; bisection finds how many tasks open exactly `most`. If the choice is random, the
    instances are drawn first, then the tasks among them.
    """
    used = turn.state.of_group(turn.batch.group) > 0
    fresh = max(0, most - int(np.count_nonzero(used)))
    here = used[turn.rows]
    if np.count_nonzero(~here) <= fresh:
        return np.ones_like(here)
    if not fresh:
        return here
    if turn.random is not None:
        return here | (replace(turn, room=np.where(here, 0, 1)).place(steps, fresh) > 0)
    low, high = fresh, min(n, int(np.minimum(turn.room, n).sum()))
    while low < high:
        middle = (low + high) // 2
        opened = np.count_nonzero((turn.place(steps, middle) > 0) & ~here)
        low, high = (middle + 1, high) if opened < fresh else (low, middle)
    return here | (turn.place(steps, low) > 0)
