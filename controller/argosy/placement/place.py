"""Which instance runs each task of a queue? Batch by batch in queue order, each seeing what those before it left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from argosy.placement import interleaved
from argosy.placement.arrays import BoolArray, IntArray, empty_rows
from argosy.placement.candidates import mix_of
from argosy.placement.chain import BatchTurn
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
    matrix_from: int = interleaved.MATRIX_FROM,
) -> Assignment:
    """`place` for a queue that is columns already. matrix_from: changes speed only (`interleaved`)."""
    return place_further(queue, PassState(supply, queue), fitness=fitness, matrix_from=matrix_from)


def place_further(
    queue: Queue,
    state: PassState,
    *,
    fitness: Mapping[str, Fitness] = _NO_FITNESS,
    matrix_from: int = interleaved.MATRIX_FROM,
) -> Assignment:
    """`place_queue` on what a pass has left, which goes on from there."""
    mix = mix_of(queue)
    kinds = [TaskKind.of(batch, state.supply, fitness) for batch in queue.kinds]
    plan: list[tuple[IntArray, IntArray, IntArray]] = []
    for start, stop, many in interleaved.stretches(queue, kinds, state, matrix_from):
        if many:
            plan.append(interleaved.place_stretch(queue, kinds, state, mix, slice(start, stop)))
            continue
        for position in range(start, stop):
            rows, counts = place_batch(kinds[queue.kind[position]], int(queue.count[position]), position, state, mix)
            if len(rows):
                plan.append((np.full(len(rows), position, dtype=np.int64), rows, counts))
    batch, row, count = (
        (np.concatenate([empty_rows(), *columns]) for columns in zip(*plan, strict=True))
        if plan
        else (empty_rows(),) * 3
    )
    unplaced = queue.count.copy()
    np.subtract.at(unplaced, batch, count)
    return Assignment(batch, row, count, unplaced)


def place_batch(kind: TaskKind, n: int, position: int, state: PassState, mix: Mix) -> tuple[IntArray, IntArray]:
    """Place n tasks of a kind and update `state`: the rows used, ascending, and how many tasks went to each."""
    rows = fitting(kind.rules, state)
    if not len(rows) or not n:
        return empty_rows(), empty_rows()
    rooms = np.ones(len(rows), np.int64) if n == 1 and kind.rules.simple else room(kind.rules, state, rows)
    turn = BatchTurn(state, kind.rules.batch, mix, rows, rooms, kind.random(position, n))
    steps = kind.steps_now(state)
    if not kind.rules.simple:
        turn = turn.only(rooms > 0)
        most = most_instances(kind.rules, state)
        if most is not None:
            turn = turn.only(_opened(turn, steps, n, most))
    counts = turn.place(steps, n)
    used = counts.nonzero()[0]
    rows, counts = turn.rows[used], counts[used]
    state.take(kind.rules.batch, rows, counts)
    return rows, counts


def _opened(turn: BatchTurn, steps: tuple[Step, ...], n: int, most: int) -> BoolArray:
    """(f,) bool: the rows that remain when only `most` instances may run tasks of the group.

    Until the last new instance is opened, placing without the limit does the same as placing with it. So the instances
    that it opens first remain; bisection finds how many tasks open just so many. Where chance decides, the instances
    are drawn first, then the tasks among them.
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
