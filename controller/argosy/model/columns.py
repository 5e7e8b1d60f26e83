"""How does a table of columns grow, track its changes and become bytes?

Memory format, disk format and kernel input are one thing (DESIGN D2): numpy columns, stored in chunks of rows. Only
touched chunks are written. A chunk that was never touched is not stored and reads as the schema's defaults.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from itertools import takewhile
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from argosy.model import packing
from argosy.model.damage import CorruptChunk

Name = TypeVar("Name", str, bytes)


class TouchOrder(Generic[Name]):
    """Names in the order in which they were last touched. Reading changes nothing, so any number of readers can
    follow."""

    def __init__(self) -> None:
        self.count = 0
        """How often any name was touched."""
        self._last: dict[Name, int] = {}

    def note(self, name: Name) -> None:
        """Mark a name: it has changed, or will change before the marks are read next."""
        self.count += 1
        self._last.pop(name, None)  # a dictionary is in order of insertion
        self._last[name] = self.count

    def since(self, count: int) -> list[Name]:
        """Names touched after `count` was reached, the last first."""
        return [name for name, _ in takewhile(lambda entry: entry[1] > count, reversed(self._last.items()))]


class ChangedIds(set[str]):
    """Ids with changes that are not stored yet. `touched` continues after they are stored."""

    def __init__(self) -> None:
        super().__init__()
        self.touched = TouchOrder[str]()

    def add(self, name: str) -> None:
        """Mark it as changed."""
        super().add(name)
        self.touched.note(name)


GROWTH_BYTES = 8_000  # what one tick may add to a chunk: a few hundred rows that compress badly


class Differences(NamedTuple):
    """Rows whose watched columns differ from the last commit, ascending, and their committed values."""

    rows: NDArray[np.int64]
    old: Mapping[str, NDArray[Any]]
    new: Mapping[str, NDArray[Any]]


class ColumnTable:
    """Equal-length columns by name, with the numbers of the chunks touched since the last commit.

    `schema` maps a column's name to its dtype and default; `chunk_rows` rows make one stored chunk. The `watched`
    columns of a touched chunk are kept as they were committed, so that the commit can report its changes.
    """

    schema: ClassVar[Mapping[str, tuple[str, Any]]] = {}
    watched: ClassVar[tuple[str, ...]] = ()
    chunk_rows = 8192

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.columns: dict[str, NDArray[Any]] = {
            name: np.full(rows, default, dtype=dtype) for name, (dtype, default) in self.schema.items()
        }
        self.writes = 0  # rows written since the last commit, counted as often as they were
        self._before: dict[int, dict[str, NDArray[Any]]] = {}  # by touched chunk: watched columns as committed
        self.packed_bytes: dict[int, int] = {}  # size of each chunk when it was last stored or read

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def set(self, row: int, **values: Any) -> None:
        """Write one row's values and mark its chunk."""
        self.touch(row // self.chunk_rows)
        self.writes += 1
        for name, value in values.items():
            self.columns[name][row] = value

    def set_many(self, rows: NDArray[np.int64], **values: Any) -> None:
        for chunk in np.unique(rows // self.chunk_rows).tolist():
            self.touch(chunk)
        self.writes += len(rows)
        for name, value in values.items():
            self.columns[name][rows] = value

    @property
    def dirty(self) -> KeysView[int]:
        """The chunks touched since the last commit."""
        return self._before.keys()

    def touch(self, chunk: int) -> None:
        """Mark the chunk to be stored with the next commit. Call this before writing its rows."""
        if chunk not in self._before:
            part = slice(chunk * self.chunk_rows, (chunk + 1) * self.chunk_rows)
            self._before[chunk] = {name: self.columns[name][part].copy() for name in self.watched}

    def committed(self) -> None:
        """Mark every touched chunk as stored."""
        self._before.clear()
        self.writes = 0

    def differences(self) -> Differences:
        """The changes of the next commit in the watched columns."""
        if not self._before:
            nothing = {name: self.columns[name][:0] for name in self.watched}
            return Differences(np.zeros(0, dtype=np.int64), nothing, nothing)
        found = [self._differences_of(chunk) for chunk in sorted(self._before)]
        rows, old, new = zip(*found, strict=True)
        joined = [{name: np.concatenate([each[name] for each in side]) for name in self.watched} for side in (old, new)]
        return Differences(np.concatenate(rows), *joined)

    def _differences_of(self, chunk: int) -> Differences:
        part = slice(chunk * self.chunk_rows, (chunk + 1) * self.chunk_rows)
        new = {name: self.columns[name][part] for name in self.watched}
        old = {name: self._grown(name, column, new[name]) for name, column in self._before[chunk].items()}
        differs = np.zeros(len(self.columns[self.watched[0]][part]), dtype=np.bool_)
        for name in self.watched:
            differs |= old[name] != new[name]
        rows = np.flatnonzero(differs)
        sides = [{name: column[rows] for name, column in side.items()} for side in (old, new)]
        return Differences(rows + part.start, *sides)

    def _grown(self, name: str, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        """`old` with defaults for the rows that were added to the chunk since."""
        more = np.full(len(new) - len(old), self.schema[name][1], dtype=old.dtype)
        return np.concatenate([old, more]) if len(more) else old

    def grow(self, rows: int) -> None:
        """Add rows at the end, filled with the defaults."""
        for name, (dtype, default) in self.schema.items():
            self.columns[name] = np.concatenate([self.columns[name], np.full(rows, default, dtype=dtype)])
        self.rows += rows

    def grow_to(self, rows: int) -> None:
        """Grow to at least this many rows."""
        if rows > self.rows:
            self.touch((self.rows - 1) // self.chunk_rows if self.rows else 0)
            self.grow(rows - self.rows)

    def pack(self, chunk: int) -> bytes:
        """The chunk in its stored form (`packing`)."""
        part = slice(chunk * self.chunk_rows, min((chunk + 1) * self.chunk_rows, self.rows))
        columns = {name: column[part] for name, column in self.columns.items()}
        body = packing.pack(columns, self._defaults(), part.stop - part.start)
        self.packed_bytes[chunk] = len(body)
        return body

    @property
    def dirty_bytes(self) -> int:
        """Estimated size of the touched chunks when stored."""
        return sum(self.packed_bytes.get(chunk, 0) + GROWTH_BYTES for chunk in self._before)

    def unpack(self, chunk: int, body: bytes) -> None:
        """Read a stored chunk into place. Columns that the chunk lacks get their defaults, and so do rows
        after its end: it may have been written before the table grew.

        Raises CorruptChunk.
        """
        start = chunk * self.chunk_rows
        end = min(start + self.chunk_rows, self.rows)
        try:
            rows, columns = packing.unpack(body)
            if start + rows > end:
                raise packing.Unreadable(f"{rows} rows where {end - start} have room")
        except packing.Unreadable as fault:
            raise CorruptChunk(f"chunk {chunk} of {type(self).__name__}: {fault}") from fault
        self.packed_bytes[chunk] = len(body)
        for name, default in self._defaults().items():
            column, values = self.columns[name], columns.get(name, ())
            try:
                column[start : start + len(values)] = values
            except ValueError as fault:
                raise CorruptChunk(f"chunk {chunk} of {type(self).__name__}: column {name}: {fault}") from fault
            column[start + len(values) : end] = default

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: default for name, (_, default) in cls.schema.items()}
