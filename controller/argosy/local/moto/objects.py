"""moto's S3 objects, stored outside the process's memory so that they outlive it. Each change is stored before it is
answered.

moto keeps buckets in dictionaries and bodies in memory. The dictionaries are replaced by ones that note which keys a
request has touched; their new content is stored at the end of the request. Buckets' configuration and tags are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from moto.s3.models import FakeDeleteMarker, FakeKey, s3_backends
from moto.s3.utils import _VersionedKeyStore


@dataclass(frozen=True, slots=True)
class KeptObject:
    """One stored object. read: its body, or None if moto has it in memory."""

    bucket: str
    key: str
    about: dict[str, Any]
    size: int
    read: Callable[[], bytes]


class ObjectStore(Protocol):
    """Where objects outlive the process."""

    def buckets(self) -> list[tuple[str, str]]:
        """(name, Region) of each."""

    def add_bucket(self, name: str, region: str) -> None:
        """Harmless when repeated."""

    def drop_bucket(self, name: str) -> None:
        """With all its objects."""

    def objects(self) -> Iterable[KeptObject]:
        """All that are stored."""

    def put(self, bucket: str, key: str, about: dict[str, Any], body: bytes) -> Callable[[], bytes] | None:
        """Store or replace one. How to read its body; None if it is small enough to stay in memory."""

    def drop(self, bucket: str, key: str) -> None:
        """Harmless for missing ones."""


PARTITION = "aws"
_SAME = ("etag", "checksum_value", "checksum_type", "checksum_parts", "encryption")  # arguments and attributes of a key


class _ChangedKeys(threading.local):
    """(bucket, key) that the request of this thread has changed."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, str]] = set()


class _NotedKeys(_VersionedKeyStore):
    """The keys of one bucket."""

    def __init__(self, bucket: str, touched: _ChangedKeys) -> None:
        super().__init__()
        self._bucket, self._touched = bucket, touched

    def pop(self, key: str) -> None:  # type: ignore[override]
        self._touched.keys.add((self._bucket, key))
        super().pop(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._touched.keys.add((self._bucket, key))
        super().__setitem__(key, value)

    def setlist(self, key: str, list_: Any) -> None:
        self._touched.keys.add((self._bucket, key))
        super().setlist(key, list_)


class StoredBody:
    """Replaces the file of moto's key: its content is read from the store when needed."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read, self._at = read, 0

    def seek(self, at: int) -> int:
        self._at = at
        return at

    def read(self, size: int = -1) -> bytes:
        body = self._read()
        end = len(body) if size < 0 else self._at + size
        found, self._at = body[self._at : end], min(end, len(body))
        return found

    def close(self) -> None:
        """Nothing is open."""


class KeptObjects:
    """The buckets of one account."""

    def __init__(self, account: str, store: ObjectStore) -> None:
        self._backend: Any = s3_backends[account][PARTITION]
        self._account, self._store = account, store
        self._touched = _ChangedKeys()
        self._guard = threading.Lock()
        self._known: set[str] = set()

    def restore(self) -> None:
        """Fill moto's buckets with the stored objects."""
        for name, region in self._store.buckets():
            if name not in self._backend.buckets:
                self._backend.create_bucket(name, region)
        for stored in self._store.objects():
            bucket = self._backend.buckets[stored.bucket]
            dict.__setitem__(bucket.keys, stored.key, [self._key(stored, bucket.region_name)])
        self._note_buckets()

    @contextmanager
    def request(self) -> Iterator[None]:
        """One request to S3 that may change something."""
        self._touched.keys.clear()
        try:
            yield
        finally:
            with self._guard:
                self._note_buckets()
                for bucket, key in sorted(self._touched.keys):
                    self._save(bucket, key)

    def _note_buckets(self) -> None:
        for name, bucket in list(self._backend.buckets.items()):
            if not isinstance(bucket.keys, _NotedKeys):
                noted = _NotedKeys(name, self._touched)
                dict.update(noted, bucket.keys)
                bucket.keys = noted
                self._store.add_bucket(name, bucket.region_name)
        gone = self._known - set(self._backend.buckets)
        for name in gone:
            self._store.drop_bucket(name)
        self._known = set(self._backend.buckets)

    def _save(self, bucket: str, key: str) -> None:
        found = self._backend.buckets[bucket].keys.get(key) if bucket in self._backend.buckets else None
        if found is None or isinstance(found, FakeDeleteMarker):
            self._store.drop(bucket, key)
            return
        read = self._store.put(bucket, key, _about(found), found.value)
        if read is not None:
            with found.lock:
                found._value_buffer.close()
                found._value_buffer = StoredBody(read)

    def _key(self, stored: KeptObject, region: str) -> FakeKey:
        about = stored.about
        same = {name: about[name] for name in _SAME}
        key = FakeKey(
            stored.key,
            b"",
            self._account,
            region,
            about["storage"],
            bucket_name=stored.bucket,
            version_id="null",
            **same,
        )
        key.last_modified = datetime.fromisoformat(about["modified"])
        key.checksum_algorithm = about["checksum_algorithm"]
        key._metadata.update(about["metadata"])
        key._value_buffer.close()
        key._value_buffer = StoredBody(stored.read)  # type: ignore[assignment]
        key.contentsize = stored.size
        return key


def _about(key: FakeKey) -> dict[str, Any]:
    return {
        **{name: getattr(key, name) for name in _SAME},
        "etag": key.etag.strip('"'),
        "storage": key._storage_class,
        "modified": key.last_modified.isoformat(),
        "checksum_algorithm": key.checksum_algorithm,
        "metadata": dict(key._metadata),
    }
