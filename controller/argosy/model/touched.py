"""Which names were touched since somebody last looked? So that what is derived of instances can be kept."""

from __future__ import annotations

from itertools import takewhile
from typing import Generic, TypeVar

Name = TypeVar("Name", str, bytes)


class Touched(Generic[Name]):
    """Names in the order in which they were last touched. Looking changes nothing, so any number of readers can."""

    def __init__(self) -> None:
        self.count = 0
        """How often anything was touched."""
        self._last: dict[Name, int] = {}

    def note(self, name: Name) -> None:
        """It is, or will be before the next look, no longer what it was."""
        self.count += 1
        self._last.pop(name, None)  # a dictionary is in order of insertion
        self._last[name] = self.count

    def since(self, count: int) -> list[Name]:
        """What was touched after `count` had been reached, the last first."""
        return [name for name, _ in takewhile(lambda entry: entry[1] > count, reversed(self._last.items()))]


class ChangedIds(set[str]):
    """Ids of what has changed and is not stored yet. `touched` goes on after they are stored."""

    def __init__(self) -> None:
        super().__init__()
        self.touched = Touched[str]()

    def add(self, name: str) -> None:
        """Mark it as changed."""
        super().add(name)
        self.touched.note(name)
