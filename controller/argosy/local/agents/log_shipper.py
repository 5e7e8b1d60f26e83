"""Log lines of many tasks, sent to the log store in few calls."""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

PERIOD_S = 0.1
MAX_EVENTS = 1_000  # of a PutLogEvents call; AWS takes 10,000 and 1 MiB
MAX_LINE = 16_384  # characters; awslogs splits longer ones too
_Line = tuple[str, str, int, str]  # group, stream, epoch milliseconds, text


class LogRefusedError(Exception):
    """There is no such group or stream; the message is what AWS says."""


class LogStore(Protocol):
    """The destination of lines."""

    def open(self, group: str, stream: str) -> None:
        """Make the stream; one that is there stays. Raises LogRefusedError if there is no group."""

    def put(self, group: str, stream: str, entries: list[dict[str, Any]]) -> None:
        """More lines, in order: {"timestamp": epoch milliseconds, "message": text}. Raises LogRefusedError."""


class LogShipper:
    """Collects lines and sends them in batches, in order, from one thread. complain: called for lost lines."""

    def __init__(self, logs: LogStore, complain: Callable[[str], None]) -> None:
        self._logs = logs
        self._complain = complain
        self._lines: queue.Queue[_Line | threading.Event | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="argosy-logs")
        self._thread.start()

    def open(self, group: str, stream: str) -> None:
        """Make the stream, as the awslogs driver does before a container starts. Raises LogRefusedError."""
        self._logs.open(group, stream)

    def put(self, group: str, stream: str, text: str) -> None:
        """Take one line; long ones are split."""
        now_ms = int(time.time() * 1000)
        for start in range(0, max(len(text), 1), MAX_LINE):
            self._lines.put((group, stream, now_ms, text[start : start + MAX_LINE]))

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything put so far is stored; False if that took too long."""
        done = threading.Event()
        self._lines.put(done)
        return done.wait(timeout_s)

    def close(self) -> None:
        """Send the remaining lines and end."""
        self._lines.put(None)
        self._thread.join()

    def _run(self) -> None:
        going_on = True
        while going_on:
            batch = [self._lines.get()]
            while len(batch) < MAX_EVENTS and not self._lines.empty():
                batch.append(self._lines.get())
            going_on = None not in batch
            self._send([item for item in batch if isinstance(item, tuple)])
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()
            if going_on and len(batch) == 1:
                time.sleep(PERIOD_S / 10)  # wait for more lines of a burst

    def _send(self, lines: list[_Line]) -> None:
        by_stream: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for group, stream, at_ms, text in lines:
            if text:  # CloudWatch Logs refuses empty messages
                by_stream[group, stream].append({"timestamp": at_ms, "message": text})
        for (group, stream), events in by_stream.items():
            try:
                self._logs.put(group, stream, events)
            except Exception as fault:  # noqa: BLE001 - without this thread no task would ever end; such as a full disk
                self._complain(f"{len(events)} log lines of {stream} lost: {fault}")
