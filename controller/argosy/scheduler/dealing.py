"""How is room shared that does not suffice for all: places on instances, launches of a tick, instances to be bought?

Room is dealt out by what it is made of (cpu, memory, GPUs), which says little of whether a task fits on one instance.
So what was dealt out is placed, who did not find all his places is left out, and the rest is dealt out again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argosy.placement.demand import Batch, Queue
from argosy.placement.fitness import Fitness
from argosy.placement.pass_state import PassState
from argosy.placement.place import place, place_further
from argosy.placement.strategy import spread_attribute
from argosy.placement.supply import Supply
from argosy.scheduler.fair_order import FairOrder
from argosy.scheduler.queue import Ask, counted, queue_of
from argosy.scheduler.roster import Lineup
from argosy.sharing.columns import Limits

ROUNDS = 8  # of dealing out; what is left then goes to who comes first
UNIT = 1 << 10  # of an instance
Placed = Counter[tuple[int, int]]  # (ask, row) -> tasks


class LaunchRoom(NamedTuple):
    """What one tick may start."""

    launches: int
    cells: Mapping[str, int]  # of them, in each cell
    runs: int  # of how many runs; the commit holds no more


@dataclass(frozen=True, slots=True)
class FairDealing:
    """For one tick's asks, which stand in fair order."""

    order: FairOrder
    asks: Sequence[Ask]

    def meant_for(
        self, batches: Sequence[Batch], lineup: Lineup, fitness: Mapping[str, Fitness]
    ) -> tuple[list[int], list[int]] | None:
        """How many tasks of each batch should start on instances that are here, and how many of those that are to be
        spread wait for others. None where there is room for all, so that nobody has to come first."""
        if not place(batches, lineup.supply, fitness=fitness).unplaced.any():
            return None
        placed, _ = self._dealt_out(batches, lineup.supply, fitness)
        now, later = np.zeros(len(batches), dtype=np.int64), np.zeros(len(batches), dtype=np.int64)
        for (number, row), count in placed.items():
            (now if row < lineup.ready else later)[number] += count
        spread = [spread_attribute(batch.strategy) is not None for batch in batches]
        return now.tolist(), np.where(spread, later, 0).tolist()

    def placed(
        self, batches: Sequence[Batch], supply: Supply, fitness: Mapping[str, Fitness]
    ) -> tuple[Placed, list[int]]:
        """(batch, row) -> tasks, and how many tasks of each found no place: first what each is due, then the rest."""
        found = place(batches, supply, fitness=fitness)
        if not found.unplaced.any():
            return counted(found), found.unplaced.tolist()
        first, state = self._dealt_out(batches, supply, fitness)
        left = [batch.count for batch in batches]
        for (number, _), count in first.items():
            left[number] -= count
        rest = place_further(queue_of(batches, left), state, fitness=fitness)
        return first + counted(rest), rest.unplaced.tolist()

    def _dealt_out(
        self, batches: Sequence[Batch], supply: Supply, fitness: Mapping[str, Fitness]
    ) -> tuple[Placed, PassState]:
        state, placed = PassState(supply, Queue.of(batches)), Counter[tuple[int, int]]()
        needs = np.array([batch.need for batch in batches], dtype=np.int64).reshape(-1, 3)
        left = np.array([batch.count for batch in batches], dtype=np.int64)
        may, used = np.ones(len(batches), dtype=bool), self.order.tasks.copy()
        sharer = np.array([self.order.row[ask.run.id] for ask in self.asks], dtype=np.int64)
        capacity = supply.total.sum(axis=1)
        for _ in range(ROUNDS):
            limits = Limits.of(capacity, np.maximum(state.free, 0).sum(axis=1))
            counts = self.order.dealt(self._ids, np.where(may, left, 0), needs, limits, used)
            if not counts.any():
                break
            found = place_further(queue_of(batches, counts.tolist()), state, fitness=fitness)
            given = counts - found.unplaced
            placed.update(counted(found))
            left, may = left - given, may & (found.unplaced == 0)
            np.add.at(used, sharer, given[:, None] * needs)
        return placed, state

    @property
    def _ids(self) -> list[str]:
        return [ask.run.id for ask in self.asks]

    def launched(
        self, placed: Sequence[tuple[int, str, int]], cell_of: Mapping[str, str], room: LaunchRoom
    ) -> list[tuple[int, str, int]]:
        """Of the tasks that were placed, (ask, instance id, count) each, those that start in this tick, in the order of
        their turns."""
        wanted = Counter[tuple[int, str]]()
        for number, instance_id, count in placed:
            wanted[number, cell_of[instance_id]] += count
        columns = sorted(wanted)
        names = sorted({cell for _, cell in columns})
        takes = np.array([[1, *(cell == name for name in names)] for _, cell in columns], dtype=np.int64)
        free = [room.launches, *(room.cells[name] for name in names)]
        limits, ids = Limits.of(np.maximum(free, 1), free), [self.asks[number].run.id for number, _ in columns]
        none = np.zeros((len(self.order.sharers), len(free)), dtype=np.int64)
        wants = np.array([wanted[column] for column in columns], dtype=np.int64)
        counts = self.order.dealt(ids, wants, takes.reshape(-1, len(free)), limits, none)
        turns = self.order.in_turn(ids, counts, limits.first(), max(1, int(counts.sum()) // room.runs))
        return _by_turn(placed, [columns[number] for number in turns.tolist()], cell_of)

    def affordable(
        self, batches: Mapping[str, Batch], per_instance: Mapping[str, int], room: int, most: int
    ) -> dict[str, int]:
        """By run id, for how many tasks of its batch instances may be bought. per_instance: how many of them an
        instance takes. room: how many instances may be added now; most: how many there may be."""
        ids = [run.id for run in self.order.runs if per_instance.get(run.id)]
        units = {run_id: -(-UNIT // per_instance[run_id]) for run_id in ids}
        used = np.zeros((len(self.order.sharers), 2), dtype=np.int64)
        for run_id in ids:
            used[self.order.row[run_id], 1] += self.order.live.get(run_id, 0) * units[run_id]
        wants = np.array([batches[run_id].count for run_id in ids], dtype=np.int64)
        takes = np.array([[units[run_id]] * 2 for run_id in ids], dtype=np.int64).reshape(-1, 2)
        limits = Limits.of([max(1, room) * UNIT, max(1, most) * UNIT], [room * UNIT] * 2)
        return dict(zip(ids, self.order.dealt(ids, wants, takes, limits, used).tolist(), strict=True))


def _by_turn(
    placed: Sequence[tuple[int, str, int]], turns: Sequence[tuple[int, str]], cell_of: Mapping[str, str]
) -> list[tuple[int, str, int]]:
    """turns: (ask, cell) of each task that starts."""
    places: defaultdict[tuple[int, str], list[tuple[str, int]]] = defaultdict(list)
    for number, instance_id, count in reversed(placed):
        places[number, cell_of[instance_id]].append((instance_id, count))
    found: list[tuple[int, str, int]] = []
    for turn in turns:
        instance_id, count = places[turn].pop()
        if count > 1:
            places[turn].append((instance_id, count - 1))
        if found and found[-1][:2] == (turn[0], instance_id):
            found[-1] = (turn[0], instance_id, found[-1][2] + 1)
        else:
            found.append((turn[0], instance_id, 1))
    return found
