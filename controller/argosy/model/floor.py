"""The floor: the least number of instances that a user wants to keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class FloorFacts(NamedTuple):
    """The facts of the floor in the journal."""

    instances: int
    types: tuple[str, ...]
    until: float
    waiting: str


@dataclass(frozen=True, slots=True)
class Floor:
    """The number of instances that are bought and kept, with or without work. 0 = there is no floor."""

    instances: int = 0
    types: tuple[str, ...] = ()  # only these count and are bought; () = all
    until: float = 0.0  # epoch seconds; 0 = until another request
    asked_at: float = 0.0  # epoch seconds
    waiting: str = ""  # why there are fewer; "" = there are enough, or they are incoming

    def facts(self) -> FloorFacts:
        return FloorFacts(self.instances, self.types, self.until, self.waiting)

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
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
