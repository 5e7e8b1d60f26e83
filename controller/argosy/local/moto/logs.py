"""Log lines of tasks and functions in moto's CloudWatch Logs, put there in this process: a call over HTTP takes ten
times as long.

Lines that are kept over restarts are written with each batch, and read again at the first request for them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from moto.logs.models import LogEvent, LogStream

from argosy.local.agents.log_shipper import LogRefusedError

PAGE_LINES = 10_000  # CloudWatch gives at most this number
FILE_BYTES = 1 << 20  # of a function's log, from its end


class KeptStream(LogStream):
    """read: its earlier lines, called once and only when they are needed; None for a new stream."""

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

    def put_log_events(self, log_events: list[dict[str, Any]]) -> str:
        known = max(0, len(self.events) - 1)
        said: str = super().put_log_events(log_events)
        if any(after.timestamp < before.timestamp for before, after in pairwise(self._events[known:])):
            self._events.sort(key=_time_of)
        return said

    def get_log_events(
        self, start_time: Any, end_time: Any, limit: int | None, next_token: str | None, start_from_head: Any
    ) -> tuple[list[dict[str, Any]], str | None, str | None]:
        """In time that does not grow with the stream; moto filters and sorts all of it for each page. As in CloudWatch,
        a token of a request with a start time is good for one without."""
        token = _TOKEN.fullmatch(next_token or "")
        if end_time or (next_token and not token):
            return super().get_log_events(start_time, end_time, limit or PAGE_LINES, next_token, start_from_head)
        events, most = self.events, limit or PAGE_LINES
        begin = int(token[1]) if token else bisect_left(events, start_time or 0, key=_time_of)
        if not token and not start_from_head:
            begin = max(begin, len(events) - most)
        page = events[begin : begin + most]
        return [each.to_response_dict() for each in page], f"b/{begin:056d}", f"f/{begin + len(page):056d}"


_TOKEN = re.compile(r"f/(\d+)", re.ASCII)


def _time_of(event: LogEvent) -> int:
    at: int = event.timestamp
    return at


class FileStream(LogStream):
    """The end of a file that others write, such as a function's log. Each line has the time of the last write."""

    def __init__(self, group: Any, name: str, path: Path) -> None:
        self._path = path
        super().__init__(group, name)
        self.last_ingestion_time = self.creation_time

    @property
    def events(self) -> list[LogEvent]:
        """Read again for each request. No lines while there is no file."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, self._path.stat().st_size - FILE_BYTES))
                text, at = file.read().decode("utf-8", "replace"), int(self._path.stat().st_mtime * 1000)
        except FileNotFoundError:
            return []
        return [LogEvent(at, {"timestamp": at, "message": line}) for line in text.splitlines()]

    @events.setter
    def events(self, events: list[LogEvent]) -> None:
        """moto begins a stream without lines."""


Entry = dict[str, Any]  # {"timestamp": epoch milliseconds, "message": text}


@dataclass(frozen=True, slots=True)
class StreamName:
    """One log stream of the account."""

    region: str
    group: str
    name: str


class LineStore(Protocol):
    """The place where lines outlive the process."""

    def opened(self, stream: StreamName) -> None:
        """Create this stream, still without lines. Harmless when repeated."""

    def append(self, stream: StreamName, entries: Sequence[Entry]) -> None:
        """More lines, in order."""

    def lines(self, stream: StreamName) -> list[Entry]:
        """All of them, in order."""

    def streams(self, region: str, group: str) -> list[str]:
        """Names, the oldest first."""


class NoLines:
    """No line outlives the process."""

    def opened(self, stream: StreamName) -> None:
        """Nothing to do."""

    def append(self, stream: StreamName, entries: Sequence[Entry]) -> None:
        """Nothing to do."""

    def lines(self, stream: StreamName) -> list[Entry]:
        return []

    def streams(self, region: str, group: str) -> list[str]:
        return []


class MotoLogs:
    """The logs of one account and Region."""

    def __init__(self, account: str, region: str, store: LineStore | None = None) -> None:
        from moto.logs.models import logs_backends

        self._groups: dict[str, Any] = logs_backends[account][region].groups
        self._region, self._store = region, store or NoLines()

    def restore(self, group: str) -> None:
        """The stored streams of the group. Raises LogRefusedError."""
        found = self._group(group)
        for name in self._store.streams(self._region, group):
            found.streams[name] = KeptStream(found, name, partial(self._store.lines, self._name(group, name)))

    def open(self, group: str, stream: str) -> None:
        """Make the stream; one that is there stays. Raises LogRefusedError if there is no group."""
        found = self._group(group)
        if stream not in found.streams:
            self._store.opened(self._name(group, stream))
            found.streams[stream] = KeptStream(found, stream)

    def follow(self, group: str, path: Path) -> None:
        """Make the file a stream of the group. Raises LogRefusedError."""
        found = self._group(group)
        found.streams[path.name] = FileStream(found, path.name, path)

    def put(self, group: str, stream: str, entries: list[Entry]) -> None:
        """More lines, in order. Raises LogRefusedError."""
        found = self._group(group).streams.get(stream)
        if found is None:
            raise LogRefusedError(f"ResourceNotFoundException: there is no log stream {stream} in {group}")
        found.put_log_events(entries)
        self._store.append(self._name(group, stream), entries)

    def _name(self, group: str, stream: str) -> StreamName:
        return StreamName(self._region, group, stream)

    def _group(self, name: str) -> Any:
        found = self._groups.get(name)
        if found is None:
            raise LogRefusedError(f"ResourceNotFoundException: the log group {name} does not exist")
        return found
