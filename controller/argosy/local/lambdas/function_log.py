"""The log file of a function, written while there is room: a full disk must not end the function."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import IO

_CHUNK_BYTES = 65_536


class FunctionLog:
    """One file for all processes of a function. Says once, on standard error, when it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_lost = False

    def follow(self, output: IO[bytes]) -> threading.Thread:
        """Copies a process's output until it ends, on a new thread."""
        thread = threading.Thread(target=self._copy, args=(output,), name=f"argosy-log-{self.path.stem}")
        thread.start()
        return thread

    def _copy(self, output: IO[bytes]) -> None:
        with output:
            while data := output.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
                self._write(data)

    def _write(self, data: bytes) -> None:
        try:
            with self.path.open("ab", buffering=0) as file:
                file.write(data)
        except OSError as fault:
            if not self._is_lost:
                print(f"embedded AWS: lines of {self.path} are lost: {fault.strerror}", file=sys.stderr)
            self._is_lost = True
        else:
            self._is_lost = False
