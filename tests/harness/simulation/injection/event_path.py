"""The path of events to the controller's queue: late, twice, out of order, with broken ones, or not at all."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from argosy.emulator.sqs import SqsModel
from argosy.messages.eventbridge import MESSAGE_KINDS
from argosy.messages.urgent import rule_of
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.world.world import World

JSON = dict[str, Any]

LATEST_S = 600.0
OVERTAKEN_S = 30.0
USUAL_S = 1.0
_LISTENED_TO = frozenset((kind.source, kind.detail_type) for kind in MESSAGE_KINDS)


class EventPath:
    """A sink of the world that puts messages into the queue, as EventBridge's rules do, and has the controller called
    for
    urgent ones.
    """

    def __init__(self, world: World, queue: SqsModel, faults: Faults, call: Callable[[], None] = lambda: None) -> None:
        self._world, self._queue, self._faults, self._call = world, queue, faults, call
        self._calls = 0

    def __call__(self, message: JSON) -> None:
        if rule_of(message) and not self._faults.strikes("call-lost"):
            self._calls += 1  # each target of EventBridge has its own path: the call may arrive before the message
            self._world.later(2 * USUAL_S * self._world.share("call", self._calls), self._call)
        if (message["source"], message["detail-type"]) not in _LISTENED_TO or self._faults.strikes("events-lost"):
            return
        message = self._without_start(message)
        self._send(json.dumps(message, default=str))
        if self._faults.strikes("events-doubled"):
            self._send(json.dumps(message, default=str), late=True)
        if self._faults.strikes("poison"):
            self._send(broken(message, int(self._faults.between(0, 6))))

    def _without_start(self, message: JSON) -> JSON:
        """An agent that was cut off, or a program that ended at once, may never have reported RUNNING."""
        detail = message.get("detail", {})
        if "startedAt" not in detail or "stoppedAt" not in detail or not self._faults.strikes("no-start-time"):
            return message
        return {**message, "detail": {name: value for name, value in detail.items() if name != "startedAt"}}

    def _send(self, body: str, late: bool = False) -> None:
        delay_s = USUAL_S
        if late or self._faults.strikes("events-late"):
            delay_s = self._faults.between(0, LATEST_S)
        elif self._faults.strikes("events-reordered"):
            delay_s = self._faults.between(USUAL_S, OVERTAKEN_S)
        self._world.later(delay_s, lambda: self._put(body))

    def _put(self, body: str) -> None:
        self._queue.send_message(QueueUrl="events", MessageBody=body)


def broken(message: JSON, how: int) -> str:
    """The message with a fault: no JSON, no event, empty, wrong types, another cluster's, or extra fields."""
    if how == 0:
        return json.dumps(message, default=str)[: len(str(message)) // 2]
    if how == 1:
        return "[1, 2, 3]"
    bad = copy.deepcopy(message)
    if how == 2:
        bad["detail"] = {}
    elif how == 3:
        bad["detail"] = {name: [] for name in bad["detail"]}
    elif how == 4:
        return json.dumps(bad, default=str).replace("/argosy/", "/stranger/")
    else:
        bad["detail"] |= {"aNewField": {"deep": [None]}, "version": -7}
    return json.dumps(bad, default=str)
