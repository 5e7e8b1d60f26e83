"""How do a CSV of pools and a CSV of a backlog become an allocation problem, and what exactly is wrong with either?

Every fault is told at once, each with its file and line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.catalogue.lookup import load_catalogue
from argosy.client.errors import InvalidInput
from argosy.market.allocation.problem import Offered, Wanted
from argosy.placement.arrays import MAX_AMOUNT, MAX_GPUS, MAX_TASKS

SIZE_COLUMNS: Final = ("cpu", "memory", "gpus")
POOL_COLUMNS: Final = (
    "region", "availabilityZone", "instanceType", *SIZE_COLUMNS, "priceUsdPerHour", "maxInstances",
)  # fmt: skip
BACKLOG_COLUMNS: Final = ("shapeId", *SIZE_COLUMNS, "count")
_MOST: Final = {
    "cpu": MAX_AMOUNT, "memory": MAX_AMOUNT, "gpus": MAX_GPUS, "count": MAX_TASKS, "maxInstances": MAX_TASKS,
}  # fmt: skip
_MAX_FAULTS: Final = 20  # told of one file
_MAX_PRICE_USD: Final = 1e6
_MIN_PRICE_USD: Final = 1e-6
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PoolName:
    region: str
    zone: str
    instance_type: str


def read_pools(path: Path) -> tuple[list[PoolName], Offered]:
    """The pools of `pools.csv`, in its order. InvalidInput with every fault's line; also when nothing is on offer.

    A type's empty cpu, memory and gpus are looked up in the catalogue.
    """
    names: list[PoolName] = []
    sizes: list[list[int]] = []
    prices: list[float] = []
    depths: list[int] = []
    faults = _Faults(path)
    for line, cells in _records(path, POOL_COLUMNS):
        name = PoolName(cells["region"], cells["availabilityZone"], cells["instanceType"])
        for column in ("region", "availabilityZone", "instanceType"):
            if not cells[column]:
                faults.add(line, f"{column} is empty")
        names.append(name)
        sizes.append(_size(faults, line, cells))
        prices.append(_number(faults, line, cells, "priceUsdPerHour", _MIN_PRICE_USD, _MAX_PRICE_USD))
        depths.append(_amount(faults, line, cells, "maxInstances"))
        if cells.get("interruptionRate"):
            _number(faults, line, cells, "interruptionRate", 0.0, 1.0)
    faults.tell()
    if not any(depths):
        raise InvalidInput(f"{path}: offers no instances.", next_step="one line per pool, with maxInstances above 0")
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(name.instance_type for name in names))}
    return names, Offered.of(sizes, prices, depths, [kinds[name.instance_type] for name in names])


def read_backlog(path: Path) -> tuple[list[str], Wanted]:
    """The shapes' ids and the shapes of `backlog.csv`. InvalidInput with every fault's line; also without tasks."""
    ids: dict[str, int] = {}
    needs: list[list[int]] = []
    counts: list[int] = []
    faults = _Faults(path)
    for line, cells in _records(path, BACKLOG_COLUMNS):
        shape = cells["shapeId"]
        if not shape or shape in ids:
            faults.add(line, f"shapeId {shape[:80]!r} is there twice" if shape else "shapeId is empty")
        ids[shape] = line
        needs.append([_amount(faults, line, cells, column) for column in SIZE_COLUMNS])
        counts.append(_amount(faults, line, cells, "count"))
        if needs[-1] == [0, 0, 0]:
            faults.add(line, "asks for nothing: cpu, memory or gpus must be above 0")
    faults.tell()
    if not any(counts):
        raise InvalidInput(f"{path}: has no tasks.", next_step="one line per shape, with a count above 0")
    if sum(counts) > MAX_TASKS:
        raise InvalidInput(f"{path}: {sum(counts)} tasks in all, at most {MAX_TASKS} can be planned at once.")
    return list(ids), Wanted.of(needs, counts)


class _Faults:
    """What is wrong with a file, line by line."""

    def __init__(self, path: Path) -> None:
        self._path, self._found, self._more = path, list[str](), 0

    def add(self, line: int, fault: str) -> None:
        if len(self._found) < _MAX_FAULTS:
            self._found.append(f"{self._path}:{line}: {fault}.")
        else:
            self._more += 1

    def tell(self) -> None:
        if self._found:
            more = [f"and {self._more} more"] if self._more else []
            raise InvalidInput(self._found[0], details=self._found[1:] + more)


def _size(faults: _Faults, line: int, cells: Cells) -> list[int]:
    if any(cells[column] for column in SIZE_COLUMNS):
        return [_amount(faults, line, cells, column) for column in SIZE_COLUMNS]
    kind = load_catalogue().get(cells["instanceType"])
    if kind is None:
        unknown = f"instanceType {cells['instanceType'][:40]!r} is unknown, and cpu, memory and gpus are empty"
        faults.add(line, unknown)
        return [0, 0, 0]
    return [kind.cpu_units, kind.registered_memory_mib, kind.gpus]


def _amount(faults: _Faults, line: int, cells: Cells, column: str) -> int:
    text, most = cells[column], _MOST[column]
    if not (text.isascii() and text.isdecimal()):
        faults.add(line, f"{column} {text[:40]!r} is no whole number from 0 on")
    elif len(text) > len(str(most)) or int(text) > most:
        faults.add(line, f"{column} is above {most}")
    else:
        return int(text)
    return 0


def _number(faults: _Faults, line: int, cells: Cells, column: str, least: float, most: float) -> float:
    text = cells[column]
    try:
        number = float(text) if text else float("nan")
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        said = f"{text[:40]!r} is" if text else "is missing; it must be"
        faults.add(line, f"{column} {said} {'no' if text else 'a'} number from {least:g} to {most:g}")
        return 1.0
    return number


def _records(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, cells by column) of each record."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(reader, [])]
            if missing := [name for name in wanted if name not in header]:
                raise InvalidInput(
                    f"{path}:1: has no column {', '.join(missing)}.", next_step="columns: " + ",".join(wanted)
                )
            if len(set(header)) < len(header):
                raise InvalidInput(f"{path}:1: names a column twice.")
            for row in filter(None, reader):
                if len(row) != len(header):
                    raise InvalidInput(f"{path}:{reader.line_num}: {len(row)} cells, the header has {len(header)}.")
                yield reader.line_num, dict(zip(header, map(str.strip, row), strict=True))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}.") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: is no CSV in UTF-8: {error}.") from None
