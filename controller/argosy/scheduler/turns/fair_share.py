"""How is scarce room shared: places on instances, launches of a tick, purchases?

Room is shared out by cpu, memory and GPUs, which does not show whether a task fits on one instance. So the shares are
placed, tasks that fit nowhere are left out, and the rest is shared out again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from argosy.model.money.occupancy import part_of
from argosy.model.resources import AXES, Resources
from argosy.placement.arrays import FloatArray
from argosy.placement.demand import Batch, Queue
from argosy.placement.fitness import Fitness
from argosy.placement.pass_state import PassState
from argosy.placement.place import place, place_further
from argosy.placement.strategy import spread_attribute
from argosy.placement.supply import Supply
from argosy.scheduler.supply.roster import PlacementRows
from argosy.scheduler.turns.asks import Ask
from argosy.scheduler.turns.caps import INSTANCES, SCALE, USD, CapRoom, units_of
from argosy.scheduler.turns.fair_order import FairOrder, QueueCapColumns
from argosy.scheduler.turns.share_levels import ShareLevels
from argosy.sharing.bounds import LENT, NO_CAP
from argosy.sharing.columns import MOST, BoolArray, IntArray, Limits
from argosy.sharing.fill import TaskCounts

SLICES = 8  # in which the tasks of a batch are placed
MOST_PASSES = 64  # batches times slices: each of them reads all instances
Placed = Counter[tuple[int, int]]  # (batch, row) -> tasks


def placed_in_slices(
    queue: Queue, counts: IntArray, state: PassState, fitness: Mapping[str, Fitness]
) -> tuple[Placed, IntArray]:
    """(batch, row) -> tasks, and (batches,) how many found no place. counts: (batches,) tasks, instead of the
    queue's own. Removes the places from the state."""
    placed, unplaced = Placed(), np.zeros_like(counts)
    has_gpus = np.array([kind.gpus + kind.gpu_share_mib > 0 for kind in queue.kinds], dtype=np.bool_)[queue.kind]
    for asked in _slices(counts, has_gpus):
        if asked.any():
            found = place_further(queue.counting(asked.tolist()), state, fitness=fitness)
            placed.update(found.tasks())
            unplaced += found.unplaced
    return placed, unplaced


def _slices(counts: IntArray, has_gpus: BoolArray) -> Iterator[IntArray]:
    """(batches,) tasks that are placed one after the other: those with GPUs, because the others find cpu and memory
    elsewhere as well; then a part of each of the others, and so on."""
    yield np.where(has_gpus, counts, 0)
    others = np.where(has_gpus, 0, counts)
    slices = max(1, min(SLICES, MOST_PASSES // max(1, len(counts))))
    for number in range(slices):
        yield others * (number + 1) // slices - others * number // slices


ROUNDS = 8  # of the distribution; the first runs get the rest


class LaunchRoom(NamedTuple):
    """The launches that one tick allows."""

    launches: int
    cells: Mapping[str, int]  # of them, in each cell
    runs: int  # the most runs, because the commit holds no more


@dataclass(frozen=True, slots=True)
class QueueCaps:
    """The limits of a tick's asks by the caps of their queues."""

    order: FairOrder
    asks: Sequence[Ask]
    lineup: PlacementRows
    room: CapRoom  # less all that the tick has placed so far
    usd_per_hour: FloatArray  # (rows of the lineup,)
    costs: IntArray  # (asks, units) the units of a task, averaged where there is room for it
    queue: IntArray  # (asks,)

    def within(self, given: IntArray) -> QueueCapColumns:
        """The bounds of the asks, less `given` tasks of each, which the room does not count yet."""
        taken = np.zeros_like(self.room.left)
        np.add.at(taken, self.queue, given[:, None] * self.costs)
        room, unit, each = self.room, self.room.unit, np.arange(len(self.room.names))
        left = np.where(room.left >= NO_CAP, NO_CAP, np.maximum(room.left - taken, 0))
        used, lent = (room.used + taken)[each, unit], np.full(len(each), LENT)
        return QueueCapColumns(room.names, self.costs, left, unit, room.amount, used, lent, room.whole)

    def cut(self, wants: IntArray, given: IntArray) -> TaskCounts:
        """As many of the wanted tasks as the caps allow, independent of free room."""
        needs = np.array([ask.run.needs.cpu_memory_gpus for ask in self.asks], dtype=np.int64).reshape(-1, 3)
        limits = Limits.of(np.maximum(1, self.lineup.supply.total.sum(axis=1)), [MOST] * 3)
        ids = [ask.run.id for ask in self.asks]
        return self.order.dealt(ids, wants, needs, limits, self.order.tasks, self.within(given).without_guarantees())

    def kept_to(self, placed: Placed, unplaced: Sequence[int]) -> tuple[Placed, list[int], QueueCaps]:
        """The tasks placed on present instances, (ask, row) -> tasks, that fit the caps at the cost of their instances;
        how many of each ask then have no place; and the caps without the former."""
        kept, left, room = Placed(), list(unplaced), self.room
        here = self.lineup.here
        for (number, row), count in sorted(placed.items()):
            size = Resources(*here.sizes[:, row].tolist())
            units = np.array(units_of(self.asks[number].run.needs, size, float(self.usd_per_hour[row])))
            free, takes = room.left[self.queue[number]], units > 0
            most = min(count, max(0, int((free[takes] // units[takes]).min(initial=count))))
            room = room.less(self.queue[[number]], most * units[None, :])
            left[number] += count - most
            if most:
                kept[number, row] = most
        return kept, left, replace(self, room=room.without_what_leaves())

    def with_promised(self, tasks: Mapping[tuple[int, int], int]) -> QueueCaps:
        """The caps without tasks that wait: (ask, row of an incoming instance) -> tasks. Such instances count whole for
        the runs that wait for them."""
        coming, ready = self.lineup.coming, self.lineup.ready
        numbers = [number for number, _ in tasks]
        rows = np.array([row for _, row in tasks], dtype=np.int64)
        counts = np.array([*tasks.values()], dtype=np.float64)
        needs = np.array([self.asks[number].run.needs for number in numbers], dtype=np.int64).reshape(-1, AXES)
        own = part_of(needs.T, coming.sizes[:, rows]) * counts  # each task on its own row, not on all rows
        whole = np.zeros(len(coming))
        np.add.at(whole, rows, own)
        of_row = own / np.where(whole[rows] > 0, whole[rows], 1.0)
        usd = of_row * self.usd_per_hour[ready:][rows] * SCALE[USD]
        units = np.column_stack([usd, needs[:, 0] * counts, needs[:, 2] * counts, of_row * SCALE[INSTANCES]])
        return replace(self, room=self.room.less(self.queue[numbers], units.astype(np.int64)))


@dataclass(frozen=True, slots=True)
class FairShare:
    """For one tick's asks, which are in fair order."""

    order: FairOrder
    asks: Sequence[Ask]
    levels: ShareLevels
    used: IntArray  # (sharers, 5) the amounts of the live attempts
    caps: QueueCaps | None = None  # where any queue has one

    def meant_for(
        self, batches: Sequence[Batch], lineup: PlacementRows, fitness: Mapping[str, Fitness]
    ) -> tuple[list[int], list[int]] | None:
        """How many tasks of each batch should start on present instances, and how many of those that spread wait for
        others. None if there is room for all, so that no order is needed."""
        wants = [batch.count for batch in batches]
        free = self.within_caps(batches, wants, {}) == wants
        if free and not place(batches, lineup.supply, fitness=fitness).unplaced.any():
            return None
        placed, _ = self._dealt_out(batches, Queue.of(batches), lineup.supply, fitness)
        now, later = np.zeros(len(batches), dtype=np.int64), np.zeros(len(batches), dtype=np.int64)
        for (number, row), count in placed.items():
            (now if row < lineup.ready else later)[number] += count
        spread = [spread_attribute(batch.strategy) is not None for batch in batches]
        alike = defaultdict[tuple[int, Batch, int], list[int]](list)  # of one sharer, unless they spread
        for number, (ask, batch) in enumerate(zip(self.asks, batches, strict=True)):
            kind = replace(batch, count=0, group="")
            alike[self.order.row[ask.run.id], kind, number if spread[number] else -1].append(number)
        for its in alike.values():  # the first run starts first, although slices mix the places
            now[its] = np.diff(np.minimum((now + later)[its].cumsum(), now[its].sum()), prepend=0)
        return now.tolist(), np.where(spread, later, 0).tolist()

    def placed(
        self, batches: Sequence[Batch], supply: Supply, fitness: Mapping[str, Fitness]
    ) -> tuple[Placed, list[int]]:
        """(batch, row) -> tasks, and how many tasks of each found no place: first the due tasks, then the rest."""
        left = [batch.count for batch in batches]
        free = self.within_caps(batches, left, {}) == left
        found = place(batches, supply, fitness=fitness) if free else None
        if found is not None and not found.unplaced.any():
            return found.tasks(), found.unplaced.tolist()
        queue = Queue.of(batches)
        first, state = self._dealt_out(batches, queue, supply, fitness)
        for (number, _), count in first.items():
            left[number] -= count
        asked = self.within_caps(batches, left, first)
        rest = place_further(queue.counting(asked), state, fitness=fitness)
        unplaced = [n - ask + none for n, ask, none in zip(left, asked, rest.unplaced.tolist(), strict=True)]
        return first + rest.tasks(), unplaced

    def within_caps(
        self, batches: Sequence[Batch], counts: Sequence[int], placed: Mapping[tuple[int, int], int]
    ) -> list[int]:
        """As many of these counts as the caps of queues allow in addition to the placed tasks, (ask, row) -> tasks."""
        if self.caps is None:
            return list(counts)
        given = np.zeros(len(batches), dtype=np.int64)
        for (number, _), count in placed.items():
            given[number] += count
        found: list[int] = self.caps.cut(np.array(counts, dtype=np.int64), given).counts.tolist()
        return found

    def _dealt_out(
        self, batches: Sequence[Batch], queue: Queue, supply: Supply, fitness: Mapping[str, Fitness]
    ) -> tuple[Placed, PassState]:
        state, placed, ids = PassState(supply, queue), Placed(), [ask.run.id for ask in self.asks]
        needs = np.array([self.levels.takes(ask.run) for ask in self.asks], dtype=np.int64).reshape(-1, 5)
        left = np.array([batch.count for batch in batches], dtype=np.int64)
        may, used = np.ones(len(batches), dtype=bool), self.used.copy()
        sharer = np.array([self.order.row[name] for name in ids], dtype=np.int64)
        given_in_all = np.zeros(len(batches), dtype=np.int64)
        for _ in range(ROUNDS):
            limits = Limits.of(self.levels.capacity, self.levels.free(state.free, used))
            within = None if self.caps is None else self.caps.within(given_in_all)
            counts = self.order.dealt(ids, np.where(may, left, 0), needs, limits, used, within).counts
            if not counts.any():
                break
            found, unplaced = placed_in_slices(queue, counts, state, fitness)
            placed.update(found)
            given = counts - unplaced
            left, may, given_in_all = left - given, may & (unplaced == 0), given_in_all + given
            np.add.at(used, sharer, given[:, None] * needs)
        return placed, state

    def launched(
        self, placed: Sequence[tuple[int, str, int]], cell_of: Mapping[str, str], room: LaunchRoom
    ) -> list[tuple[int, str, int]]:
        """Of the placed tasks, (ask, instance id, count) each, those that start in this tick, by turn."""
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
        counts = self.order.dealt(ids, wants, takes.reshape(-1, len(free)), limits, none).counts
        turns = self.order.in_turn(ids, counts, limits.first(), max(1, int(counts.sum()) // room.runs))
        return _by_turn(placed, [columns[number] for number in turns.tolist()], cell_of)


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
