"""The state of an embedded AWS in one folder: its table, definitions, instances, aliases, log lines and objects.

Each change is written before it is answered. The next local mode finds the task definitions again, but not the
instances: their tasks were processes that have ended. It reports each instance as terminated, so its tasks are retried.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

from argosy.emulator.dynamodb import Change, DynamoModel, Item
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import TaskDefinition
from argosy.local.keeping.database import Database
from argosy.local.keeping.folder import KeptFolder, readable
from argosy.local.keeping.objects import KeptBodies
from argosy.local.lambdas.aliases import Aliases, Named
from argosy.local.moto.app import MotoApp
from argosy.local.moto.logs import StreamName
from argosy.model.stored import documents

LEASE = (
    "CONTROL",
    "LEASE",
)  # of a controller that is gone: it was a process of the local mode that used the folder before
_BYTES = "="  # no attribute's type: {"B": {"=": "eA=="}}


def keep_table(model: DynamoModel, database: Database) -> None:
    """Fill the model from the database, and store its changes from now on."""
    for table, pk, sk, text in database.rows("SELECT tbl, pk, sk, item FROM items"):
        item = from_text(text)
        if (item["pk"], item["sk"]) != ({"S": pk}, {"S": sk}):
            raise ValueError(f"the item of {pk} and {sk} is another one")
        if (pk, sk) != LEASE:
            model.tables.setdefault(table, {}).setdefault(pk, {})[sk] = item
    for found in model.tables.values():
        if known := {sk: item["body"]["B"] for sk, item in found.get(documents.STATE, {}).items() if "body" in item}:
            documents.active_runs(known)  # without its root no controller could do anything

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


_ADD_HOST = "INSERT OR IGNORE INTO hosts VALUES (?, ?)"
_FORGET_HOST = "DELETE FROM hosts WHERE region = ? AND id = ?"
_ADD_DEFINITION = "INSERT OR REPLACE INTO definitions VALUES (?, ?, ?, ?)"


def keep_hosts(region: str, ec2: Any, database: Database) -> list[str]:
    """Record instances as they come and go. Ids of those that the previous local mode left behind."""

    def note(order: str, instance: Any) -> None:
        with suppress(OSError):  # the disk is full; a sweep misses an instance that is not stored
            database.write([(order, (region, instance.instance_id))])

    ec2.on_running.append(partial(note, _ADD_HOST))
    ec2.on_terminated.append(partial(note, _FORGET_HOST))
    left = [name for (name,) in database.rows("SELECT id FROM hosts WHERE region = ? ORDER BY id", (region,))]
    database.write((_FORGET_HOST, (region, name)) for name in left)
    return left


def keep_definitions(region: str, ledger: EcsLedger, database: Database) -> None:
    """Register the stored definitions, and store registrations and deregistrations from now on."""
    kept = "SELECT about FROM definitions WHERE region = ? ORDER BY family, number"
    for (text,) in database.rows(kept, (region,)):
        definition = TaskDefinition(**json.loads(text))
        ledger.definitions.setdefault(definition.family, []).append(definition)

    def store(definition: TaskDefinition) -> None:
        about = json.dumps(asdict(definition))
        database.write([(_ADD_DEFINITION, (region, definition.family, definition.revision, about))])

    ledger.on_definition.append(store)


def keep_aliases(aliases: Aliases, database: Database) -> None:
    """Create the stored ones again, and store changes from now on."""
    for function, name, text in database.rows("SELECT function, name, about FROM aliases"):
        aliases.known[function, name] = json.loads(text)

    def store(named: Named, about: dict[str, Any] | None) -> None:
        if about is None:
            database.write([("DELETE FROM aliases WHERE function = ? AND name = ?", named)])
        else:
            database.write([("INSERT OR REPLACE INTO aliases VALUES (?, ?, ?)", (*named, json.dumps(about)))])

    aliases.on_change = store


class LocalStore:
    """The state in a folder, this process's until `close`. It and the methods that store something raise
    StateRefusedError."""

    def __init__(self, path: Path, *, fresh: bool = False, complain: Callable[[str], None] = lambda _: None) -> None:
        """fresh: forget its content. complain: called for lost data."""
        self._path = path
        with readable(path), ExitStack() as parts:
            folder = KeptFolder(path, fresh=fresh)
            parts.callback(folder.close)
            self._database = Database(folder.database)
            parts.callback(self._database.close)
            self.bodies = KeptBodies(self._database, folder.objects, complain)
            self.lines = KeptLines(self._database)
            self._left: list[tuple[str, str]] = []
            self._parts = parts.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is stored any more."""
        self._parts.close()

    def keep_models(self, table: DynamoModel, cells: Mapping[str, Any]) -> None:
        """The deployment's table, and task definitions and instances of each Region."""
        with readable(self._path):
            keep_table(table, self._database)
            for region, cell in cells.items():
                keep_definitions(region, cell.ecs.ledger, self._database)
                self._left += [(region, name) for name in keep_hosts(region, cell.ec2, self._database)]

    def keep_aliases(self, aliases: Aliases) -> None:
        """Of the functions."""
        with readable(self._path):
            keep_aliases(aliases, self._database)

    def keep_objects(self, account: str, moto: MotoApp) -> None:
        """moto's S3."""
        from argosy.local.moto.objects import KeptObjects

        objects = KeptObjects(account, self.bodies)
        with readable(self._path):
            objects.restore()
        moto.objects = objects

    def farewells(self, account: str) -> Iterable[dict[str, Any]]:
        """EC2's reports about instances that the previous local mode left behind."""
        for region, name in self._left:
            yield {
                "version": "0",
                "id": str(uuid.uuid4()),
                "detail-type": "EC2 Instance State-change Notification",
                "source": "aws.ec2",
                "account": account,
                "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "region": region,
                "resources": [f"arn:aws:ec2:{region}:{account}:instance/{name}"],
                "detail": {"instance-id": name, "state": "terminated"},
            }
