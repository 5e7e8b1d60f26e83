"""A controller of an invented next version, with the next state format.

While a new version is deployed, controllers of both work for a while. The new one continues from the state that this
version has stored. This version must refuse what the new one has stored, and leave it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from argosy.aws.dynamodb import DynamoStore
from argosy.model.damage import FORMAT, check_format
from argosy.model.stored import documents
from argosy.ports import Key

NEXT = FORMAT + 1
ROOT = documents.STATE, documents.ROOT


class NextVersionStore(DynamoStore):
    """The table as a controller of the next version uses it.
    Its documents are this version's under another format number, with a member that this version lacks.
    `noticed` is called when it continues from this version's state.
    """

    def __init__(self, client: Any, table: str, noticed: Callable[[], None] = lambda: None) -> None:
        super().__init__(client, table)
        self._noticed = noticed

    def read(self, key: Key) -> bytes | None:
        body = super().read(key)
        return body if body is None or key != ROOT else self._as_read(body)

    def read_partition(self, partition: str) -> dict[str, bytes]:
        items = super().read_partition(partition)
        if partition == documents.STATE and documents.ROOT in items:
            items[documents.ROOT] = self._as_read(items[documents.ROOT])
        return items

    def commit(
        self,
        version: int,
        puts: Mapping[Key, bytes],
        deletes: Iterable[Key],
        expires_at: Mapping[Key, float] | None = None,
    ) -> None:
        as_stored = {key: _as_stored(body) if key == ROOT else body for key, body in puts.items()}
        super().commit(version, as_stored, deletes, expires_at)

    def _as_read(self, body: bytes) -> bytes:
        root = documents.decode(body)
        check_format(root["format"], newest=NEXT)
        if root["format"] < NEXT:
            self._noticed()
        return documents.encode({**root, "format": FORMAT})


def _as_stored(body: bytes) -> bytes:
    return documents.encode({**documents.decode(body), "format": NEXT, "unknownToday": True})
