"""Names touched since a reader last looked, so that data derived from instances can be kept."""

from __future__ import annotations

from itertools import takewhile
from typing import Generic, TypeVar

Name = TypeVar("Name", str, bytes)


class Touched(Generic[Name]):
    """Names in the order in which they were last touched. Reading changes nothing, so any number of readers can."""

    def __init__(self) -> None:
        self.count = 0
        """How often any name was touched."""
        self._last: dict[Name, int] = {}

    def note(self, name: Name) -> None:
        """Mark a name: it has changed, or will change before the next look."""
        self.count += 1
        self._last.pop(name, None)  # a dictionary is in order of insertion
        self._last[name] = self.count

    def since(self, count: int) -> list[Name]:
        """Names touched after `count` was reached, the last first."""
        return [name for name, _ in takewhile(lambda entry: entry[1] > count, reversed(self._last.items()))]


class ChangedIds(set[str]):
    """Ids with changes that are not stored yet. `touched` continues after they are stored."""

    def __init__(self) -> None:
        super().__init__()
        self.touched = Touched[str]()

    def add(self, name: str) -> None:
        """Mark it as changed."""
        super().add(name)
        self.touched.note(name)
