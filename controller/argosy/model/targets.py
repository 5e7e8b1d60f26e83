"""What is registered with a load balancer's target group? An instance and a port of it, under the group's name.

The name is one of the settings. An entry is stored before the first call is sent, so that what may be registered is
known as long as it may be, also when its task has ended meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MOST_TARGETS = 1_000  # of an environment: what a target group takes, unless the account's quota was raised


class TargetPlace(NamedTuple):
    """Where requests go: a port of an instance."""

    group: str  # as the settings name it
    instance: str  # EC2 id
    port: int

    def to_text(self) -> str:
        """As it is stored."""
        return f"{self.group} {self.instance} {self.port}"

    @classmethod
    def from_text(cls, text: str) -> TargetPlace:
        """Raises ValueError where it is damaged."""
        group, instance, port = text.split(" ")
        return cls(group, instance, int(port))


@dataclass(slots=True)
class TargetEntry:
    """How far a place has come. Epoch seconds, 0 = not yet."""

    registered_at: float = 0.0  # when AWS had said so; until then it may be
    leaves_since: float = 0.0  # it is to be taken out
    left_at: float = 0.0  # when AWS had said that it is out: from then on its task is given `drainSeconds`


@dataclass(frozen=True, slots=True)
class TargetsRegistered:
    """The target groups have these targets of an environment."""

    environment: str
    places: tuple[TargetPlace, ...]


@dataclass(frozen=True, slots=True)
class TargetsDeregistered:
    """The target groups do not have them, or are gone themselves."""

    environment: str
    places: tuple[TargetPlace, ...]


TargetFact = TargetsRegistered | TargetsDeregistered
