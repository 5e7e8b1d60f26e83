"""A function that a thread repeats until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Periodic:
    """A thread that calls `act` every `period_s` seconds, the first time after one of them."""

    def __init__(self, name: str, period_s: float, act: Callable[[], None]) -> None:
        self._period_s, self._act = period_s, act
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End and wait."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._period_s):
            self._act()
