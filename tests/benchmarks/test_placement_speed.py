"""How fast is placement at full size, on generated instances and tasks? Floors are issue figures; `make bench` prints
the measurements.

Times are the least of several repeats, in CPU time of this process: other load on the machine does not count.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from argosy.placement.candidates import mix_of
from argosy.placement.demand import Batch, Queue
from argosy.placement.place import place, place_queue
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.placing.places import EMPTYING
from tests.benchmarks.apart import apart, peak_mib

pytestmark = pytest.mark.benchmark
INSTANCES = 5_000
ZONE = "attribute:ecs.availability-zone"
CONSTRAINTS = ("attribute:ecs.instance-type =~ (c|m|r)5.*", f"{ZONE} in [use1-az1, use1-az2, use1-az4]")


def fleet(seed: int = 1, instances: int = INSTANCES) -> Supply:
    """Sizes and shares like those of AWS's catalogue: 2 to 96 vCPU, 2 to 8 GiB each, one in seven with GPUs."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(instances):
        vcpus = int(random.choice([2, 4, 8, 16, 32, 48, 64, 96]))
        gpus = int(random.choice([1, 4, 8])) if vcpus >= 8 and random.random() < 0.2 else 0
        family, gib = ("p3", 8) if gpus else (("c5", 2), ("m5", 4), ("r5", 8))[int(random.integers(3))]
        size = (vcpus * 1024, int(vcpus * gib * 1024 * 0.95) - 256, gpus)
        attributes = {
            "ecs.instance-type": f"{family}.{vcpus}",
            "ecs.availability-zone": f"use1-az{random.integers(1, 7)}",
        }
        rows.append(InstanceRow(f"i-{number:05}", *size, *size, attributes=attributes))
    return Supply.of(rows)


def shapes(number: int, seed: int = 2) -> list[tuple[int, int, int]]:
    random = np.random.default_rng(seed)
    found: dict[tuple[int, int, int], None] = {}
    while len(found) < number:
        vcpus = int(random.choice([1, 1, 2, 2, 4, 8]))
        gpus = int(random.choice([1, 1, 2, 4])) if random.random() < 0.1 else 0
        found[vcpus * 512, int(random.integers(1, 65)) * 64 * vcpus, gpus] = None
    return list(found)


def least_seconds(work: Callable[[], object], repeats: int) -> float:
    def once() -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    return min(once() for _ in range(repeats))


def report(what: str, seconds: float, floor_s: float) -> None:
    print(f"\n{what}: {seconds * 1e3:.3f} ms (floor {floor_s * 1e3:g} ms)")
    assert seconds < floor_s


@pytest.mark.parametrize(
    "chain",
    [
        ("best-fit",),
        ("binpack:memory",),
        ("spread:instanceId",),
        (f"spread:{ZONE}",),
        (f"spread:{ZONE}", "binpack:memory"),
        (),
    ],
)
@pytest.mark.parametrize("constraints", [(), CONSTRAINTS])
def test_a_million_equal_tasks(chain: tuple[str, ...], constraints: tuple[str, ...]) -> None:
    supply = fleet()
    batches = [Batch(16, 16, 0, 1_000_000, group="g", constraints=constraints, strategy=chain)]
    assert place(batches, supply).placed == 1_000_000
    report(
        f"1M equal tasks, {chain}, {len(constraints)} constraints",
        least_seconds(lambda: place(batches, supply), 20),
        0.010,
    )


def test_a_hundred_thousand_tasks_in_batches() -> None:
    random, kinds = np.random.default_rng(3), [Batch(*shape, 1) for shape in shapes(54)]
    kind = random.integers(len(kinds), size=950)
    queue = Queue.from_columns(kinds, kind, random.integers(1, 210, size=950).tolist())
    supply = fleet()
    report(f"{queue.count.sum()} tasks in 950 batches", least_seconds(lambda: place_queue(queue, supply), 5), 0.100)


def test_a_hundred_thousand_interleaved_tasks() -> None:
    random, kinds = np.random.default_rng(4), [Batch(*shape, 1) for shape in shapes(160)]
    kind = np.cumsum(random.integers(1, len(kinds), size=100_000)) % len(kinds)  # no two neighbours are equal
    queue = Queue.from_columns(kinds, kind, [1] * len(kind))
    supply = fleet()
    report("100k interleaved tasks of 160 shapes", least_seconds(lambda: place_queue(queue, supply), 3), 5.0)


def interleaved(chain: tuple[str, ...]) -> Queue:
    random, kinds = np.random.default_rng(4), [Batch(*shape, 1, strategy=chain) for shape in shapes(160)]
    return Queue.from_columns(kinds, np.cumsum(random.integers(1, 160, size=100_000)) % 160, [1] * 100_000)


@pytest.mark.parametrize("chain", [("best-fit",), EMPTYING, ("spread:instanceId",), ("random",)])
def test_a_hundred_thousand_interleaved_tasks_by_other_chains(chain: tuple[str, ...]) -> None:
    supply, queue = fleet(), interleaved(chain)
    report(f"the same by {', '.join(chain)}", least_seconds(lambda: place_queue(queue, supply), 3), 5.0)


def test_a_hundred_thousand_interleaved_tasks_of_which_some_share_gpus() -> None:
    supply, queue = fleet(), interleaved(EMPTYING)
    supply = Supply.of([replace(row, gpu_memory_mib=22_000 * (row.total_gpus > 0)) for row in supply.rows])
    sizes = np.random.default_rng(7).choice([2_000, 4_000, 5_500, 7_300, 11_000], len(queue.kinds)).tolist()
    pairs = zip(queue.kinds, sizes, strict=True)
    kinds = [replace(kind, gpus=0, gpu_share_mib=mib * (kind.gpus > 0)) for kind, mib in pairs]
    queue = Queue.from_columns(kinds, queue.kind, queue.count.tolist())
    report("the same, a tenth with a share", least_seconds(lambda: place_queue(queue, supply), 3), 100_000 / 150_000)


def test_twenty_thousand_interleaved_tasks_for_known_typical_tasks_of_which_some_share_gpus() -> None:
    supply, queue = fleet(), interleaved(EMPTYING)
    supply = Supply.of([replace(row, gpu_memory_mib=22_000 * (row.total_gpus > 0)) for row in supply.rows])
    sizes = np.random.default_rng(7).choice([2_000, 4_000, 5_500, 7_300, 11_000], len(queue.kinds)).tolist()
    kinds = [
        replace(kind, gpus=0, gpu_share_mib=mib) if kind.gpus == 1 else kind
        for kind, mib in zip(queue.kinds, sizes, strict=True)
    ]
    queue = Queue.from_columns(kinds, queue.kind[:20_000], [1] * 20_000)
    typical = replace(supply, mix=mix_of(queue))
    report("the same, stranding few GPUs", least_seconds(lambda: place_queue(queue, typical), 3), 20_000 / 20_000)


def test_the_default_places_more_than_best_fit_on_a_fleet_that_is_too_small() -> None:
    supply = fleet(instances=1_400)
    found = {chain: place_queue(interleaved(chain), supply) for chain in ((), ("best-fit",))}
    placed, best_fit = (each.placed for each in found.values())
    print(f"\nof 100k tasks the default places {placed}, best fit {best_fit}")
    assert placed > best_fit


@pytest.mark.parametrize("constraints", [(), CONSTRAINTS])
def test_one_new_task(constraints: tuple[str, ...]) -> None:
    supply, batch = fleet(), [Batch(1024, 2048, 0, 1, constraints=constraints)]
    seconds = sorted(least_seconds(lambda: place(batch, supply), 1) for _ in range(1_000))
    print(
        f"\none task, {len(constraints)} constraints: "
        f"p50 {seconds[500] * 1e6:.0f} us, p99 {seconds[990] * 1e6:.0f} us (floor 1, 5 ms)"
    )
    assert seconds[500] < 0.001
    assert seconds[990] < 0.005


def test_eight_clusters_and_a_million_tasks_in_memory() -> None:
    peak = apart(eight_clusters)
    print(f"\n8 x 5,000 instances, 1M tasks: peak {peak:.0f} MiB (floor 512)")
    assert peak < 512


def eight_clusters() -> float:
    """The peak of memory in MiB."""
    supplies = [fleet(seed) for seed in range(8)]
    random, kinds = np.random.default_rng(6), [Batch(*shape, 1) for shape in shapes(200)]
    queue = Queue.from_columns(kinds, random.integers(len(kinds), size=10_000), [100] * 10_000)
    for supply in supplies:
        place_queue(queue, supply)
    return peak_mib()


def test_importing_is_quick() -> None:
    script = "import time; s = time.process_time(); import argosy.placement.place; print(time.process_time() - s)"
    seconds = min(float(subprocess.check_output([sys.executable, "-c", script])) for _ in range(5))
    report("import of placement", seconds, 0.25)
