"""Which reading of AWS's contracts has the controller seen to hold? (docs/maintainers/notes/readings.md)

Example: EC2 accepts 5 as the target of a fleet whose listings showed 0. A listing that shows the fleet as `modifying`
with 0 decides that `old-target-while-modifying` holds; one that shows 5 decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ONLY_ACTIVE = "modify-only-active"
OLD_TARGET = "old-target-while-modifying"
DELETED_OVER_LIMIT = "fleet-deleted-over-limit"
ROOM_BACK_EARLY = "room-back-at-desired-stopped"
PULL_SURVIVES = "pull-survives-stop"
DOCKER_BLOCKS = "docker-restart-blocks"
PULL_TOLD = "pull-told-at-once"


class Sighting(NamedTuple):
    """What decided a reading."""

    holds: bool
    saw: str
    at: float  # epoch seconds


@dataclass(slots=True)
class Readings:
    """seen: by the name of a reading, the first sighting of its latest answer. The other members are what a later fact
    may decide with; they are not stored."""

    seen: dict[str, Sighting] = field(default_factory=dict)
    # by fleet: the target it showed at rest, the last one that EC2 has accepted since, and when it exceeded a quota
    shown: dict[str, int] = field(default_factory=dict, compare=False)
    accepted: dict[str, int] = field(default_factory=dict, compare=False)
    over_quota: dict[str, float] = field(default_factory=dict, compare=False)
    refused: set[str] = field(default_factory=set, compare=False)  # fleets that refused a target in their state
    # by instance and image: seconds of a pull that had not ended when its task was stopped
    cut_pulls: dict[tuple[str, str], float] = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, list[Any]]:
        return {name: list(sighting) for name, sighting in self.seen.items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, list[Any]]) -> Readings:
        return cls({name: Sighting(*sighting) for name, sighting in stored.items()})
