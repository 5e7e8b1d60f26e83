"""One SQLite file with a write-ahead log, in which every answered change survives a kill.

A change survives the process's end, however that happens, once `write` has returned; a half-written change never shows.
A crash of the machine may lose the last writes, but nothing before them.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (tbl TEXT, pk TEXT, sk TEXT, item TEXT, PRIMARY KEY (tbl, pk, sk)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
    id INTEGER PRIMARY KEY, region TEXT, grp TEXT, name TEXT, UNIQUE (region, grp, name));
CREATE TABLE IF NOT EXISTS lines (seq INTEGER PRIMARY KEY, stream INTEGER, at_ms INTEGER, text TEXT);
CREATE INDEX IF NOT EXISTS lines_of_stream ON lines (stream, seq);
CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, region TEXT);
CREATE TABLE IF NOT EXISTS objects (
    bucket TEXT, name TEXT, about TEXT, body BLOB, file TEXT, PRIMARY KEY (bucket, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS definitions (
    region TEXT, family TEXT, number INTEGER, about TEXT, PRIMARY KEY (region, family, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS aliases (function TEXT, name TEXT, about TEXT, PRIMARY KEY (function, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hosts (region TEXT, id TEXT, PRIMARY KEY (region, id)) WITHOUT ROWID;
"""
Statement = tuple[str, Sequence[Any]]


class Database:
    """The file, opened by this process. Thread-safe. Raises sqlite3.Error, and OSError if the disk is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        path.touch(0o600)
        path.chmod(0o600)  # an earlier version left it readable; SQLite gives its other files the same mode
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_SCHEMA)

    def write(self, statements: Iterable[Statement]) -> None:
        """All of them or none."""
        with self._guard:
            try:
                self._write(statements)
            except sqlite3.Error as fault:
                if getattr(fault, "sqlite_errorcode", None) != sqlite3.SQLITE_FULL:
                    raise
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path)) from fault

    def _write(self, statements: Iterable[Statement]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for text, values in statements:
                self._connection.execute(text, values)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # a full disk has ended it
                self._connection.execute("ROLLBACK")
            raise

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""
        with self._guard:
            return self._connection.execute(text, values).fetchall()

    def close(self) -> None:
        """Nothing is written any more."""
        with self._guard:
            self._connection.close()
