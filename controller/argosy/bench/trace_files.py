"""How do a CSV of instances and a CSV of tasks become a supply and a queue, and where exactly is one of them wrong?"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from argosy.client.errors import InvalidInput
from argosy.placement.arrays import MAX_AMOUNT, MAX_GPUS, MAX_TASKS
from argosy.placement.demand import Batch, Queue
from argosy.placement.feasibility import check_ports
from argosy.placement.query import check_constraints, check_strategy
from argosy.placement.supply import InstanceRow, Supply

if TYPE_CHECKING:
    from numpy.typing import NDArray

INSTANCE_COLUMNS: Final = ("instanceId", "instanceType", "availabilityZone", "cpu", "memory", "gpus")
TASK_COLUMNS: Final = ("taskId", "cpu", "memory", "gpus", "count")
_AMOUNTS: Final = {"cpu": MAX_AMOUNT, "memory": MAX_AMOUNT, "gpus": MAX_GPUS, "count": MAX_TASKS}
_MAX_DIGITS: Final = 15
Cells = Mapping[str, str]


def read_instances(path: Path) -> Supply:
    """The supply of `instances.csv`; every instance is empty. InvalidInput with file and line."""
    rows = []
    for line, cells in _records(path, INSTANCE_COLUMNS):
        cpu, memory, gpus = (_amount(path, line, cells, name) for name in ("cpu", "memory", "gpus"))
        attributes = {"ecs.instance-type": cells["instanceType"], "ecs.availability-zone": cells["availabilityZone"]}
        attributes |= {name.removeprefix("attr:"): text for name, text in cells.items() if name.startswith("attr:")}
        rows.append(
            InstanceRow(
                cells["instanceId"],
                *(cpu, memory, gpus) * 2,
                attributes={name: text for name, text in attributes.items() if text},
                price_usd_per_hour=_price(path, line, cells.get("price", "")),
            )
        )
    return Supply.of(rows)


def read_tasks(
    path: Path, strategy: tuple[str, ...] | None, constraints: tuple[str, ...]
) -> tuple[tuple[str, ...], Queue]:
    """The ids and the queue of `tasks.csv`; a row's own strategy goes before `strategy`, its constraint joins
    `constraints`.
    """
    ids: list[str] = []
    kinds: dict[tuple[int, int, int, str, str, str], int] = {}
    batches: list[Batch] = []
    kind: list[int] = []
    counts: list[int] = []
    for line, cells in _records(path, TASK_COLUMNS):
        cpu, memory, gpus, count = (_amount(path, line, cells, name) for name in _AMOUNTS)
        extras = (cells.get("constraint", ""), cells.get("strategy", ""), cells.get("hostPorts", ""))
        index = kinds.setdefault((cpu, memory, gpus, *extras), len(kinds))
        if index == len(batches):
            batches.append(_batch(path, line, (cpu, memory, gpus), extras, strategy, constraints))
        ids.append(cells["taskId"])
        kind.append(index)
        counts.append(count)
    if sum(counts) > MAX_TASKS:
        raise InvalidInput(f"{path}: {sum(counts)} tasks in all, at most {MAX_TASKS} can be placed at once.")
    kinds_of_rows: NDArray[np.int64] = np.array(kind, dtype=np.int64)
    return tuple(ids), Queue.from_columns(batches, kinds_of_rows, counts)


def chain_of(text: str) -> tuple[str, ...]:
    """`spread:attribute:zone,binpack:memory` as a chain."""
    return tuple(part.strip() for part in text.split(","))


def _batch(
    path: Path,
    line: int,
    need: tuple[int, int, int],
    extras: tuple[str, str, str],
    strategy: tuple[str, ...] | None,
    constraints: tuple[str, ...],
) -> Batch:
    constraint, own_strategy, ports = extras
    chain = chain_of(own_strategy) if own_strategy else strategy
    host_ports = _ports(path, line, ports)
    faults = (
        check_constraints([constraint] if constraint else []) + check_strategy(chain or ()) + check_ports(host_ports)
    )
    if faults:
        raise InvalidInput(f"{path}:{line}: {faults[0]}", details=faults[1:])
    # A chain that is written down means what it says; only the default keeps GPU instances free of other work.
    return Batch(
        *need,
        count=1,
        constraints=constraints + ((constraint,) if constraint else ()),
        strategy=chain or (),
        host_ports=host_ports,
        keep_gpus_free=not chain,
    )


def _records(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, cells by column) of each record. The first column is an id: neither empty nor there twice."""
    seen: set[str] = set()
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = _header(path, next(reader, None), wanted)
            for row in reader:
                if not row:
                    continue
                line = reader.line_num
                if len(row) != len(header):
                    raise InvalidInput(f"{path}:{line}: {len(row)} cells, the header has {len(header)}.")
                cells = dict(zip(header, map(str.strip, row), strict=True))
                _refuse_id(path, line, wanted[0], cells[wanted[0]], seen)
                yield line, cells
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}.") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: is no CSV in UTF-8: {error}.") from None


def _header(path: Path, header: list[str] | None, wanted: Sequence[str]) -> list[str]:
    if not header:
        raise InvalidInput(f"{path}: is empty.", next_step="its first line names the columns " + ",".join(wanted))
    names = [name.strip() for name in header]
    if missing := [name for name in wanted if name not in names]:
        raise InvalidInput(f"{path}:1: has no column {', '.join(missing)}.", next_step="columns: " + ",".join(wanted))
    if len(set(names)) < len(names):
        raise InvalidInput(f"{path}:1: names a column twice.")
    return names


def _refuse_id(path: Path, line: int, column: str, text: str, seen: set[str]) -> None:
    if not text:
        raise InvalidInput(f"{path}:{line}: {column} is empty.")
    if text in seen:
        raise InvalidInput(f"{path}:{line}: {column} {text[:80]!r} is there twice.")
    seen.add(text)


def _amount(path: Path, line: int, cells: Cells, name: str) -> int:
    text, most = cells[name], _AMOUNTS[name]
    if not (text.isascii() and text.isdecimal()):
        raise InvalidInput(f"{path}:{line}: {name} {text[:40]!r} is no whole number from 0 on.")
    if len(text) > _MAX_DIGITS or int(text) > most:
        raise InvalidInput(f"{path}:{line}: {name} is above {most}.")
    return int(text)


def _price(path: Path, line: int, text: str) -> float:
    try:
        price = float(text or 0)
    except ValueError:
        price = float("nan")
    if not 0 <= price < float("inf"):
        raise InvalidInput(f"{path}:{line}: price {text[:40]!r} is no number of USD per hour from 0 on.")
    return price


def _ports(path: Path, line: int, text: str) -> tuple[tuple[int, str], ...]:
    """`80/tcp;53/udp`; without a protocol it is tcp."""
    found = []
    for part in filter(None, text.replace(";", " ").split()):
        number, _, protocol = part.partition("/")
        if not (number.isascii() and number.isdecimal() and len(number) <= 5):
            raise InvalidInput(f"{path}:{line}: hostPorts {part[:40]!r} is no port such as 80/tcp.")
        found.append((int(number), protocol or "tcp"))
    return tuple(found)
