"""What is recorded of one tick? All that it took in and decided, in the order in which it happened."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from argosy.model.actions import Action
from argosy.model.documents import Documents
from argosy.model.events import Event
from argosy.ports import Switches


@dataclass(slots=True)
class TickRecord:
    """Filled while the tick goes on. Times are epoch seconds, as the controller's clock gave them."""

    facts: list[tuple[Event, float]] = field(default_factory=list)  # applied, with the time they count from
    passed_at: float = 0.0
    decided_at: float = 0.0
    switches: Switches = field(default_factory=Switches)
    deletions: int = 0
    actions: Sequence[Action] = ()
    digest: str = ""  # of the documents that had changed
    version: int | None = None  # that it committed; None = it had nothing to commit
    fault: str = ""  # what our own code failed at: what came of it cannot be had again


def digest_of(puts: Documents) -> str:
    """Of the documents' contents, 16 hexadecimal digits. Each is compressed and ends with the checksum of what it holds
    (RFC 1950): taking that spares reading megabytes again, and another compressor gives the same."""
    digest = hashlib.sha256()
    for (partition, name), body in sorted(puts.items()):
        digest.update(f"{partition}\0{name}\0".encode() + body[-4:])
    return digest.hexdigest()[:16]


def switches_to_json(switches: Switches) -> list[object]:
    return [switches.deployment, dict(switches.cells)]


def switches_from_json(values: Sequence[object]) -> Switches:
    deployment, cells = values
    assert deployment is None or isinstance(deployment, str)
    assert isinstance(cells, Mapping)
    return Switches(deployment, dict(cells))
