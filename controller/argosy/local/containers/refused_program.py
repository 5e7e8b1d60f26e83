"""How does a user's program end that this machine's engine cannot start? With a sentence, and not tried again."""

from __future__ import annotations

import threading
from collections.abc import Callable

from argosy.client.entering.way_in import WayIn
from argosy.local.containers.process import Ended
from argosy.model.exit_codes import WRONG_REQUEST
from argosy.runner.order import RunnerFault


class RefusedProgram:
    """A Running that has never been one."""

    def __init__(self, sentence: str, on_line: Callable[[str], None], on_end: Callable[[Ended], None]) -> None:
        def end() -> None:
            on_line(RunnerFault(WRONG_REQUEST, sentence).line)
            on_end(Ended(WRONG_REQUEST))

        self._thread = threading.Thread(target=end, name="argosy-refused")
        self._thread.start()

    def stop(self) -> None:
        """It has ended."""

    def kill(self) -> None:
        """It has ended."""

    def way_in(self) -> WayIn | None:
        """There is none."""
        return None

    def join(self, timeout_s: float) -> None:
        """Wait until all its callbacks have returned."""
        self._thread.join(timeout_s)
