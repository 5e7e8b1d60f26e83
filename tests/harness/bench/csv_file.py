"""A CSV file with a header, read with the place of every fault. Faults are collected and reported together."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from argosy.client.errors import InvalidInput

_MAX_FAULTS: Final = 20  # shown for one file
_MAX_DIGITS: Final = 30  # digits of a whole number: longer ones are not converted


@dataclass(slots=True)
class CsvFile:
    """One file and its faults so far. `columns`: the required columns."""

    path: Path
    columns: Sequence[str]
    _faults: list[str] = field(default_factory=list)
    _further: int = 0
    _ids: set[str] = field(default_factory=set)

    def records(self) -> Iterator[Record]:
        """Every record. InvalidInput if the file is not a CSV with these columns, or at the end with all faults."""
        try:
            with self.path.open(newline="", encoding="utf-8-sig") as file:
                reader = csv.reader(file, strict=True)
                header = self._header(next(reader, None))
                for row in filter(None, reader):
                    if len(row) != len(header):
                        message = f"{len(row)} cells, the header has {len(header)}"
                        raise InvalidInput(f"{self.path}:{reader.line_num}: {message}.")
                    yield Record(self, reader.line_num, dict(zip(header, map(str.strip, row), strict=True)))
        except OSError as error:
            raise InvalidInput(f"{self.path}: {error.strerror or error}.") from None
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidInput(f"{self.path}: is not a CSV in UTF-8: {error}.") from None
        if self._faults:
            more = [f"and {self._further} more"] if self._further else []
            raise InvalidInput(self._faults[0], details=self._faults[1:] + more)

    def fault(self, line: int, what: str) -> None:
        """Record a fault, without its full stop."""
        if len(self._faults) < _MAX_FAULTS:
            self._faults.append(f"{self.path}:{line}: {what}.")
        else:
            self._further += 1

    def is_known(self, text: str) -> bool:
        """Whether the id has occurred before. Remembers it."""
        known = text in self._ids
        self._ids.add(text)
        return known

    def _header(self, row: list[str] | None) -> list[str]:
        wanted = "columns: " + ",".join(self.columns)
        if not row:
            raise InvalidInput(f"{self.path}: is empty.", next_step=f"its first line names the {wanted}")
        names = [name.strip() for name in row]
        if missing := [name for name in self.columns if name not in names]:
            raise InvalidInput(f"{self.path}:1: has no column {', '.join(missing)}.", next_step=wanted)
        if len(set(names)) < len(names):
            raise InvalidInput(f"{self.path}:1: names a column twice.")
        return names


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file. A wrong cell is recorded as a fault, and a harmless value is returned in its place."""

    file: CsvFile
    line: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """The cell; "" if the file has no such column."""
        return self.cells.get(column, "")

    def filled(self, column: str) -> str:
        """The cell, which must not be empty."""
        text = self.cells[column]
        if not text:
            self.fault(f"{column} is empty")
        return text

    def new_id(self, column: str) -> str:
        """The cell, which must be neither empty nor in an earlier record."""
        text = self.filled(column)
        if text and self.file.is_known(text):
            self.fault(f"{column} {text[:80]!r} is listed twice")
        return text

    def whole(self, column: str, most: int) -> int:
        """A whole number from 0 to `most`."""
        text = self.cells[column]
        if not (text.isascii() and text.isdecimal()):
            self.fault(f"{column} {text[:40]!r} is not a whole number from 0 up")
        elif len(text) > _MAX_DIGITS or int(text) > most:
            self.fault(f"{column} is above {most}")
        else:
            return int(text)
        return 0

    def number(self, column: str, least: float, most: float) -> float:
        """A finite number from `least` to `most`."""
        text = self.cells[column]
        try:
            number = float(text) if text else math.nan
        except ValueError:
            number = math.nan
        if math.isfinite(number) and least <= number <= most:
            return number
        limits = f"from {least:g} up" if math.isinf(most) else f"from {least:g} to {most:g}"
        found = f"{text[:40]!r} is not" if text else "is missing; it must be"
        self.fault(f"{column} {found} a number {limits}")
        return 1.0

    def fault(self, what: str) -> None:
        """Record the fault of this record, without a full stop."""
        self.file.fault(self.line, what)
