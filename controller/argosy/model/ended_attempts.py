"""How did each attempt end, and how is that stored?

An attempt that ended has one row, appended by the commit in which it ended: an item of columns for each run and
version, in a partition that no load reads. A row never changes. A later finding, such as a missing result, is appended
as a row that amends the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import IntEnum
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy.model import packing
from argosy.model.tasks import NO_EXIT_CODE

Columns = dict[str, NDArray[Any]]
Place = tuple[str, str]  # EC2 id, cell
NOWHERE: Place = ("", "")

ROWS_PER_ITEM = 5_000  # at 60 bytes a row when nothing compresses, below the 400 KB of an item
BYTES_PER_ROW = 40  # as stored: about 30 where runs are measured, 16 of them the task's id
TENTHS = 10.0  # times are kept in tenths of a second


class Outcome(IntEnum):
    """How an attempt ended. Only the first is a success; the last six use up no attempt of the user's."""

    SUCCEEDED = 1
    FAILED = 2  # charged to the user: an exit code, or no result
    TIMED_OUT = 3  # charged to the user as well
    INTERRUPTED = 4  # EC2 took its instance back, or the instance ended
    LOST = 5  # lost to infrastructure in another way: stuck, or its end was not seen
    NOT_STARTED = 6  # its container could not be created
    CANCELLED = 7
    PREEMPTED = 8  # stopped for a run of another queue
    WITH_GANG = 9  # stopped because another member of its gang ended


FAILURES = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.NOT_STARTED})  # what a person may have to repair


class EndedAttempt(NamedTuple):
    """One row. Times are epoch seconds, 0 = not known."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which no row needs
    attempt: int
    outcome: Outcome
    instance: str = ""  # EC2 id
    cell: str = ""  # of the instance, where that is known
    task_id: str = ""  # last part of the ECS task's ARN
    launched_at: float = 0.0
    started_at: float = 0.0
    stopped_at: float = 0.0
    exit_code: int = NO_EXIT_CODE
    reason: int = 0  # row in the run's `reasons`
    gpu_mask: int = 0  # bit j = the j-th registered GPU of the instance
    pull_s: float = 0.0  # of its image, where ECS said so
    program: int = 0  # version of the program: place in the run's `programs`
    amends: bool = False  # amends the outcome, exit code and reason of an earlier row; the rest is unknown


SCHEMA: Mapping[str, tuple[str, Any]] = {
    "index": ("u4", 0),
    "attempt": ("u4", 0),
    "outcome": ("u1", 0),
    "instance": ("u4", 0),  # row in the table of instances, 0 = ""
    "task_high": ("u8", 0),  # the first 16 hex digits of the task's id, and the rest
    "task_low": ("u8", 0),
    "launched": ("u4", 0),  # tenths of a second after `origin`, at least 1; 0 = not known
    "started": ("u4", 0),
    "stopped": ("u4", 0),
    "exit_code": ("i4", NO_EXIT_CODE),
    "reason": ("u2", 0),
    "gpu_mask": ("u4", 0),
    "pulled": ("u4", 0),  # tenths of a second
    "program": ("u1", 0),
    "amends": ("u1", 0),
}
_PLACES = (("instances", "S19"), ("cells", "S20"))  # the table of instances
_ORIGIN = ("f8", 0.0)
_DEFAULTS = {name: default for name, (_, default) in SCHEMA.items()}


@dataclass(slots=True)
class EndedAttempts:
    """Rows as columns (`SCHEMA`; shape (rows,)). origin: epoch seconds from which times count. places: EC2 ids and
    their cells, indexed by the column `instance`; the first means none."""

    origin: float
    columns: Columns
    places: list[Place]

    def __len__(self) -> int:
        return len(self.columns["index"])

    def rows(self) -> Iterator[EndedAttempt]:
        names = list(SCHEMA)
        for values in zip(*(self.columns[name].tolist() for name in names), strict=True):
            row = dict(zip(names, values, strict=True))
            instance, cell = self.places[row["instance"]]
            launched, started, stopped = (self.origin + row[name] / TENTHS if row[name] else 0.0 for name in _TIMES)
            yield EndedAttempt(
                row["index"],
                row["attempt"],
                Outcome(row["outcome"]),
                instance,
                cell,
                _id_of(row["task_high"], row["task_low"]),
                launched,
                started,
                stopped,
                exit_code=row["exit_code"],
                reason=row["reason"],
                gpu_mask=row["gpu_mask"],
                pull_s=row["pulled"] / TENTHS,
                program=row["program"],
                amends=bool(row["amends"]),
            )

    def where(self, chosen: NDArray[Any]) -> EndedAttempts:
        """Some of the rows, by number or by a mask."""
        return EndedAttempts(self.origin, {name: column[chosen] for name, column in self.columns.items()}, self.places)


_TIMES = ("launched", "started", "stopped")
_FIRST_TIME = EndedAttempt._fields.index("launched_at")


def from_rows(rows: Sequence[EndedAttempt]) -> EndedAttempts:
    """Times before 1970 count as unknown. Ids other than 32 hex digits, which ECS never gives, are left out."""
    origin = float(int(min((at for row in rows for at in row[_FIRST_TIME : _FIRST_TIME + 3] if at), default=1.0)) - 1)
    places = _places({(row.instance, row.cell) for row in rows})
    number = {place: at for at, place in enumerate(places)}
    ids = [_halves_of(row.task_id) for row in rows]
    values = {
        "index": [row.index for row in rows],
        "attempt": [row.attempt for row in rows],
        "outcome": [row.outcome for row in rows],
        "instance": [number[row.instance, row.cell] for row in rows],
        "task_high": [high for high, _ in ids],
        "task_low": [low for _, low in ids],
        "launched": [_tenths(row.launched_at, origin) for row in rows],
        "started": [_tenths(row.started_at, origin) for row in rows],
        "stopped": [_tenths(row.stopped_at, origin) for row in rows],
        "exit_code": [row.exit_code for row in rows],
        "reason": [row.reason for row in rows],
        "gpu_mask": [row.gpu_mask for row in rows],
        "pulled": [round(row.pull_s * TENTHS) for row in rows],
        "program": [row.program for row in rows],
        "amends": [row.amends for row in rows],
    }
    return EndedAttempts(origin, {name: np.array(values[name], dtype=SCHEMA[name][0]) for name in SCHEMA}, places)


def _places(found: Set[Place]) -> list[Place]:
    return [NOWHERE, *sorted(found - {NOWHERE})]


def pack(rows: Sequence[EndedAttempt]) -> list[bytes]:
    """The items of one commit, each of at most ROWS_PER_ITEM rows."""
    starts = range(0, len(rows), ROWS_PER_ITEM)
    return [to_bytes(from_rows(rows[start : start + ROWS_PER_ITEM])) for start in starts]


def to_bytes(ended: EndedAttempts) -> bytes:
    named = zip(_PLACES, zip(*ended.places, strict=True), strict=True)
    extra: Columns = {name: np.array([each.encode() for each in texts], dtype) for (name, dtype), texts in named}
    extra["origin"] = np.array([ended.origin], dtype=_ORIGIN[0])
    defaults = {**_DEFAULTS, **{name: b"" for name, _ in _PLACES}, "origin": _ORIGIN[1]}
    return packing.pack(ended.columns | extra, defaults, len(ended))


def from_bytes(stored: bytes) -> EndedAttempts:
    """Raises packing.Unreadable."""
    rows, found = packing.unpack(stored)
    columns: Columns = {}
    for name, (dtype, default) in SCHEMA.items():
        columns[name] = np.full(rows, default, dtype=dtype)
        columns[name][: len(found.get(name, ()))] = found.get(name, ())
    origin = found["origin"][0] if "origin" in found else 0.0
    names = [[text.decode() for text in found[name].tolist()] if name in found else [""] for name, _ in _PLACES]
    places = [(instance, cell) for instance, cell in zip_longest(*names, fillvalue="")]
    return EndedAttempts(float(origin), columns, places)


def joined(parts: Iterable[EndedAttempts]) -> EndedAttempts:
    """The rows one after the other, with one origin and one table of instances. Amending rows are applied to the rows
    that they amend, where these are present."""
    found = [part for part in parts if len(part)]
    origin = min((part.origin for part in found if part.origin), default=0.0)
    places = _places({place for part in found for place in part.places})
    number = {place: at for at, place in enumerate(places)}
    columns = {name: [part.columns[name] for part in found] for name in SCHEMA}
    for place, part in enumerate(found):
        renumbered = np.array([number[each] for each in part.places], dtype="u4")
        columns["instance"][place] = renumbered[part.columns["instance"]]
        shift = round((part.origin - origin) * TENTHS)
        for name in _TIMES:
            tenths = part.columns[name].astype("i8")
            columns[name][place] = np.where(tenths > 0, tenths + shift, 0).astype("u4")
    whole = {
        name: np.concatenate([np.empty(0, SCHEMA[name][0]), *parts]).astype(SCHEMA[name][0])
        for name, parts in columns.items()
    }
    return _amended(EndedAttempts(origin, whole, places))


def _amended(ended: EndedAttempts) -> EndedAttempts:
    amending = np.flatnonzero(ended.columns["amends"])
    if not len(amending):
        return ended
    keys = (ended.columns["index"].astype("u8") << np.uint64(32)) | ended.columns["attempt"].astype("u8")
    plain = np.flatnonzero(ended.columns["amends"] == 0)
    order = plain[np.argsort(keys[plain], kind="stable")]
    places = np.searchsorted(keys[order], keys[amending])
    there = places < len(order)
    there[there] = keys[order[places[there]]] == keys[amending[there]]
    for name in ("outcome", "exit_code", "reason"):  # where two amend one row, the later is assigned last
        ended.columns[name][order[places[there]]] = ended.columns[name][amending[there]]
    kept = np.ones(len(ended), dtype=np.bool_)
    kept[amending[there]] = False
    return ended.where(kept)


def _tenths(at: float, origin: float) -> int:
    return max(1, round((at - origin) * TENTHS)) if at > 0 else 0


def _halves_of(task_id: str) -> tuple[int, int]:
    """0, 0 for an id that has another form."""
    try:
        return (int(task_id[:16], 16), int(task_id[16:], 16)) if len(task_id) == 32 else (0, 0)
    except ValueError:
        return 0, 0


def _id_of(high: int, low: int) -> str:
    return f"{high:016x}{low:016x}" if high or low else ""
