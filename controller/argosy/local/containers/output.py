"""A program's output: lines of its log while it runs, and a file if the output is its result."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from typing import Protocol

from argosy.runner.copying import PIECE_BYTES, QUIET_MS, Sink

MAX_LINE_BYTES = 262_144  # longer lines are cut here


class PipeLines:
    """The lines of one pipe. sink: gets the unchanged bytes."""

    def __init__(self, descriptor: int, on_line: Callable[[str], None], sink: Sink | None = None) -> None:
        self.descriptor = descriptor
        self._on_line = on_line
        self._sink = sink
        self._pending = b""

    def read(self) -> bool:
        """Read what has arrived; False at the pipe's end."""
        data = os.read(self.descriptor, PIECE_BYTES)
        if self._sink is not None:
            self._sink.write(data)
        *whole, self._pending = (self._pending + data).split(b"\n")
        for line in whole:
            self._tell(line)
        if len(self._pending) > MAX_LINE_BYTES:
            self.end()
        return bool(data)

    def end(self) -> None:
        """An unfinished last line is a line, too."""
        pending, self._pending = self._pending, b""
        if pending:
            self._tell(pending)

    def _tell(self, line: bytes) -> None:
        self._on_line(line.decode("utf-8", "replace").rstrip("\r"))


class PipeOwner(Protocol):
    """The program whose pipes they are."""

    def patience_ms(self) -> int | None:
        """How long to wait for output before the program is checked; None: forever."""

    def look(self) -> None:
        """Called repeatedly while it runs."""

    def sweep_up(self) -> None:
        """Called once, when it has ended."""


def follow(pipes: Sequence[PipeLines], program: PipeOwner, exit_of: int) -> None:
    """Until the program and all pipes have ended, or the pipes are quiet after the program's end, since a daemon left
    behind

    may hold them open. One thread does all of it, because thousands of programs may be started one after the other.
    exit_of: a descriptor that can be read once the program has ended.
    """
    waiting = {each.descriptor: each for each in pipes}
    poller = select.poll()
    for descriptor in (*waiting, exit_of):
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
    is_over = False
    while waiting or not is_over:
        ready = poller.poll(QUIET_MS if is_over else program.patience_ms())
        if not ready and is_over:
            break
        for descriptor, _ in ready:
            if descriptor == exit_of:
                poller.unregister(descriptor)
                program.sweep_up()
                is_over = True
            elif not waiting[descriptor].read():
                poller.unregister(descriptor)
                waiting.pop(descriptor).end()
        program.look()
    for each in waiting.values():
        each.end()
