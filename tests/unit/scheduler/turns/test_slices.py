"""The order of placement among runs with an allotted share."""

from __future__ import annotations

from random import Random

import numpy as np

from argosy.placement.demand import Batch, Queue
from argosy.placement.pass_state import PassState
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.turns.fair_share import MOST_PASSES, Placed, placed_in_slices


def instance(name: str, cpu_units: int, memory_mib: int, gpus: int = 0) -> InstanceRow:
    return InstanceRow(name, cpu_units, memory_mib, gpus, cpu_units, memory_mib, gpus, attributes={})


def batch(cpu_units: int, memory_mib: int, gpus: int = 0) -> Batch:
    return Batch(cpu_units, memory_mib, gpus, 10**6)


def placed(batches: list[Batch], counts: list[int], rows: list[InstanceRow]) -> tuple[Placed, list[int]]:
    queue = Queue.of(batches)
    found, unplaced = placed_in_slices(queue, np.array(counts), PassState(Supply.of(rows), queue), {})
    return found, unplaced.tolist()


def test_tasks_with_gpus_find_theirs_although_others_come_first() -> None:
    rows = [instance("i-1", 4_096, 8_192, gpus=4), instance("i-2", 4_096, 8_192)]
    found, unplaced = placed([batch(1_024, 1_024), batch(1_024, 1_024, 1)], [8, 4], rows)
    assert found == {(0, 1): 4, (1, 0): 4}
    assert unplaced == [4, 0]


def test_no_run_takes_all_instances_that_suit_another_best() -> None:
    """The first one has more than fits where it fits best, and would fill what the second one needs."""
    rows = [instance("i-1", 16_384, 16_384), instance("i-2", 16_384, 131_072)]
    found, unplaced = placed([batch(1_024, 1_024), batch(1_024, 8_192)], [32, 16], rows)
    assert found[1, 1] >= 8
    assert sum(unplaced) + sum(found.values()) == 48


def test_of_many_batches_each_is_placed_in_one_piece() -> None:
    batches = [batch(1_024, 1_024)] * (MOST_PASSES + 1)
    found, unplaced = placed(batches, [1] * len(batches), [instance("i-1", 1 << 20, 1 << 20)])
    assert sorted(found) == [(number, 0) for number in range(len(batches))]
    assert not any(unplaced)


def test_no_task_is_lost_or_placed_twice() -> None:
    random = Random(55)
    for _ in range(60):
        rows = [
            instance(f"i-{n}", 1_024 * random.randint(1, 16), 1_024 * random.randint(1, 32), random.choice((0, 0, 4)))
            for n in range(random.randint(1, 6))
        ]
        batches = [
            batch(1_024 * random.randint(1, 4), 1_024 * random.randint(1, 8), random.choice((0, 0, 1)))
            for _ in range(random.randint(1, 9))
        ]
        counts = [random.randint(0, 20) for _ in batches]
        found, unplaced = placed(batches, counts, rows)
        for number, count in enumerate(counts):
            assert sum(tasks for (each, _), tasks in found.items() if each == number) + unplaced[number] == count
        for row, each in enumerate(rows):
            takes = sum(tasks * np.array(batches[number].need) for (number, at), tasks in found.items() if at == row)
            assert (takes <= np.array([each.cpu_units, each.memory_mib, each.gpus])).all()
