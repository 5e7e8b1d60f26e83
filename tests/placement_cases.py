"""Generated placement cases, and the check that a plan of one equals the reference loop's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from argosy.placement.candidates import make_mix
from argosy.placement.demand import Batch, Queue, WeightedConstraint
from argosy.placement.fitness import Candidates
from argosy.placement.gpu_shares import OF_SEVERAL, GpuUse
from argosy.placement.keys import BUILT_IN
from argosy.placement.place import Assignment, place_queue
from argosy.placement.strategy import EMPTYING
from argosy.placement.supply import InstanceRow, Supply
from tests.placement_oracle import Host, Reference, hosts, left

QUERIES: dict[str, Callable[[Host], bool]] = {
    "attribute:zone == a": lambda h: h.row.attributes.get("zone") == "a",
    "attribute:zone != b": lambda h: h.row.attributes.get("zone", "b") != "b",
    "not(attribute:zone == b)": lambda h: h.row.attributes.get("zone") != "b",
    "attribute:type =~ t.* or attribute:zone exists": lambda h: "zone" in h.row.attributes
    or h.row.attributes.get("type", "").startswith("t"),
    "runningTasksCount < 3": lambda h: h.running < 3,
    "runningTasksCount != 2": lambda h: h.running != 2,
    "runningTasksCount > 0 and runningTasksCount <= 4 or attribute:zone == a": lambda h: 0 < h.running <= 4
    or h.row.attributes.get("zone") == "a",
    "not(task:group == g1)": lambda h: not h.groups["g1"],
    "task:group == g2 or runningTasksCount == 0": lambda h: bool(h.groups["g2"]) or h.running == 0,
    "task:group != g1 and (task:group != g2 or runningTasksCount >= 2)": lambda h: not h.groups["g1"]
    and (not h.groups["g2"] or h.running >= 2),
}  # fmt: skip


STRATEGIES = (
    *BUILT_IN,
    "binpack:cpu", "binpack:memory", "binpack:gpu", "spread:instanceId", "spread:attribute:zone",
    "spread:attribute:type", "mix:cpu=3+gpu=1", "mine:halves", "mine:whole",
)  # fmt: skip


def halves(candidates: Candidates) -> Any:
    """A user's function in floats that rises and falls."""
    return np.abs(candidates.left(0) % 8 / 8 - 0.5)


def whole(candidates: Candidates) -> Any:
    """A user's function in whole numbers, smaller is better."""
    return candidates.left(1) % 5


FUNCTIONS: dict[str, Any] = {"mine:halves": halves, "mine:whole": whole}


KEYS: dict[str, Callable[[Host, Batch], int]] = {
    "mine:halves": lambda h, b: -round(abs(left(h, b)[0] % 8 / 8 - 0.5) * (1 << 30)),
    "mine:whole": lambda h, b: left(h, b)[1] % 5,
}


groups = st.dictionaries(st.sampled_from(["", "g1", "g2"]), st.integers(0, 2), max_size=2)


# 93 more of other tasks: one is left of the most that ECS reserves for tasks.
others = st.sampled_from([frozenset()] * 4 + [frozenset((port, "tcp") for port in range(100, 193))])
port_sets = st.builds(
    frozenset.union, st.frozensets(st.sampled_from([(80, "tcp"), (81, "tcp"), (80, "udp")]), max_size=2), others
)


constraint = st.sampled_from([*QUERIES, "distinctInstance"])


WISHES: dict[str, st.SearchStrategy[Any]] = {
    "constraints": st.lists(constraint, min_size=1, max_size=2).map(tuple),
    "host_ports": st.sampled_from([((80, "tcp"),), ((80, "udp"),), ((80, "tcp"), (81, "tcp"))]),
    "disk_gib": st.sampled_from([1, 2, 3]),
    "max_per_instance": st.sampled_from([0, 1, 3, 5]),
    "max_instances": st.sampled_from([0, 1, 2, 3]),
    "soft": st.lists(st.builds(WeightedConstraint, constraint, st.integers(1, 3)), min_size=1, max_size=2).map(tuple),
    "affinity": st.sampled_from([("g1",), ("g2",), ("",)]),
    "anti_affinity": st.sampled_from([("g1",), ("g2",), ("",)]),
    "finish_at": st.just(150.0),
}


# Strategies are made once: made at each draw, they take a third of the time.
row_counts, totals = st.integers(0, 7), st.sampled_from([(8, 8, 0), (16, 12, 0), (16, 24, 2), (32, 16, 4), (0, 8, 1)])
busy_amounts, flags = st.sampled_from([0, 0, 0, 1, 5]), st.booleans()


ROW: dict[str, st.SearchStrategy[Any]] = {
    "attributes": st.dictionaries(st.sampled_from(["zone", "type"]), st.sampled_from(["a", "b", "t"])),
    "used_host_ports": port_sets,
    "disk_gib": st.sampled_from([-1, 0, 2, 5, 9]),
    "most_tasks": st.sampled_from([None, None, None, 0, 3, 6, 9, 1_023]),
    "status": st.sampled_from(["ACTIVE"] * 9 + ["DRAINING"]),
    "agent_connected": st.sampled_from([True] * 9 + [False]),
    "interrupted": st.sampled_from([False] * 9 + [True]),
    "running_tasks": st.integers(0, 3),  # beside those of the groups
    "price_usd_per_hour": st.sampled_from([0.1, 0.25]),
    "interruption_rate": st.sampled_from([0.05, 0.2]),
    "finish_at": st.sampled_from([0.0, 100.0, 200.0]),
    "images": st.sampled_from([(), (), ("x",), ("x", "y")]),
}


NEEDS: dict[str, st.SearchStrategy[Any]] = {
    "cpu_units": st.integers(0, 5),
    "memory_mib": st.integers(0, 5),
    "gpus": st.sampled_from([0, 0, 0, 1, 2]),
    "count": st.sampled_from([0, 1, 1, 2, 3, 7, 20]),
    "group": st.sampled_from(["", "g1", "g2"]),
    "strategy": st.lists(st.sampled_from(STRATEGIES), max_size=4),
    "keep_gpus_free": flags,
    "image": st.sampled_from(["", "x", "y"]),
}


def drawn_batch(draw: st.DrawFn, fields: Mapping[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    drawn = {name: draw(each) for name, each in fields.items()}
    return {**drawn, "strategy": tuple(drawn["strategy"])}


@st.composite
def instance_rows(draw: st.DrawFn) -> list[InstanceRow]:
    rows = []
    for number in range(draw(row_counts)):
        total, busy, here = draw(totals), draw(busy_amounts), draw(groups)
        drawn = {name: draw(each) for name, each in ROW.items()}
        drawn["running_tasks"] += sum(here.values())
        cpu_units, memory_mib, gpus = total
        free = cpu_units - busy, memory_mib - busy, gpus
        rows.append(InstanceRow(f"i-{number}", *free, *total, running_by_group=here, **drawn))
    return rows


# At most two special wishes: with all at once hardly any task would find a place, and nothing would be compared.
some_wishes = st.sets(st.sampled_from(sorted(WISHES)), min_size=1, max_size=2)


@st.composite
def batches(draw: st.DrawFn, plain: bool = False) -> Batch:
    needs = drawn_batch(draw, NEEDS)
    if plain or draw(flags):
        return Batch(**needs)
    return Batch(**needs, **{wish: draw(WISHES[wish]) for wish in sorted(draw(some_wishes))})


cases = st.tuples(instance_rows(), st.lists(batches(), min_size=2, max_size=6))


plain_cases = st.tuples(instance_rows(), st.lists(batches(plain=True), min_size=1, max_size=12))


DRAWING = ("random", "random:7", "spread:instanceId", "best-fit", "busy-first", "dot-product", "spread:attribute:zone")


drawing_cases = st.tuples(
    instance_rows(),
    st.lists(
        st.builds(
            lambda each, chain: replace(each, strategy=tuple(chain), count=min(each.count, 8)),
            batches(plain=True),
            st.lists(st.sampled_from(DRAWING), min_size=1, max_size=3),
        ),
        max_size=12,
    ),
)


busy_cases = st.tuples(
    instance_rows(),
    st.lists(
        batches(plain=True).map(lambda each: replace(each, strategy=("busy-first", "image-first", "best-fit"))),
        max_size=12,
    ),
)


def per_batch(plan: Assignment, size: int) -> list[Counter[int]]:
    found: list[Counter[int]] = [Counter() for _ in range(size)]
    for batch, row, count in zip(plan.batch.tolist(), plan.row.tolist(), plan.count.tolist(), strict=True):
        assert row not in found[batch]
        found[batch][row] = count
    return found


def check(
    rows: list[InstanceRow], queue: list[Batch], matrix_from: int, mix: Counter[tuple[int, int, int, int]] | None = None
) -> None:
    """mix: the typical tasks with GPUs, if they are known."""
    supply = Supply.of(rows) if mix is None else replace(Supply.of(rows), mix=make_mix(mix))
    before = supply.free.copy()
    plan = place_queue(Queue.of(queue), supply, fitness=FUNCTIONS, matrix_from=matrix_from)
    expected = Reference(hosts(rows), QUERIES, KEYS, Counter(mix or {}), is_known=mix is not None).place(queue)
    assert per_batch(plan, len(queue)) == expected
    assert plan.unplaced.tolist() == [b.count - sum(e.values()) for b, e in zip(queue, expected, strict=True)]
    assert (supply.free == before).all()


few, tall_totals = st.integers(1, 4), st.sampled_from([(300, 300, 0), (512, 200, 4), (100, 900, 8)])
zones, one_or_two = st.sampled_from("ab"), st.integers(1, 2)


TALL: dict[str, st.SearchStrategy[Any]] = {
    "cpu_units": st.integers(1, 3),
    "memory_mib": st.integers(0, 3),
    "gpus": st.sampled_from([0, 0, 0, 1]),
    "count": st.integers(50, 700),
    "strategy": st.lists(st.sampled_from(STRATEGIES), min_size=1, max_size=2),
    "keep_gpus_free": flags,
}


# Devices of 12 MiB: few enough sums for all to occur.
share_totals = st.sampled_from([(16, 24, 1), (16, 24, 2), (32, 40, 3), (40, 40, 4), (16, 12, 0)])
known_mib = st.lists(st.integers(1, 12), max_size=2)
row_owners = st.sampled_from([0, 7, 8, OF_SEVERAL])
unknown_mib = st.lists(st.sampled_from([2, 3, 4, 5, 8, 12]), max_size=2)


@st.composite
def gpu_rows(draw: st.DrawFn) -> list[InstanceRow]:
    rows = []
    for number in range(draw(st.integers(1, 4))):
        total = draw(share_totals)
        known, unknown = draw(known_mib)[: total[2]], draw(unknown_mib)
        use = GpuUse(
            tuple(known), whole_unknown=draw(st.sampled_from([0, 0, 1])), owner=draw(row_owners) if known else 0
        )
        for mib in unknown if len(known) < total[2] and not use.whole_unknown else []:
            use = use.plus(mib, owner=draw(row_owners))
        free = *total[:2], max(0, total[2] - draw(st.sampled_from([0, 0, 1])))
        memory = draw(st.sampled_from([0, 12, 12, 12]))
        rows.append(InstanceRow(f"i-{number}", *free, *total, {}, gpu_memory_mib=memory, gpu_use=use))
    return rows


def sharing(batch: Batch, mib: int, owner: int) -> Batch:
    return replace(batch, gpus=0, gpu_share_mib=mib, gpu_owner=owner)


sharers = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 12, 13]), st.sampled_from([0, 0, 7, 8])
share_batches = st.builds(sharing, batches(), *sharers)
plain_share_batches = st.builds(sharing, batches(plain=True), *sharers)
share_cases = st.tuples(gpu_rows(), st.lists(st.one_of(share_batches, share_batches, batches()), max_size=6))
plain_share_cases = st.tuples(
    gpu_rows(), st.lists(st.one_of(plain_share_batches, batches(plain=True)), min_size=2, max_size=12)
)


@st.composite
def gpu_counting_cases(draw: st.DrawFn) -> tuple[list[InstanceRow], list[Batch]]:
    """Small tasks on roomy instances, so that the GPUs decide, and how many of them are idle."""
    rows = []
    for number in range(draw(st.integers(2, 4))):
        size = draw(st.sampled_from([40, 40, 40, 60])), 60, draw(st.sampled_from([1, 2, 2, 3]))
        use = GpuUse(tuple(draw(st.lists(st.sampled_from([2, 4]), max_size=1))))
        memory = draw(st.sampled_from([8, 12]))
        rows.append(InstanceRow(f"i-{number}", *size, *size, {}, gpu_memory_mib=memory, gpu_use=use))
    share = Batch(1, 1, 0, 1, gpu_share_mib=5)
    first, second = draw(st.sampled_from([(0, 0), (7, 8)]))
    shares = [sharing(share, mib, owner) for mib, owner in ((5, first), (8, first), (11, 0), (3, second))]
    chain = draw(st.sampled_from([(), EMPTYING, ("fragmentation",), ("cpu-memory-gpu",)]))
    kinds = [
        replace(each, strategy=chain) for each in (*shares, Batch(1, 1, 1, 1), Batch(1, 1, 2, 1), Batch(2, 1, 0, 1))
    ]
    return rows, draw(st.lists(st.sampled_from(kinds), min_size=4, max_size=14))


@st.composite
def tall_cases(draw: st.DrawFn) -> tuple[list[InstanceRow], list[Batch]]:
    """Many small tasks on few large instances: keys are looked at in blocks, and water levels rise far."""
    rows = []
    for number in range(draw(few)):
        total = draw(tall_totals)
        rows.append(InstanceRow(f"i-{number}", *total, *total, attributes={"zone": draw(zones)}))
    queue = [Batch(**drawn_batch(draw, TALL)) for _ in range(draw(one_or_two))]
    return rows, queue
