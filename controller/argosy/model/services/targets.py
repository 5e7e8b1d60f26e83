"""What is registered with a load balancer's target group?

A target is an instance and a port of it, under the group's name from the settings. An entry is stored before the first
call is sent. It is kept as long as the target may be registered, even after its task has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MOST_TARGETS = 1_000  # of an environment: a target group's quota, unless the account's was raised


class TargetPlace(NamedTuple):
    """Where requests go: a port of an instance."""

    group: str  # as named in the settings
    instance: str  # EC2 id
    port: int

    def to_text(self) -> str:
        """As it is stored."""
        return f"{self.group} {self.instance} {self.port}"

    @classmethod
    def from_text(cls, text: str) -> TargetPlace:
        """Raises ValueError if it is damaged."""
        group, instance, port = text.split(" ")
        return cls(group, instance, int(port))


@dataclass(slots=True)
class TargetEntry:
    """The progress of a target. Epoch seconds, 0 = not yet."""

    registered_at: float = 0.0  # when AWS confirmed it; it may be registered before
    leaves_since: float = 0.0  # when it was chosen for removal
    left_at: float = 0.0  # when AWS confirmed its removal: from then on its task has `drainSeconds`


@dataclass(frozen=True, slots=True)
class TargetsRegistered:
    """The target groups have these targets of an environment."""

    environment: str
    places: tuple[TargetPlace, ...]


@dataclass(frozen=True, slots=True)
class TargetsDeregistered:
    """The target groups do not have these targets, or no longer exist."""

    environment: str
    places: tuple[TargetPlace, ...]


TargetFact = TargetsRegistered | TargetsDeregistered
