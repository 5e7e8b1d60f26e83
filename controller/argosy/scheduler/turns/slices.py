"""In which order are tasks placed to which room was dealt out, so that everybody finds what suits him?

Counts that were dealt out fit together by their sums. On single instances they need not: whoever is placed first takes
what suits him best, and then what suits the next one best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from argosy.placement.demand import Queue
from argosy.placement.fitness import Fitness
from argosy.placement.pass_state import PassState
from argosy.placement.place import Assignment, place_further
from argosy.sharing.columns import BoolArray, IntArray

SLICES = 8  # in which the tasks of a batch are placed
MOST_PASSES = 64  # batches times slices: each of them looks at all instances
Placed = Counter[tuple[int, int]]  # (batch, row) -> tasks


def counted(found: Assignment) -> Placed:
    """(batch, row) -> tasks."""
    pairs = zip(found.batch.tolist(), found.row.tolist(), strict=True)
    return Counter(dict(zip(pairs, found.count.tolist(), strict=True)))


def placed_in_slices(
    queue: Queue, counts: IntArray, state: PassState, fitness: Mapping[str, Fitness]
) -> tuple[Placed, IntArray]:
    """(batch, row) -> tasks, and (batches,) how many found no place. counts: (batches,) tasks, instead of the queue's
    own. Takes the places out of the state."""
    placed, unplaced = Placed(), np.zeros_like(counts)
    has_gpus = np.array([kind.gpus > 0 for kind in queue.kinds], dtype=np.bool_)[queue.kind]
    for asked in _slices(counts, has_gpus):
        if asked.any():
            found = place_further(queue.counting(asked.tolist()), state, fitness=fitness)
            placed.update(counted(found))
            unplaced += found.unplaced
    return placed, unplaced


def _slices(counts: IntArray, has_gpus: BoolArray) -> Iterator[IntArray]:
    """(batches,) tasks that are placed one after the other: those with GPUs, for the others find cpu and memory
    elsewhere as well; then a part of each of the others, and so on."""
    yield np.where(has_gpus, counts, 0)
    others = np.where(has_gpus, 0, counts)
    slices = max(1, min(SLICES, MOST_PASSES // max(1, len(counts))))
    for number in range(slices):
        yield others * (number + 1) // slices - others * number // slices
