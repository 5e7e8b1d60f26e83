"""Waking the controller by an asynchronous invocation, and its rest by disabling the schedule's tick."""

from __future__ import annotations

import logging
from typing import Any

from argosy.aws.errors import AWS_ERRORS, classify

log = logging.getLogger(__name__)


class AwsWake:
    """`ports.Wake` over boto3 clients of Lambda and EventBridge."""

    def __init__(self, lambda_client: Any, events: Any, function: str, rule: str) -> None:
        self._lambda, self._events, self._function, self._rule = lambda_client, events, function, rule

    def controller(self) -> None:
        """Raises what EnableRule raises. An invocation that fails only costs a minute: the tick is enabled by then."""
        self._events.enable_rule(Name=self._rule)
        try:
            self._lambda.invoke(
                FunctionName=self._function, InvocationType="Event", Payload=b'{"source": "argosy.wake"}'
            )
        except AWS_ERRORS as error:
            log.warning("the controller could not be invoked; the next tick will do it: %s", classify(error).text)

    def rest(self) -> None:
        self._events.disable_rule(Name=self._rule)

    def stay(self) -> None:
        """A refusal is logged: the calling controller is at work, and calls again before it ends."""
        try:
            self._events.enable_rule(Name=self._rule)
        except AWS_ERRORS as error:
            log.warning("the tick could not be enabled: %s", classify(error).text)
