"""Markets and backlogs of any size, drawn from a seed, and the same one tick later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from argosy.catalogue.lookup import load_catalogue
from argosy.market.allocation.problem import PoolTable, Problem, TaskShapes

VCPUS = (2, 4, 8, 16, 32, 48, 64, 96)


GIB_PER_VCPU = (1.9, 3.8, 7.6, 15.0)


GPU_TYPES = ((4, 15, 1), (8, 58, 1), (32, 240, 4), (64, 480, 8), (96, 1100, 8))  # vCPUs, GiB, GPUs


NEEDS_VCPU = (0.25, 0.5, 1, 2, 3, 4, 6, 8, 16)


NEEDS_GIB_PER_VCPU = (0.5, 1, 1.5, 2, 3, 4, 6, 8, 12)


def market(pools: int, seed: int) -> PoolTable:
    """Types of drawn generations (a price level each), drawn zones with prices of their own, log-normal depth."""
    rng = np.random.default_rng(seed)
    kinds = [(v, v * g, 0, 0.012 * v * (1 + g / 8)) for v in VCPUS for g in GIB_PER_VCPU]
    kinds += [(v, g, n, 0.012 * v + 0.3 * n) for v, g, n in GPU_TYPES]
    level = rng.uniform(0.7, 1.3, (len(kinds), 12))
    kind, generation = rng.integers(len(kinds), size=pools), rng.integers(12, size=pools)
    capacity = [
        (int(kinds[k][0] * 1024), int(kinds[k][1] * 1024) - 16 * g, kinds[k][2])
        for k, g in zip(kind, generation, strict=True)
    ]
    price = np.array([kinds[k][3] for k in kind]) * level[kind, generation] * rng.uniform(0.8, 1.5, pools)
    depth = np.maximum(1, rng.lognormal(np.log(600), 1.0, pools) / [c[0] / 1024 for c in capacity]).astype(int)
    return PoolTable.of(capacity, price.round(4).tolist(), depth.tolist(), (kind * 12 + generation).tolist())


def backlog(shapes: int, tasks: int, seed: int) -> TaskShapes:
    rng = np.random.default_rng(seed)
    needs: dict[tuple[int, int, int], float] = {}
    while len(needs) < shapes:
        vcpus, ratio = rng.choice(NEEDS_VCPU), rng.choice(NEEDS_GIB_PER_VCPU)
        gpus = int(rng.choice([0, 1, 2, 4], p=[0.88, 0.08, 0.03, 0.01]))
        vcpus = max(vcpus, 2 * gpus)
        needs[int(vcpus * 1024), int(vcpus * ratio * 1024), gpus] = rng.lognormal() / (1 + vcpus / 2) / (1 + 8 * gpus)
    weight = np.array(list(needs.values()))
    count = np.maximum(1, weight / weight.sum() * tasks).astype(int)
    count[0] += tasks - count.sum()
    return TaskShapes.of(list(needs), count.tolist())


def changed(problem: Problem, seed: int) -> Problem:
    """The next tick: demand +-10 %, prices +-3 %."""
    rng = np.random.default_rng(seed)
    offered, wanted = problem.offered, problem.backlog
    price = offered.price * rng.uniform(0.97, 1.03, len(offered.price))
    count = (wanted.count * rng.uniform(0.9, 1.1, len(wanted.count))).astype(np.int64)
    return Problem(PoolTable(offered.capacity, price, offered.depth, offered.kind), TaskShapes(wanted.need, count))


def distinct_sizes(tasks: int, seed: int, gpu_share: float = 0.0) -> TaskShapes:
    """Every task its own shape: about 1.5 vCPUs and 3 GiB per vCPU, log-normal; some with GPUs."""
    rng = np.random.default_rng(seed)
    needs: dict[tuple[int, int, int], None] = {}
    while len(needs) < tasks:
        cpu = np.clip(rng.lognormal(np.log(1_500), 1.0), 128, 16_384)
        memory = np.clip(cpu / 1024 * rng.lognormal(np.log(3_072), 0.7), 64, 120_000)
        gpus = int(rng.choice([1, 2, 4])) if rng.random() < gpu_share else 0
        needs[int(max(cpu, 2_048 * gpus)), int(memory), gpus] = None
    return TaskShapes.of(list(needs), [1] * tasks)


def proportional_market(types: int) -> PoolTable:
    """Types of 1 to `types` vCPUs at one price per vCPU, without the host's own use."""
    vcpus = np.arange(1, types + 1)
    capacity = np.column_stack([vcpus * 1000 - 100, vcpus * 2048 - 10, 0 * vcpus])
    return PoolTable.of(capacity.tolist(), (vcpus * 0.3).tolist(), [1_000_000] * types, list(range(types)))


def small_tasks(tasks: int, seed: int) -> TaskShapes:
    """30 sizes of at most 1.5 vCPUs and 4 GiB, nearly as many tasks of each."""
    needs = [
        (cpu, memory, 0) for cpu in (100, 250, 500, 1_000, 1_500) for memory in (100, 256, 512, 1_024, 2_048, 4_096)
    ]
    count = np.random.default_rng(seed).multinomial(tasks, [1 / len(needs)] * len(needs))
    return TaskShapes.of(needs, count.tolist())


def catalogue_market() -> PoolTable:
    """The catalogue's x86 types on demand, as many as wanted."""
    kinds = [kind for kind in load_catalogue().values() if kind.runs("x86_64") and not kind.gpu_part]
    kinds = [kind for kind in kinds if kind.on_demand_usd_per_hour > 0]
    prices, many = [kind.on_demand_usd_per_hour for kind in kinds], [100_000] * len(kinds)
    offered = PoolTable.of([kind.resources[:3] for kind in kinds], prices, many, list(range(len(kinds))))
    return replace(offered, gpu_mib=np.array([kind.shared_gpu_mib for kind in kinds]))


SHARES_MIB = (1500, 2000, 3000, 4000, 4096, 5000, 6000, 8000, 10_000, 12_000, 16_000, 20_000, 30_000)


def shared_backlog(seed: int) -> TaskShapes:
    """18 kinds of tasks: 8 need no GPU, 6 share one, 4 take 1 to 8 whole ones."""
    rng = np.random.default_rng(seed)
    rows: dict[tuple[int, ...], int] = {}
    for number in range(18):
        gpus = int(rng.choice([1, 1, 1, 2, 4, 8])) if number >= 14 else 0
        share = int(rng.choice(SHARES_MIB)) if 8 <= number < 14 else 0
        vcpus = rng.choice([2, 4, 8]) * gpus if gpus else rng.choice([0.25, 0.5, 1, 2] + ([] if share else [4, 8]))
        memory = int(rng.choice([1024, 3000, 8192])) if share else int(vcpus * 1024 * rng.choice([0.5, 1, 2, 4]))
        rows[int(vcpus * 1024), memory, gpus, share] = int(rng.integers(5, 100) if gpus else rng.integers(20, 400))
    table = np.array(list(rows))
    tasks = TaskShapes.of(table[:, :3].tolist(), list(rows.values()))
    return replace(tasks, shares=np.column_stack([table[:, 3], 0 * table[:, 3]]))
