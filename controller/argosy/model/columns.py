"""How does a table of columns grow, know what changed, and become bytes and columns again?

Memory format, disk format and kernel input are one thing (DESIGN D2): numpy columns, stored in chunks of rows of which
only the touched ones are written. A chunk that was never touched is not stored: it reads as the schema's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argosy.model import packing

GROWTH_BYTES = 8_000  # what one tick may add to a chunk: a few hundred rows that compress badly


class CorruptChunk(ValueError):
    """A stored chunk whose checksum, columns or length are wrong."""


class ColumnTable:
    """Equal-length columns by name, with the numbers of the chunks touched since the last commit.

    `schema` maps a column's name to its dtype and default; `chunk_rows` rows make one stored chunk.
    """

    schema: ClassVar[Mapping[str, tuple[str, Any]]] = {}
    chunk_rows = 8192

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.columns: dict[str, NDArray[Any]] = {
            name: np.full(rows, default, dtype=dtype) for name, (dtype, default) in self.schema.items()
        }
        self.dirty: set[int] = set()
        self.packed_bytes: dict[int, int] = {}  # size of each chunk when it was last stored or read

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def set(self, row: int, **values: Any) -> None:
        """Write one row's values and mark its chunk."""
        for name, value in values.items():
            self.columns[name][row] = value
        self.dirty.add(row // self.chunk_rows)

    def set_many(self, rows: NDArray[np.int64], **values: Any) -> None:
        for name, value in values.items():
            self.columns[name][rows] = value
        self.dirty.update(np.unique(rows // self.chunk_rows).tolist())

    def grow(self, rows: int) -> None:
        """Add rows at the end, filled with the defaults."""
        for name, (dtype, default) in self.schema.items():
            self.columns[name] = np.concatenate([self.columns[name], np.full(rows, default, dtype=dtype)])
        self.rows += rows

    def pack(self, chunk: int) -> bytes:
        """The chunk as it is stored (`packing`)."""
        part = slice(chunk * self.chunk_rows, min((chunk + 1) * self.chunk_rows, self.rows))
        columns = {name: column[part] for name, column in self.columns.items()}
        body = packing.pack(columns, self._defaults(), part.stop - part.start)
        self.packed_bytes[chunk] = len(body)
        return body

    @property
    def dirty_bytes(self) -> int:
        """About what the touched chunks will take when stored."""
        return sum(self.packed_bytes.get(chunk, 0) + GROWTH_BYTES for chunk in self.dirty)

    def unpack(self, chunk: int, body: bytes) -> None:
        """Read a stored chunk into place. Columns that the chunk does not know get their defaults, and so do rows
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
