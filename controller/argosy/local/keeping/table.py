"""How does the deployment's own table outlive the process? Each change is written down before it is answered."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from argosy.emulator.dynamodb.service import Change, DynamoModel, Item
from argosy.local.keeping.database import Database

LEASE = ("CONTROL", "LEASE")  # of a controller that is gone: it was a process of whoever used the folder before
_BYTES = "="  # no attribute's type: {"B": {"=": "eA=="}}


def keep_table(model: DynamoModel, database: Database) -> None:
    """Fill the model with what was kept, and keep what changes from now on."""
    for table, pk, sk, text in database.rows("SELECT tbl, pk, sk, item FROM items"):
        if (pk, sk) != LEASE:
            model.tables.setdefault(table, {}).setdefault(pk, {})[sk] = from_text(text)

    def store(changes: Sequence[Change]) -> None:
        database.write(
            ("DELETE FROM items WHERE tbl = ? AND pk = ? AND sk = ?", address)
            if item is None
            else ("INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)", (*address, to_text(item)))
            for address, item in changes
        )

    model.on_change.append(store)


def to_text(item: Item) -> str:
    """JSON, with bytes in base64."""
    return json.dumps(item, default=lambda value: {_BYTES: base64.b64encode(value).decode()})


def from_text(text: str) -> Item:
    found: Item = json.loads(text, object_hook=_with_bytes)
    return found


def _with_bytes(found: dict[str, Any]) -> Any:
    encoded = found.get(_BYTES)
    return base64.b64decode(encoded) if len(found) == 1 and isinstance(encoded, str) else found
