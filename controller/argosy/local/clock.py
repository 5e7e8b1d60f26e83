"""Who lets time do its work in the EC2 model?"""

from __future__ import annotations

import threading
import traceback
from typing import Any

PERIOD_S = 0.05  # fleets and notices react this fast


class Clock:
    """Calls `advance` of a model on the real clock."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="argosy-clock")
        self._thread.start()

    def close(self) -> None:
        """End and wait."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            try:
                self._model.advance()
            except Exception:  # noqa: BLE001 - time must go on; the fault is ours and shown
                traceback.print_exc()
