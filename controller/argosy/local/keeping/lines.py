"""Which log lines of tasks were kept? A `local.moto.logs.LineStore` in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.local.keeping.database import Database
from argosy.local.moto.logs import StreamName

_STREAM = "(SELECT id FROM streams WHERE region = ? AND grp = ? AND name = ?)"


class KeptLines:
    """See LineStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def opened(self, stream: StreamName) -> None:
        """See LineStore."""
        add = "INSERT OR IGNORE INTO streams (region, grp, name) VALUES (?, ?, ?)"
        self._database.write([(add, _values(stream))])

    def append(self, stream: StreamName, entries: Sequence[dict[str, Any]]) -> None:
        """See LineStore."""
        add = f"INSERT INTO lines (stream, at_ms, text) VALUES ({_STREAM}, ?, ?)"
        name = _values(stream)
        self._database.write((add, (*name, entry["timestamp"], entry["message"])) for entry in entries)

    def lines(self, stream: StreamName) -> list[dict[str, Any]]:
        """See LineStore."""
        select = f"SELECT at_ms, text FROM lines WHERE stream = {_STREAM} ORDER BY seq"
        return [{"timestamp": at_ms, "message": text} for at_ms, text in self._database.rows(select, _values(stream))]

    def streams(self, region: str, group: str) -> list[str]:
        """See LineStore."""
        select = "SELECT name FROM streams WHERE region = ? AND grp = ? ORDER BY id"
        return [name for (name,) in self._database.rows(select, (region, group))]


def _values(stream: StreamName) -> tuple[str, str, str]:
    return stream.region, stream.group, stream.name
