"""How are environments stored and read?

A deleted environment leaves a mark with its last revision. The mark distinguishes a free name from the name of a new
environment that the controller has not taken in yet.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.model.damage import Damage, tried
from argosy.model.services.environments import Environment
from argosy.model.state import State

ENVIRONMENT = "ENVIRONMENT#"  # of the partition STATE; followed by its name
MARK_KEPT_S = 30 * 86_400.0  # of a deleted one; an older revision belongs to the deleted environment
EVERY_REVISION = 10**6
_DELETED = "deleted"  # the only member of a mark: the last revision


def environment_from(body: bytes) -> Environment | None:
    """None for a deleted environment. Raises one of `damage.FAULTS`."""
    record = json.loads(zlib.decompress(body))
    return None if _is_mark(record) else Environment.from_json(record)


def environment_records(state: State) -> Iterator[tuple[str, dict[str, Any]]]:
    """By key, the documents of changed or deleted environments."""
    for name in sorted(state.changed_environments & state.environments.keys()):
        yield ENVIRONMENT + name, state.environments[name].to_json()
    for name in sorted(state.gone_environments.keys() - state.environments.keys()):
        yield ENVIRONMENT + name, {_DELETED: state.gone_environments[name]}


def last_revision_of_deleted(body: bytes) -> int | None:
    """None for an environment that is not deleted. Raises one of `damage.FAULTS`."""
    record = json.loads(zlib.decompress(body))
    if not _is_mark(record):
        return None
    return EVERY_REVISION if record is None else int(record[_DELETED])


def _is_mark(record: Any) -> bool:
    """Earlier versions wrote null."""
    return record is None or _DELETED in record


def environments_in(items: Mapping[str, bytes]) -> Iterator[Environment | Damage]:
    """The environments of the partition STATE. An unreadable one is to be left out: its tasks continue, and nothing
    about them changes."""
    for key in sorted(items):
        if key.startswith(ENVIRONMENT):
            body, name = items[key], f"environment {key.removeprefix(ENVIRONMENT)}"
            found = tried(name, lambda body=body: environment_from(body))  # type: ignore[misc]
            if found is not None:
                yield found
