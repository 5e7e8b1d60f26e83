"""How many instances does a user want there to be, whatever work there is?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class FloorFacts(NamedTuple):
    """What the journal tells of it."""

    instances: int
    types: tuple[str, ...]
    until: float
    waiting: str


@dataclass(frozen=True, slots=True)
class Floor:
    """So many instances are bought and kept. Without any there is no floor."""

    instances: int = 0
    types: tuple[str, ...] = ()  # instances of these count, and are bought; () = of all
    until: float = 0.0  # epoch seconds; 0 = until a user says otherwise
    asked_at: float = 0.0  # epoch seconds
    waiting: str = ""  # why there are fewer; "" = there are not, or they are on their way

    def facts(self) -> FloorFacts:
        return FloorFacts(self.instances, self.types, self.until, self.waiting)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "instances": self.instances,
            "types": list(self.types),
            "until": self.until,
            "asked_at": self.asked_at,
            "waiting": self.waiting,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Floor:
        """Unknown members are ignored."""
        values = {name: record[name] for name in cls.__slots__ if name in record}
        return cls(**{**values, "types": tuple(values.get("types", ()))})


NO_FLOOR = Floor()
