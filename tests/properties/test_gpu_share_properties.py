"""Does every task that is placed get its GPU, whichever of its GPUs ECS chooses for each and in whatever order?"""

from __future__ import annotations

from collections import Counter
from functools import cache

from hypothesis import example, given, settings
from hypothesis import strategies as st

from argosy.placement.demand import Batch
from argosy.placement.gpu_shares import GpuUse
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply

MEMORY = 12
WHOLE = -1  # of a GPU that one task has
Task = int
"""MiB of a share, or minus the number of whole GPUs."""


def placed(known: tuple[int, ...], gpus: int, queue: list[Task]) -> list[Task]:
    """The tasks of the queue that placement counts on one instance. known: MiB on GPUs known to be shared."""
    use = GpuUse(known)
    row = InstanceRow("i-1", 99, 99, gpus, 99, 99, gpus, {}, gpu_memory_mib=MEMORY, gpu_use=use)
    batches = [Batch(1, 1, max(0, -task), 1, gpu_share_mib=max(0, task)) for task in queue]
    plan = place(batches, Supply.of([row]))
    return [queue[number] for number in plan.batch.tolist()]


def may_be_refused(loads: tuple[int, ...], waiting: tuple[Task, ...]) -> bool:
    """Whether ECS may refuse one of the tasks: by trying every order and every choice of GPUs."""

    @cache
    def found(loads: tuple[int, ...], waiting: tuple[Task, ...]) -> bool:
        for task in set(waiting):
            rest = list(waiting)
            rest.remove(task)
            states = after(loads, task)
            if not states or any(found(state, tuple(rest)) for state in states):
                return True
        return False

    return found(tuple(sorted(loads)), tuple(sorted(waiting)))


def after(loads: tuple[int, ...], task: Task) -> set[tuple[int, ...]]:
    """The GPUs after each choice that ECS has; all equal GPUs are one choice."""
    if task < 0:
        if loads.count(0) < -task:
            return set()
        left = list((Counter(loads) - Counter({0: -task})).elements())
        return {tuple(sorted([*left, *[WHOLE] * -task]))}
    fits = [at for at, load in enumerate(loads) if load != WHOLE and load + task <= MEMORY]
    return {tuple(sorted([*loads[:at], loads[at] + task, *loads[at + 1 :]])) for at in fits}


tasks = st.one_of(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 12]), st.sampled_from([-1, -2]))


@given(st.lists(st.integers(1, MEMORY), max_size=2), st.integers(0, 2), st.lists(tasks, max_size=7))
@example([], 2, [4, 8, 8])
@example([], 2, [5, 5, -1])
@example([], 2, [-1, 5, 5])
@settings(max_examples=150, derandomize=True, deadline=None)
def test_no_placed_task_is_refused_for_any_choice_and_any_order(known: list[int], idle: int, queue: list[Task]) -> None:
    there = placed(tuple(known), len(known) + idle, queue)
    assert not may_be_refused((*known, *[0] * idle), tuple(there))


@given(st.integers(1, MEMORY), st.integers(1, 3), st.lists(st.integers(1, MEMORY), max_size=2))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_equal_shares_fill_every_gpu(share: int, idle: int, known: list[int]) -> None:
    there = placed(tuple(known), len(known) + idle, [share] * 80)
    assert len(there) == sum((MEMORY - load) // share for load in (*known, *[0] * idle))


def test_two_sizes_are_counted_up_to_what_some_choice_refuses() -> None:
    """If both of 4 MiB share one GPU of 12 and one of 8 is on the other, a second one of 8 finds no GPU."""
    assert placed((), 2, [4, 8, 8]) == [4, 8, 8]
    assert placed((), 2, [4, 4, 8, 8]) == [4, 4, 8]
    assert may_be_refused((0, 0), (4, 4, 8, 8))


def test_a_whole_gpu_is_counted_only_where_no_share_may_be() -> None:
    assert placed((), 2, [3, 3, -1]) == [3, 3]
    assert placed((), 3, [3, 3, -1]) == [3, 3, -1]
    assert placed((6,), 2, [-1, 3]) == [-1]
