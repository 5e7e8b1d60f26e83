"""What replaces the one-minute schedule, which moto stores but never fires?"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from argosy.local.lambdas.function import LambdaFunction


class Ticker:
    """While the rule is enabled, invokes the function every `period_s` seconds unless it is already at work."""

    def __init__(
        self,
        function: LambdaFunction,
        is_enabled: Callable[[], bool],
        period_s: float,
        complain: Callable[[str], None],
    ) -> None:
        self._function = function
        self._is_enabled = is_enabled
        self._period_s = period_s
        self._complain = complain
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="argosy-ticker")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End and wait."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        event = json.dumps({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}).encode()
        while not self._ended.wait(self._period_s):
            try:
                due = not self._function.is_busy and self._is_enabled()
            except (ClientError, BotoCoreError) as fault:
                self._complain(f"the tick's rule cannot be read: {fault}")
                continue
            if due:
                self._function.invoke_later(event, str(uuid.uuid4()))
