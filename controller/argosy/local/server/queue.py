"""SQS requests about the deployment's own queue, answered by the emulator's model, as in the simulation.

moto builds a datetime each time it examines a message, counts all messages at every send, and changes its lists while
another thread walks through them. Its long poll returns after whole seconds. This one returns at once with
a message, or when the controller is needed for something else. Queues that users make are moto's.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from botocore import xform_name

from argosy.emulator.sqs import SqsModel
from argosy.local.server.protocol import JsonWire, Reply, answer

LOOK_S = 0.5  # how often a long poll checks for messages that are visible again


class OwnQueue:
    """The queue of this name. dead: gets the bodies that were received too often."""

    target = "AmazonSQS."

    def __init__(self, name: str, visibility_s: float, max_receives: int, dead: Callable[[str], None]) -> None:
        self._name = name
        self.model = _WaitingModel(SqsModel(time.time, visibility_s=visibility_s, max_receives=max_receives), dead)
        self._wire = JsonWire("sqs")

    def put(self, body: str) -> None:
        """Add a message without waiting."""
        self.model.send_message(QueueUrl=self._name, MessageBody=body)

    def nudge(self) -> None:
        """The receiver has something else to do: its long poll, or the next one, returns at once without messages."""
        self.model.nudge()

    def close(self) -> None:
        """Long polls end from now on."""
        self.model.close()

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply | None:
        """None for a request about another queue, or of a kind that the model does not know."""
        operation = headers.get("x-amz-target", "").removeprefix(self.target)
        if not hasattr(self.model, xform_name(operation)) or _queue(body) != self._name:
            return None
        return answer(self._wire, self.model, headers, body)


class _WaitingModel:
    """The model with receives that wait."""

    def __init__(self, model: SqsModel, dead: Callable[[str], None]) -> None:
        self._model, self._dead = model, dead
        self._changed = threading.Condition()
        self._nudged = self._closed = False

    def nudge(self) -> None:
        with self._changed:
            self._nudged = True
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def send_message(self, **request: Any) -> dict[str, Any]:
        made = self._model.send_message(**request)
        with self._changed:
            self._changed.notify()
        return made

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        sent = [{"Id": each["Id"], **self.send_message(**each)} for each in request["Entries"]]
        return {"Successful": sent, "Failed": []}

    def receive_message(self, **request: Any) -> dict[str, Any]:
        ends = time.monotonic() + (request.get("WaitTimeSeconds") or 0)
        with self._changed:
            while not (found := self._model.receive_message(**request)):
                left_s = ends - time.monotonic()
                if left_s <= 0 or self._nudged or self._closed:
                    break
                self._changed.wait(min(left_s, LOOK_S))
            self._nudged = False
        with suppress(IndexError):
            while True:
                self._dead(self._model.dead.pop())
        return found

    def delete_message(self, **request: Any) -> dict[str, Any]:
        entry = {"Id": "0", "ReceiptHandle": request["ReceiptHandle"]}
        self._model.delete_message_batch(QueueUrl=request["QueueUrl"], Entries=[entry])
        return {}

    def delete_message_batch(self, **request: Any) -> dict[str, Any]:
        return self._model.delete_message_batch(**request)


def _queue(body: bytes) -> str:
    """The name of the queue that a request is about; empty if it names none."""
    try:
        request = json.loads(body)
        return str(request["QueueUrl"]).rpartition("/")[2]
    except (ValueError, RecursionError, TypeError, KeyError):
        return ""
