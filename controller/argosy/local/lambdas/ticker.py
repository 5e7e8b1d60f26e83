"""The replacement of the one-minute schedule, which moto stores but never fires.

It ticks every second, so that a killed controller is soon replaced, and less often while the last one reported that
there is nothing to do. Urgent messages call the controller themselves.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable

from argosy.local.lambdas.clockwork import Periodic
from argosy.local.lambdas.function import LambdaFunction

QUIET_S = 10.0


class Ticker(Periodic):
    """While the rule is enabled, invokes the function every `period_s` seconds unless it is already at work, and every
    `QUIET_S` after the end of an invocation that ended quiet."""

    def __init__(self, function: LambdaFunction, is_enabled: Callable[[], bool], period_s: float) -> None:
        super().__init__("argosy-ticker", period_s, self._tick)
        self._function = function
        self._is_enabled = is_enabled
        self._busy_at = float("-inf")

    def _tick(self) -> None:
        if self._function.is_busy:
            self._busy_at = time.monotonic()
            return
        event = json.dumps({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}).encode()
        if not self._is_quiet() and self._is_enabled():
            self._busy_at = time.monotonic()
            self._function.invoke_later(event, str(uuid.uuid4()))

    def _is_quiet(self) -> bool:
        if b'"quiet"' not in self._function.latest or time.monotonic() - self._busy_at >= QUIET_S:
            return False
        return bool(json.loads(self._function.latest).get("reason") == "quiet")
