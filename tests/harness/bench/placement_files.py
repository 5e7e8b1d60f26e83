"""A supply and a queue from a CSV of instances and a CSV of tasks, for `bench place`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from argosy.client.errors import InvalidInput
from argosy.placement.arrays import MAX_AMOUNT, MAX_GPUS, MAX_TASKS
from argosy.placement.demand import Batch, Queue
from argosy.placement.feasibility import check_ports
from argosy.placement.query import check_constraints, check_strategy
from argosy.placement.supply import InstanceRow, Supply
from tests.harness.bench.csv_file import CsvFile, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

INSTANCE_COLUMNS: Final = ("instanceId", "instanceType", "availabilityZone", "cpu", "memory", "gpus")
TASK_COLUMNS: Final = ("taskId", "cpu", "memory", "gpus", "count")
_KIND_COLUMNS: Final = ("cpu", "memory", "gpus", "constraint", "strategy", "hostPorts", "gpuShareMib")


def read_instances(path: Path) -> Supply:
    """The supply of `instances.csv`; every instance is empty. InvalidInput with the line of every fault."""
    rows = []
    for record in CsvFile(path, INSTANCE_COLUMNS).records():
        attributes = {
            "ecs.instance-type": record.text("instanceType"),
            "ecs.availability-zone": record.text("availabilityZone"),
        }
        own = {name.removeprefix("attr:"): text for name, text in record.cells.items() if name.startswith("attr:")}
        rows.append(
            InstanceRow(
                record.new_id("instanceId"),
                *_size(record) * 2,
                most_tasks=record.whole("maxTasks", MAX_TASKS) if record.text("maxTasks") else None,
                gpu_memory_mib=_amount(record, "gpuMemoryMib"),
                attributes={name: text for name, text in (attributes | own).items() if text},
                price_usd_per_hour=record.number("price", 0.0, float("inf")) if record.text("price") else 0.0,
            )
        )
    return Supply.of(rows)


def read_tasks(
    path: Path, strategy: tuple[str, ...] | None, constraints: tuple[str, ...]
) -> tuple[tuple[str, ...], Queue]:
    """The ids and the queue of `tasks.csv`. InvalidInput with the line of every fault.

    A row's own strategy replaces `strategy`; its constraint is added to `constraints`.
    """
    ids: list[str] = []
    kinds: dict[tuple[str, ...], int] = {}
    batches: list[Batch] = []
    kind: list[int] = []
    counts: list[int] = []
    for record in CsvFile(path, TASK_COLUMNS).records():
        index = kinds.setdefault(tuple(map(record.text, _KIND_COLUMNS)), len(kinds))
        if index == len(batches):
            batches.append(_batch(record, strategy, constraints))
        ids.append(record.new_id("taskId"))
        kind.append(index)
        counts.append(record.whole("count", MAX_TASKS))
    if sum(counts) > MAX_TASKS:
        raise InvalidInput(f"{path}: {sum(counts)} tasks in all, at most {MAX_TASKS} can be placed at once.")
    kinds_of_rows: NDArray[np.int64] = np.array(kind, dtype=np.int64)
    return tuple(ids), Queue.from_columns(batches, kinds_of_rows, counts)


def chain_of(text: str) -> tuple[str, ...]:
    """Parse `spread:attribute:zone,binpack:memory` into a chain."""
    return tuple(part.strip() for part in text.split(","))


def _size(record: Record) -> tuple[int, int, int]:
    """cpu units, MiB, GPUs."""
    return record.whole("cpu", MAX_AMOUNT), record.whole("memory", MAX_AMOUNT), record.whole("gpus", MAX_GPUS)


def _batch(record: Record, strategy: tuple[str, ...] | None, constraints: tuple[str, ...]) -> Batch:
    constraint, own_strategy = record.text("constraint"), record.text("strategy")
    chain = chain_of(own_strategy) if own_strategy else strategy or ()
    host_ports = _ports(record)
    faults = check_constraints([constraint] if constraint else []) + check_strategy(chain) + check_ports(host_ports)
    for fault in faults:
        record.fault(fault.rstrip("."))
    # An explicit chain is followed exactly; only the default keeps GPU instances free of other work.
    return Batch(
        *_size(record),
        count=1,
        gpu_share_mib=_amount(record, "gpuShareMib"),
        constraints=constraints + ((constraint,) if constraint else ()),
        strategy=chain,
        host_ports=host_ports,
        keep_gpus_free=not chain,
    )


def _amount(record: Record, column: str) -> int:
    """MiB; 0 if the file has no such column or nothing in it."""
    return record.whole(column, MAX_AMOUNT) if record.text(column) else 0


def _ports(record: Record) -> tuple[tuple[int, str], ...]:
    """Parse `80/tcp;53/udp`; the protocol defaults to tcp."""
    found = []
    for part in filter(None, record.text("hostPorts").replace(";", " ").split()):
        number, _, protocol = part.partition("/")
        if number.isascii() and number.isdecimal() and len(number) <= 5:
            found.append((int(number), protocol or "tcp"))
        else:
            record.fault(f"hostPorts {part[:40]!r} is not a port such as 80/tcp")
    return tuple(found)
