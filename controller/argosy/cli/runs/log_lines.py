"""Which lines of logs are printed, and how? In the order of time, with each task's number when there are several."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import typer

from argosy.cli.outside_text import say
from argosy.cli.session import Session
from argosy.client.errors import error_code
from argosy.client.logs.streams import LogStream

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lines:
    """Which of them. since: epoch seconds, 0 = all; last: how many of each stream at most that match, 0 = all."""

    since: float = 0.0
    last: int = 0
    pattern: re.Pattern[str] | None = None

    def matching(self, events: Iterable[Event]) -> Iterator[Event]:
        return (event for event in events if self.pattern is None or self.pattern.search(event["message"]))


class LinePrinter:
    """Prints new lines of streams."""

    def __init__(self, session: Session, lines: Lines, labels: bool) -> None:
        self._session, self._lines, self._labels = session, lines, labels
        self.printed = 0  # lines
        self.kept: list[dict[str, Any]] = []  # of which --json makes one document

    def new_lines(self, streams: Iterable[LogStream]) -> None:
        found = [(event["timestamp"], each, event["message"]) for each in streams for event in self._events(each)]
        for timestamp, stream, message in sorted(found, key=lambda line: (line[0], line[1].run, line[1].index)):
            self._print(datetime.fromtimestamp(timestamp / 1000, UTC), stream, message)
        self.printed += len(found)

    def _print(self, at: datetime, stream: LogStream, message: str) -> None:
        if self._session.wants_json:
            of = {"runId": stream.run} if stream.run else {}
            line = {"timestamp": at.isoformat(), **of, "task": stream.index, "message": message}
            self._session.print_json_line(line) if self._session.wants_lines else self.kept.append(line)
        else:
            run = f"{stream.run} " if stream.run else ""
            label = f"[{run}task {stream.index}] " if self._labels else ""
            self._line(f"{at:%H:%M:%S} {label}{message.rstrip()}")

    def _line(self, text: str) -> None:
        if self._session.tools.is_terminal():
            say(text)
        else:
            typer.echo(text.encode("utf-8", "replace"))  # as the task wrote it, escape sequences included

    def _events(self, stream: LogStream) -> list[Event]:
        is_first, last = stream.token is None, self._lines.last
        if is_first and last and self._lines.pattern is None:
            return self._page(stream, startFromHead=False, limit=last)
        found = list(self._lines.matching(self._all(stream)))
        return found[-last:] if is_first and last else found

    def _all(self, stream: LogStream) -> Iterator[Event]:
        """The same token twice means the end."""
        token: str | None = ""
        while token != stream.token:
            token = stream.token
            yield from self._page(stream)

    def _page(self, stream: LogStream, **options: Any) -> list[Event]:
        """A stream that does not exist yet has no lines."""
        request: dict[str, Any] = {"startFromHead": True, **options}
        if stream.token:
            request["nextToken"] = stream.token
        elif self._lines.since:
            request["startTime"] = int(self._lines.since * 1000)
        try:
            page = self._session.client("logs", stream.region).get_log_events(
                logGroupName=stream.group, logStreamName=stream.name, **request
            )
        except Exception as fault:
            if error_code(fault) == "ResourceNotFoundException":
                return []
            raise
        stream.token = page["nextForwardToken"]
        return list(page["events"])
