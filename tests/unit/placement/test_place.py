"""What does a plan look like at the edges: no instance, no task, far too many tasks, and rules without a choice?"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from argosy.placement.demand import Batch, Queue, WeightedConstraint
from argosy.placement.fitness import Candidates
from argosy.placement.place import place
from argosy.placement.query import QuerySyntaxError
from argosy.placement.supply import InstanceRow, Supply
from tests.placement_cases import check

HUGE = 10**30


def row(name: str, cpu: int = 4096, memory: int = 8192, gpus: int = 0, **more: object) -> InstanceRow:
    return InstanceRow(name, cpu, memory, gpus, cpu, memory, gpus, **{"attributes": {}, **more})  # type: ignore[arg-type]


def where(batches: list[Batch], rows: list[InstanceRow]) -> dict[str, int]:
    plan, found = place(batches, Supply.of(rows)), Counter[str]()
    for index, count in zip(plan.row.tolist(), plan.count.tolist(), strict=True):
        found[rows[index].id] += count
    return dict(found)


def test_no_instances_leave_everything_unplaced() -> None:
    plan = place([Batch(1, 1, 0, 5), Batch(0, 0, 0, 7)], Supply.of([]))
    assert (plan.placed, plan.unplaced.tolist()) == (0, [5, 7])


def test_no_instances_leave_an_interleaved_queue_unplaced() -> None:
    assert place([Batch(1 + n % 2, 1, 0, 1) for n in range(200)], Supply.of([])).placed == 0


def test_an_empty_queue_is_an_empty_plan() -> None:
    plan = place([], Supply.of([row("i-1")]))
    assert (len(plan.batch), len(plan.unplaced)) == (0, 0)


def test_tasks_go_to_the_instance_that_their_shape_fills_best() -> None:
    """Best fit alone would fill the small cpu-rich instance with tasks that need memory, and strand its cpu."""
    rows = [row("cpu", 4096, 8192), row("memory", 4096, 32768)]
    narrow, wide = Batch(1024, 2048, 0, 4), Batch(1024, 8192, 0, 4)
    assert place([wide, narrow], Supply.of(rows)).placed == 8
    assert where([wide], rows) == {"memory": 4}
    assert place([replace(each, strategy=("best-fit",)) for each in (wide, narrow)], Supply.of(rows)).placed < 8


def test_with_gpus_the_tightest_instance_is_taken_whatever_its_shape() -> None:
    rows = [row("large", 8192, 65536, 4), row("tight", 2048, 4096, 1)]
    assert where([Batch(512, 4096, 1, 1)], rows) == {"tight": 1}


def test_tasks_that_need_nothing_all_fit() -> None:
    assert where([Batch(0, 0, 0, 1_000_000_000)], [row("i-1"), row("i-2")]) == {"i-1": 1_000_000_000}


@pytest.mark.parametrize("need", [(HUGE, 1, 0), (1, HUGE, 0), (1, 1, HUGE), (2**62, 2**62, 2**62)])
def test_a_task_beyond_64_bits_is_unplaced(need: tuple[int, int, int]) -> None:
    plan = place([Batch(*need, count=3), Batch(1, 1, 0, 1)], Supply.of([row("i-1", gpus=2)]))
    assert plan.unplaced.tolist() == [3, 0]


def test_it_is_unplaced_in_an_interleaved_queue_too() -> None:
    plan = place([Batch(HUGE if n % 2 else 1, 1, 0, 1) for n in range(200)], Supply.of([row("i-1")]))
    assert plan.placed == 100


@pytest.mark.parametrize("need", [(-1, 1, 0), (1, -1, 0), (1, 1, -1)])
def test_a_negative_need_is_refused(need: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="negative needs"):
        place([Batch(*need, count=1)], Supply.of([row("i-1")]))


@pytest.mark.parametrize("count", [-1, 2**41, HUGE])
def test_an_impossible_number_of_tasks_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="number of tasks"):
        place([Batch(1, 1, 0, count)], Supply.of([row("i-1")]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"memory_mib": HUGE}, "i-1"),
        ({"total_cpu_units": -1}, "i-1"),
        ({"total_gpus": 1 << 20}, "i-1"),
        ({"running_tasks": -1}, "negative"),
        ({"running_by_group": {"g": 2**50}}, "above"),
        ({"price_usd_per_hour": float("nan")}, "finite"),
        ({"finish_at": float("inf")}, "finite"),
    ],
)
def test_an_instance_with_impossible_numbers_is_refused_by_name(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Supply.of([replace(row("i-1"), **change)])  # type: ignore[arg-type]


def test_an_instance_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="i-1: listed twice"):
        Supply.of([row("i-1"), row("i-1")])


def test_an_instance_that_owes_more_than_it_has_takes_nothing() -> None:
    assert where([Batch(1, 1, 0, 3)], [replace(row("i-1"), cpu_units=-5)]) == {}


@pytest.mark.parametrize("change", [{"status": "DRAINING"}, {"agent_connected": False}, {"interrupted": True}])
def test_instances_that_are_going_away_get_nothing(change: dict[str, object]) -> None:
    assert where([Batch(1, 1, 0, 3)], [replace(row("i-1"), **change), row("i-2")]) == {"i-2": 3}  # type: ignore[arg-type]


def test_cpu_work_goes_to_gpu_instances_only_when_nothing_else_has_room() -> None:
    rows = [row("gpu", 2048, 4096, gpus=1), row("cpu", 8192, 65536)]
    assert where([Batch(1024, 1024, 0, 9)], rows) == {"cpu": 8, "gpu": 1}


def test_a_batch_may_say_that_gpu_instances_need_not_be_kept() -> None:
    rows = [row("gpu", 2048, 4096, gpus=1), row("cpu", 8192, 65536)]
    assert where([Batch(1024, 1024, 0, 1, strategy=("binpack:cpu",), keep_gpus_free=False)], rows) == {"gpu": 1}


def test_an_unknown_strategy_or_constraint_is_refused() -> None:
    with pytest.raises(ValueError, match="'fastest' is not a strategy"):
        place([Batch(1, 1, 0, 1, strategy=("fastest",))], Supply.of([]))
    with pytest.raises(QuerySyntaxError):
        place([Batch(1, 1, 0, 1, constraints=("fastest",))], Supply.of([]))


def test_a_users_function_decides_under_its_name() -> None:
    def prefers_most_memory(candidates: Candidates) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return candidates.total(1) / 65536

    rows = [row("small"), row("large", memory=65536)]
    batch = Batch(1, 1, 0, 1, strategy=("mine:prefers_most_memory",))
    plan = place([batch], Supply.of(rows), fitness={"mine:prefers_most_memory": prefers_most_memory})
    assert plan.row.tolist() == [1]


def test_a_users_function_that_answers_nan_is_worst() -> None:
    rows = [row("a"), row("b")]
    plan = place(
        [Batch(1, 1, 0, 1, strategy=("mine:f",))],
        Supply.of(rows),
        fitness={"mine:f": lambda c: np.where(c.total(0) > 0, [np.nan, 0.1], 0.0)},
    )
    assert plan.row.tolist() == [1]


def test_soft_constraints_are_met_by_weight_where_that_is_possible() -> None:
    rows = [row("a", attributes={"zone": "a"}), row("b", attributes={"zone": "b"})]
    soft = (WeightedConstraint("attribute:zone == b", 2), WeightedConstraint("attribute:zone == a", 1))
    assert where([Batch(2048, 1, 0, 3, soft=soft)], rows) == {"b": 2, "a": 1}


def test_a_group_with_affinity_to_itself_keeps_together() -> None:
    batch = Batch(1024, 1, 0, 9, group="g", affinity=("g",), strategy=("spread:instanceId",))
    assert where([batch], [row("a"), row("b")]) == {"a": 4}


def test_tasks_keep_away_from_a_group_and_stay_next_to_another() -> None:
    rows = [row("a", running_by_group={"noisy": 1, "data": 1}), row("b", running_by_group={"data": 2}), row("c")]
    assert where([Batch(1, 1, 0, 5, group="g", affinity=("data",), anti_affinity=("noisy",))], rows) == {"b": 5}


def test_a_host_port_is_used_once_per_instance_and_by_protocol() -> None:
    rows = [row("a", used_host_ports=frozenset({(80, "tcp")})), row("b")]
    tcp, udp = Batch(1, 1, 0, 3, host_ports=((80, "tcp"),)), Batch(1, 1, 0, 3, host_ports=((80, "udp"),))
    assert where([tcp], rows) == {"b": 1}
    assert where([udp], rows) == {"a": 1, "b": 1}


def test_a_group_counts_across_batches_of_one_pass() -> None:
    batch = Batch(1, 1, 0, 1, group="g", constraints=("distinctInstance",))
    plan = place([batch] * 3, Supply.of([row("a"), row("b")]))
    assert plan.unplaced.tolist() == [0, 0, 1]


def test_a_constraint_on_running_tasks_counts_what_is_just_placed() -> None:
    assert where(
        [Batch(1, 1, 0, 100, constraints=("runningTasksCount < 3",))], [row("a", running_tasks=1), row("b")]
    ) == {
        "a": 2,
        "b": 3,
    }


def test_random_placement_is_uniform_and_repeats_with_its_seed() -> None:
    rows = [row(f"i-{n}", 10**6, 10**6) for n in range(4)]
    supply = Supply.of(rows)
    counts = place([Batch(1, 1, 0, 40_000, strategy=("random:5",))], supply).count
    # chi-squared with 3 degrees of freedom: above 16.3 once in a thousand seeds, and this seed is fixed
    assert float(((counts - 10_000) ** 2 / 10_000).sum()) < 16.3
    again = place([Batch(1, 1, 0, 40_000, strategy=("random:5",))], supply).count
    other = place([Batch(1, 1, 0, 40_000, strategy=("random:6",))], supply).count
    assert counts.tolist() == again.tolist() != other.tolist()


def test_tasks_that_draw_one_by_one_choose_every_instance_equally_often_and_each_seed_differs() -> None:
    supply = Supply.of([row(f"i-{number}", 100_000, 100_000) for number in range(7)])
    queues = [[Batch(1, 1, 0, 1, strategy=(f"random:{seed}",))] * 7_000 for seed in (5, 6)]
    plans = [place(queue, supply).row.tolist() for queue in queues]
    expected, tasks = 1_000, 7_000
    for plan in plans:
        chi_squared = sum((plan.count(number) - expected) ** 2 / expected for number in range(7))
        assert chi_squared < 22.5  # six degrees of freedom: above that once in a thousand
        pairs = sum(one == other for one, other in itertools.pairwise(plan))
        assert abs(pairs - tasks / 7) < 120  # four deviations
    assert abs(sum(a == b for a, b in zip(*plans, strict=True)) - tasks / 7) < 120


def test_random_placement_follows_the_sequential_draw_when_instances_fill_up() -> None:
    """Three tasks, rooms 1 and 2 and 3: the share of draws that leave the large one empty is 1/3 * 1/2 * 2 + ...

    by enumeration.
    """
    supply = Supply.of([row("a", 1), row("b", 2), row("c", 3)])
    seen = Counter(
        tuple(np.bincount(plan.row, plan.count, 3).astype(int).tolist())
        for plan in (place([Batch(1, 0, 0, 3, strategy=(f"random:{seed}",))], supply) for seed in range(4_000))
    )
    expected = _sequential((1, 2, 3), 3)
    assert set(seen) == set(expected)
    chi = sum((seen[state] - 4_000 * p) ** 2 / (4_000 * p) for state, p in expected.items())
    assert chi < 20.5  # 5 degrees of freedom, one in a thousand


def _sequential(room: tuple[int, ...], tasks: int) -> dict[tuple[int, ...], float]:
    states = {(0,) * len(room): 1.0}
    for _ in range(tasks):
        after: Counter[tuple[int, ...]] = Counter()
        for state, chance in states.items():
            open_ = [i for i, used in enumerate(state) if used < room[i]]
            for i in open_:
                after[tuple(used + (j == i) for j, used in enumerate(state))] += chance / len(open_)  # type: ignore[assignment]
        states = dict(after)
    return states


def test_a_queue_merges_equal_kinds() -> None:
    queue = Queue.of([Batch(1, 1, 0, 5), Batch(2, 1, 0, 1), Batch(1, 1, 0, 7)])
    assert (len(queue.kinds), queue.kind.tolist(), queue.count.tolist()) == (2, [0, 1, 0], [5, 1, 7])


def test_instances_with_as_much_free_but_gpus_of_other_memory_are_told_apart_in_the_matrix() -> None:
    rows = [row(f"i-{memory}", 8, 8, 2, gpu_memory_mib=memory) for memory in (8, 12)]
    share = Batch(1, 1, 0, 1, gpu_share_mib=5, strategy=("fragmentation",))
    check(rows, [share, replace(share, gpu_share_mib=8), share], matrix_from=0)
