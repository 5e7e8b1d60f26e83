"""One virtual clock for everything in a simulation: worlds, agents, messages under way."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Protocol


class Source(Protocol):
    """Something that changes with time alone."""

    def next_due(self) -> float | None:
        """Epoch seconds at which `advance` has something to do; None when nothing is under way."""

    def advance(self) -> None:
        """Do everything that is due by now."""


class Timeline:
    """A clock and the calls that are due. Single-threaded; equal times in the order of the calls."""

    def __init__(self, start: float) -> None:
        self.now = start
        self.sources: list[Source] = []
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def clock(self) -> float:
        """Epoch seconds now."""
        return self.now

    def later(self, delay_s: float, do: Callable[[], None]) -> None:
        """`do` after that time."""
        self._count += 1
        heapq.heappush(self._due, (self.now + delay_s, self._count, do))

    def run_until(self, end: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Do everything that is due until `end`, each thing at its own time; the clock then shows `end`.
        stop: whether an awaited event has come; then the clock shows when.
        """
        while (due := self._next_due()) is not None and due <= end:
            if stop():
                return
            self.now = max(self.now, due)
            for source in self.sources:
                at = source.next_due()
                if at is not None and at <= self.now:
                    source.advance()
            while self._due and self._due[0][0] <= self.now:
                heapq.heappop(self._due)[2]()
        if not stop():
            self.now = max(self.now, end)

    def run_for(self, seconds: float) -> None:
        """The same, counted from now."""
        self.run_until(self.now + seconds)

    def _next_due(self) -> float | None:
        first = self._due[0][0] if self._due else None
        for source in self.sources:
            at = source.next_due()
            if at is not None and (first is None or at < first):
                first = at
        return first
