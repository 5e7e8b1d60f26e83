"""Log lines of an earlier local mode in moto's streams, read at first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.logs.models import LogEvent, LogStream


class KeptStream(LogStream):
    """read: its earlier lines, called once and only when they are wanted; None for a new stream."""

    def __init__(self, group: Any, name: str, read: Callable[[], list[dict[str, Any]]] | None = None) -> None:
        self._read = read
        self._events: list[LogEvent] = []
        super().__init__(group, name)

    @property
    def events(self) -> list[LogEvent]:
        """All its lines. moto adds new ones to this list."""
        read, self._read = self._read, None
        if read is not None:
            self._events = [LogEvent(line["timestamp"], line) for line in read()]
        return self._events

    @events.setter
    def events(self, events: list[LogEvent]) -> None:
        self._events = events
