"""Which tasks start on the instances that are here, while others are on their way?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from argosy.placement.demand import Batch
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.placing.places import place_now
from argosy.scheduler.supply.roster import PlacementRows
from argosy.scheduler.turns.asks import standing_constraints
from argosy.spec.terms import terms_of_form
from tests.builders import spec

WIDE, DEEP = Batch(3072, 2048, 0, 4, group="wide"), Batch(512, 13_000, 0, 4, group="deep")
ON_GPU = Batch(2048, 4096, 1, 1, group="gpu")


def instance(name: str, cpu: int, memory: int, gpus: int = 0, running: int = 0) -> InstanceRow:
    return InstanceRow(name, cpu, memory, gpus, cpu, memory, gpus, {}, running_tasks=running)


def placed_now(
    batches: list[Batch], here: list[InstanceRow], coming: list[InstanceRow]
) -> tuple[Counter[tuple[int, int]], list[int]]:
    return place_now(batches, PlacementRows(Supply.of([*here, *coming]), len(here), {}), {})


COMPUTE, MEMORY = instance("i-compute", 16_384, 30_000), instance("i-memory", 8192, 60_000)


def test_what_was_bought_for_the_last_is_not_taken_by_the_first_that_could_use_it() -> None:
    placed, left = placed_now([WIDE, DEEP], [MEMORY], [COMPUTE])
    assert placed[1, 0] == 4  # the deep tasks, for which there is no room on what is coming
    assert left[0] == 4 - placed[0, 0]


def test_unassigned_room_is_given_to_tasks_that_would_wait() -> None:
    placed, _ = placed_now([WIDE, DEEP], [MEMORY], [COMPUTE])
    assert placed[0, 0] == 2  # 6 vCPU and 8,000 MiB were left


def test_tasks_without_gpus_leave_the_gpu_that_came_first_to_those_that_need_it() -> None:
    gpu = instance("i-gpu", 4096, 15_000, 1)
    placed, left = placed_now([WIDE, ON_GPU], [gpu], [COMPUTE])
    assert (placed[1, 0], left) == (1, [4, 0])


def test_when_nothing_is_coming_first_come_first_served() -> None:
    placed, left = placed_now([WIDE, DEEP], [MEMORY], [])
    assert placed == Counter({(0, 0): 2, (1, 0): 4})
    assert left == [2, 0]


def test_programs_of_users_go_to_instances_with_a_runner_of_their_protocol() -> None:
    asked = standing_constraints(terms_of_form(spec(run=["true"])))
    tasks = Batch(1024, 1024, 0, 3, constraints=tuple(each for each in asked if "runner" in each))
    newer, same, none = (
        replace(instance(name, 16_384, 30_000), attributes=attributes)
        for name, attributes in (("i-2", {"argosy.runner": "2"}), ("i-1", {"argosy.runner": "1"}), ("i-0", {}))
    )
    assert placed_now([tasks], [newer, same, none], [])[0] == Counter({(0, 1): 3})
    assert not any("runner" in each for each in standing_constraints(terms_of_form(spec())))


def test_idle_instances_come_last_unless_the_run_says_otherwise() -> None:
    busy, idle = instance("i-busy", 16_384, 30_000, running=1), instance("i-idle", 2048, 4096)
    small = Batch(1024, 1024, 0, 1)
    assert list(placed_now([small], [idle, busy], [])[0]) == [(0, 1)]
    own = Batch(1024, 1024, 0, 1, strategy=("best-fit",))
    assert list(placed_now([own], [idle, busy], [])[0]) == [(0, 0)]


small = st.integers(1, 4)
batches = st.lists(st.tuples(small, small, st.integers(0, 6)), min_size=1, max_size=4)
instances = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=4)


@given(batches, instances, instances)
def test_no_room_is_given_twice_and_none_is_left_that_a_waiting_task_could_use(
    work: list[tuple[int, int, int]], here: list[tuple[int, int]], coming: list[tuple[int, int]]
) -> None:
    asked = [Batch(cpu, memory, 0, count, group=str(n)) for n, (cpu, memory, count) in enumerate(work)]
    rows = [instance(f"here-{n}", *size) for n, size in enumerate(here)]
    later = [instance(f"coming-{n}", *size) for n, size in enumerate(coming)]
    placed, left = placed_now(asked, rows, later)
    for row, (cpu, memory) in enumerate(here):
        used = [(placed[n, row] * batch.cpu_units, placed[n, row] * batch.memory_mib) for n, batch in enumerate(asked)]
        free_cpu, free_memory = cpu - sum(c for c, _ in used), memory - sum(m for _, m in used)
        assert min(free_cpu, free_memory) >= 0
        waiting = [batch for batch, n in zip(asked, left, strict=True) if n]
        assert not any(batch.cpu_units <= free_cpu and batch.memory_mib <= free_memory for batch in waiting)
    for number, batch in enumerate(asked):
        assert left[number] + sum(placed[number, row] for row in range(len(rows))) == batch.count
