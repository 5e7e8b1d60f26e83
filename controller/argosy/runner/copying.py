"""A program's output, copied while it runs, in pieces, to the log and to the file that becomes its result."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

QUIET_MS = 300  # a process left behind may hold the pipe open: after the program's end, a pause this long is its end
PIECE_BYTES = 65_536


class Sink:
    """Where bytes go. `write` never fails: the first refusal is kept in `fault`, and the rest is dropped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.fault: OSError | None = None

    def write(self, data: bytes) -> None:
        """All of it."""
        rest = memoryview(data)
        while rest and self.fault is None:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except OSError as fault:
                self.fault = fault


def copy_pieces(descriptor: int, into: Callable[[bytes], None], is_over: Callable[[], bool]) -> None:
    """Until the pipe ends, or is quiet after the program's end."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN | select.POLLHUP)
    while True:
        if not poller.poll(QUIET_MS):
            if is_over():
                return
            continue
        data = os.read(descriptor, PIECE_BYTES)
        if not data:
            return
        into(data)
