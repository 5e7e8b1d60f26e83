"""How are all parts of an embedded AWS kept in one folder?"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from argosy.emulator.dynamodb.service import DynamoModel
from argosy.local.keeping.aliases import keep_aliases
from argosy.local.keeping.database import Database
from argosy.local.keeping.folder import KeptFolder, readable
from argosy.local.keeping.hosts import keep_definitions, keep_hosts
from argosy.local.keeping.lines import KeptLines
from argosy.local.keeping.objects import KeptBodies
from argosy.local.keeping.table import keep_table
from argosy.local.lambdas.aliases import Aliases
from argosy.local.moto.app import MotoApp


class Kept:
    """The state in a folder, this process's until `close`. It and the methods that keep something raise
    StateRefusedError."""

    def __init__(self, path: Path, *, fresh: bool = False, complain: Callable[[str], None] = lambda _: None) -> None:
        """fresh: forget what is in it. complain: told of what is lost."""
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
        """Nothing is kept any more."""
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
        """What EC2 says of instances that the local mode before this one left behind."""
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
