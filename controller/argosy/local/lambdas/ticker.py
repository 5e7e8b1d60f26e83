"""What replaces the one-minute schedule, which moto stores but never fires?"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from argosy.local.lambdas.function import LambdaFunction
from argosy.local.lambdas.periodic import Periodic


class Ticker(Periodic):
    """While the rule is enabled, invokes the function every `period_s` seconds unless it is already at work."""

    def __init__(
        self,
        function: LambdaFunction,
        is_enabled: Callable[[], bool],
        period_s: float,
        complain: Callable[[str], None],
    ) -> None:
        super().__init__("argosy-ticker", period_s, self._tick)
        self._function = function
        self._is_enabled = is_enabled
        self._complain = complain

    def _tick(self) -> None:
        event = json.dumps({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}).encode()
        try:
            due = not self._function.is_busy and self._is_enabled()
        except (ClientError, BotoCoreError) as fault:
            self._complain(f"the tick's rule cannot be read: {fault}")
            return
        if due:
            self._function.invoke_later(event, str(uuid.uuid4()))
