"""An allocation problem from a CSV of pools and a CSV of a backlog, for `bench allocate`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from argosy.catalogue.lookup import load_catalogue
from argosy.client.errors import InvalidInput
from argosy.market.allocation.problem import PoolTable, TaskShapes
from argosy.placement.arrays import MAX_AMOUNT, MAX_GPUS, MAX_TASKS
from tests.harness.bench.csv_file import CsvFile, Record

SIZE_COLUMNS: Final = ("cpu", "memory", "gpus")
POOL_COLUMNS: Final = (
    "region", "availabilityZone", "instanceType", *SIZE_COLUMNS, "priceUsdPerHour", "maxInstances",
)  # fmt: skip
BACKLOG_COLUMNS: Final = ("shapeId", *SIZE_COLUMNS, "count")
_MAX_PRICE_USD: Final = 1e6
_MIN_PRICE_USD: Final = 1e-6


@dataclass(frozen=True, slots=True)
class PoolName:
    """The market of a row of `pools.csv`."""

    region: str
    zone: str
    instance_type: str


def read_pools(path: Path) -> tuple[list[PoolName], PoolTable]:
    """The pools of `pools.csv`, in its order. InvalidInput with the line of every fault, or if the file offers nothing.

    If cpu, memory and gpus are all empty, the catalogue gives the size of the type. Optional columns: maxTasks, the
    most tasks on one instance, and gpuMib, the memory of one GPU for tasks that share it.
    """
    names: list[PoolName] = []
    sizes: list[list[int]] = []
    prices: list[float] = []
    depths: list[int] = []
    mosts: list[int] = []
    gpu_mib: list[int] = []
    for record in CsvFile(path, POOL_COLUMNS).records():
        names.append(PoolName(*map(record.filled, ("region", "availabilityZone", "instanceType"))))
        sizes.append(_size_of_pool(record))
        prices.append(record.number("priceUsdPerHour", _MIN_PRICE_USD, _MAX_PRICE_USD))
        depths.append(record.whole("maxInstances", MAX_TASKS))
        mosts.append(record.whole("maxTasks", MAX_TASKS) if record.text("maxTasks") else MAX_TASKS)
        gpu_mib.append(record.whole("gpuMib", MAX_AMOUNT) if record.text("gpuMib") else 0)
        if record.text("interruptionRate"):
            record.number("interruptionRate", 0.0, 1.0)
    if not any(depths):
        raise InvalidInput(f"{path}: offers no instances.", next_step="one line per pool, with maxInstances above 0")
    types = {name: number for number, name in enumerate(dict.fromkeys(pool.instance_type for pool in names))}
    offered = PoolTable.of(sizes, prices, depths, [types[pool.instance_type] for pool in names], mosts)
    return names, replace(offered, gpu_mib=np.array(gpu_mib, dtype=np.int64))


def read_backlog(path: Path) -> tuple[list[str], TaskShapes]:
    """The ids and the shapes of `backlog.csv`. InvalidInput with the line of every fault, or when it has no tasks. The
    column gpuShareMib is optional: the memory that a task shares of one GPU."""
    ids: list[str] = []
    needs: list[list[int]] = []
    counts: list[int] = []
    shares: list[tuple[int, int]] = []
    for record in CsvFile(path, BACKLOG_COLUMNS).records():
        ids.append(record.new_id("shapeId"))
        needs.append(_size(record))
        counts.append(record.whole("count", MAX_TASKS))
        shares.append((record.whole("gpuShareMib", MAX_AMOUNT) if record.text("gpuShareMib") else 0, 0))
        if needs[-1] == [0, 0, 0]:
            record.fault("asks for nothing: cpu, memory or gpus must be above 0")
    if not any(counts):
        raise InvalidInput(f"{path}: has no tasks.", next_step="one line per shape, with a count above 0")
    if sum(counts) > MAX_TASKS:
        raise InvalidInput(f"{path}: {sum(counts)} tasks in all, at most {MAX_TASKS} can be planned at once.")
    some = any(share for share, _ in shares)
    return ids, replace(TaskShapes.of(needs, counts), shares=np.array(shares, dtype=np.int64) if some else None)


def _size(record: Record) -> list[int]:
    """cpu units, MiB, GPUs."""
    return [record.whole("cpu", MAX_AMOUNT), record.whole("memory", MAX_AMOUNT), record.whole("gpus", MAX_GPUS)]


def _size_of_pool(record: Record) -> list[int]:
    if any(map(record.text, SIZE_COLUMNS)):
        return _size(record)
    name = record.text("instanceType")
    found = load_catalogue().get(name)
    if found is None:
        record.fault(f"instanceType {name[:40]!r} is unknown, and cpu, memory and gpus are empty")
        return [0, 0, 0]
    return [found.cpu_units, found.registered_memory_mib, found.gpus]
