"""Which tasks start on the instances that are here, when others are still on their way?

Instances join in any order. Were each filled by whoever is first in the queue, what was bought for the last would be
taken by the first, and more would be bought tick after tick. So all that is here and on its way is looked at together
once: what falls on instances that are here starts; then whatever room is left there is given to tasks that would have
to wait, first come first served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from argosy.market.cover import less
from argosy.placement.demand import Batch
from argosy.placement.fitness import Fitness
from argosy.placement.place import place
from argosy.placement.strategy import DEFAULT_STRATEGY
from argosy.placement.supply import InstanceRow, Supply

EMPTYING = ("busy-first", *DEFAULT_STRATEGY)


def place_now(
    batches: Sequence[Batch], rows: Sequence[InstanceRow], coming: Sequence[InstanceRow], fitness: Mapping[str, Fitness]
) -> tuple[Counter[tuple[int, int]], list[int]]:
    """(batch, row) -> tasks on `rows`; and how many tasks of each batch found no place there."""
    ours = [_emptying(batch) for batch in batches]
    first = _meant_for(batches, rows, coming, fitness)
    placed: Counter[tuple[int, int]] = Counter()
    left = [batch.count for batch in batches]
    free = list(rows)
    for counts in [first, None] if first is not None else [None]:
        asked = [replace(batch, count=n) for batch, n in zip(ours, counts or left, strict=True)]
        for (number, row), count in _on(asked, free, fitness).items():
            placed[number, row] += count
            left[number] -= count
            if counts is not None:  # there is another round
                free[row] = less(free[row], batches[number], count)
    return placed, left


def _meant_for(
    batches: Sequence[Batch], rows: Sequence[InstanceRow], coming: Sequence[InstanceRow], fitness: Mapping[str, Fitness]
) -> list[int] | None:
    """How many tasks of each batch fall on `rows` when all instances were here; None where that is all the same."""
    if not rows or not coming or len({batch.need for batch in batches if batch.count}) < 2:
        return None
    together = place(batches, Supply.of([*rows, *coming]), fitness=fitness)
    here = together.row < len(rows)
    counts = np.bincount(together.batch[here], weights=together.count[here], minlength=len(batches))
    return [int(count) for count in counts]


def _on(
    batches: Sequence[Batch], rows: Sequence[InstanceRow], fitness: Mapping[str, Fitness]
) -> dict[tuple[int, int], int]:
    placed = place(batches, Supply.of(rows), fitness=fitness)
    keys = zip(placed.batch.tolist(), placed.row.tolist(), strict=True)
    return dict(zip(keys, placed.count.tolist(), strict=True))


def _emptying(batch: Batch) -> Batch:
    """Unless its run says otherwise, idle instances come last, so that they can be let go."""
    return batch if batch.strategy else replace(batch, strategy=EMPTYING)
