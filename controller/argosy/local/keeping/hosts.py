"""Which instances, and which task definitions, does the deployment know from the local mode before this one?

Definitions are there again. Instances are not: their tasks were processes of a machine that has let go of them. EC2
would say so of an instance that has failed; here each is said to have been terminated, and its tasks are tried again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import TaskDefinition
from argosy.local.keeping.database import Database

_ADD_HOST = "INSERT OR IGNORE INTO hosts VALUES (?, ?)"
_FORGET_HOST = "DELETE FROM hosts WHERE region = ? AND id = ?"
_ADD_DEFINITION = "INSERT OR REPLACE INTO definitions VALUES (?, ?, ?, ?)"


def keep_hosts(region: str, ec2: Any, database: Database) -> list[str]:
    """Note instances as they come and go. Ids of those that the local mode before this one left behind."""

    def note(order: str, instance: Any) -> None:
        with suppress(OSError):  # the disk is full; whom the next one does not know, its controller's sweep misses
            database.write([(order, (region, instance.instance_id))])

    ec2.on_running.append(partial(note, _ADD_HOST))
    ec2.on_terminated.append(partial(note, _FORGET_HOST))
    left = [name for (name,) in database.rows("SELECT id FROM hosts WHERE region = ? ORDER BY id", (region,))]
    database.write((_FORGET_HOST, (region, name)) for name in left)
    return left


def keep_definitions(region: str, ledger: EcsLedger, database: Database) -> None:
    """Register what was kept, and keep what is registered and deregistered from now on."""
    kept = "SELECT about FROM definitions WHERE region = ? ORDER BY family, number"
    for (text,) in database.rows(kept, (region,)):
        definition = TaskDefinition(**json.loads(text))
        ledger.definitions.setdefault(definition.family, []).append(definition)

    def store(definition: TaskDefinition) -> None:
        about = json.dumps(asdict(definition))
        database.write([(_ADD_DEFINITION, (region, definition.family, definition.revision, about))])

    ledger.on_definition.append(store)
