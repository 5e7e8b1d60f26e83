"""The bodies of S3 objects: small ones in the database, others in files of their own next to it.

A file is complete before a row names it, and is removed after the last row that does. Files that a kill left without a
row are removed at the next start.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from argosy.local.keeping.database import Database
from argosy.local.moto.objects import KeptObject

SMALL_BYTES = 16_384
_SIZE = "bytes"  # besides what S3 knows of an object


class KeptBodies:
    """A `local.moto.objects.ObjectStore` in the database and a folder."""

    def __init__(self, database: Database, folder: Path, complain: Callable[[str], None] = lambda _: None) -> None:
        """complain: called for lost data."""
        self._database, self._folder, self._complain = database, folder, complain
        folder.mkdir(mode=0o700, exist_ok=True)
        named = {file for (file,) in database.rows("SELECT file FROM objects WHERE file IS NOT NULL")}
        for path in folder.iterdir():
            if path.name not in named:
                path.unlink()

    def buckets(self) -> list[tuple[str, str]]:
        """See ObjectStore."""
        return [(name, region) for name, region in self._database.rows("SELECT name, region FROM buckets")]

    def add_bucket(self, name: str, region: str) -> None:
        """See ObjectStore."""
        self._database.write([("INSERT OR IGNORE INTO buckets VALUES (?, ?)", (name, region))])

    def drop_bucket(self, name: str) -> None:
        """See ObjectStore."""
        files = self._database.rows("SELECT file FROM objects WHERE bucket = ?", (name,))
        orders = ("DELETE FROM objects WHERE bucket = ?", "DELETE FROM buckets WHERE name = ?")
        self._database.write((order, (name,)) for order in orders)
        self._remove(files)

    def objects(self) -> Iterable[KeptObject]:
        """See ObjectStore. An object whose body is gone or cut is dropped and reported to `complain`."""
        asked = "SELECT bucket, name, about, length(body), file FROM objects"
        for bucket, key, text, size, file in self._database.rows(asked):
            about = json.loads(text)
            read = partial(self._body, bucket, key) if file is None else (self._folder / file).read_bytes
            length = _size_of(self._folder / file) if file else size
            if length is None or length != about.pop(_SIZE, length):
                self._complain(f"s3://{bucket}/{key} is lost: its body in {self._folder} is no longer complete")
                self.drop(bucket, key)
            else:
                yield KeptObject(bucket, key, about, length, read)

    def put(self, bucket: str, key: str, about: dict[str, Any], body: bytes) -> Callable[[], bytes] | None:
        """See ObjectStore."""
        before = self._files(bucket, key)
        path = None if len(body) <= SMALL_BYTES else self._folder / uuid.uuid4().hex
        row = (
            bucket,
            key,
            json.dumps({**about, _SIZE: len(body)}),
            body if path is None else None,
            path.name if path else None,
        )
        try:
            if path is not None:
                path.touch(0o600)
                path.write_bytes(body)
            self._database.write([("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", row)])
        except BaseException as fault:  # a full disk has to get its space back
            if path is not None:
                path.unlink(missing_ok=True)
            if isinstance(fault, OSError) and fault.filename is None:  # of a write, which has no name
                fault.filename = str(self._folder)
            raise
        self._remove(before)
        return path.read_bytes if path else None

    def drop(self, bucket: str, key: str) -> None:
        """See ObjectStore."""
        before = self._files(bucket, key)
        self._database.write([("DELETE FROM objects WHERE bucket = ? AND name = ?", (bucket, key))])
        self._remove(before)

    def _body(self, bucket: str, key: str) -> bytes:
        found = self._database.rows("SELECT body FROM objects WHERE bucket = ? AND name = ?", (bucket, key))
        return bytes(found[0][0]) if found else b""

    def _files(self, bucket: str, key: str) -> list[tuple[Any, ...]]:
        return self._database.rows("SELECT file FROM objects WHERE bucket = ? AND name = ?", (bucket, key))

    def _remove(self, files: list[tuple[Any, ...]]) -> None:
        for (file,) in files:
            if file is not None:
                (self._folder / file).unlink(missing_ok=True)


def _size_of(path: Path) -> int | None:
    """Bytes; None if there is no such file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
