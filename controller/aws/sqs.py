"""How do messages reach the controller? Batches of ten, some thirty of them a tick."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from controller.aws.errors import AWS_ERRORS, classify
from controller.ports import Message

BATCH = 10  # SQS's limit of a receive and of a delete
ENOUGH = 300  # messages a tick: a bound on its work
LONGEST_WAIT_S = 20  # SQS's limit of a long poll

log = logging.getLogger(__name__)


class SqsQueue:
    """`ports.EventQueue` over a boto3 SQS client. A queue that does not answer is an empty one: sweeps stand in."""

    def __init__(self, client: Any, url: str, sleep: Callable[[float], None]) -> None:
        """sleep: waits out a queue that does not answer, so that the controller's loop keeps its pace."""
        self._client, self._url, self._sleep = client, url, sleep
        self.failed_receives = 0
        self.failed_deletes = 0  # messages; they come again

    def receive(self, wait_s: float) -> list[Message]:
        messages: list[Message] = []
        while len(messages) < ENOUGH:
            batch = self._receive_batch(0 if messages else wait_s)
            if not batch:
                break
            messages += batch
        return messages

    def delete(self, receipts: Sequence[str]) -> None:
        for start in range(0, len(receipts), BATCH):
            self._delete_batch(receipts[start : start + BATCH])

    def _receive_batch(self, wait_s: float) -> list[Message]:
        try:
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=BATCH,
                WaitTimeSeconds=max(0, min(LONGEST_WAIT_S, round(wait_s))),
            )
        except AWS_ERRORS as error:
            self.failed_receives += 1
            log.error("the queue does not answer: %s", classify(error).text)
            self._sleep(wait_s)
            return []
        return [Message(str(each["ReceiptHandle"]), parse(each.get("Body", ""))) for each in answer.get("Messages", ())]

    def _delete_batch(self, receipts: Sequence[str]) -> None:
        entries = [{"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(receipts)]
        try:
            answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
        except AWS_ERRORS as error:
            self.failed_deletes += len(receipts)
            log.warning("%d messages stay in the queue: %s", len(receipts), classify(error).text)
            return
        failed = answer.get("Failed", ())
        if failed:
            self.failed_deletes += len(failed)
            log.warning("%d messages stay in the queue: %s", len(failed), failed[0].get("Code"))


def parse(body: str) -> dict[str, Any] | None:
    """The event in a message's body, whether EventBridge or SNS sent it; None when it is no JSON object."""
    try:
        event = json.loads(body)
        if isinstance(event, dict) and event.get("Type") == "Notification" and isinstance(event.get("Message"), str):
            event = json.loads(event["Message"])
    except (ValueError, RecursionError):  # no JSON, or nested without end
        return None
    return event if isinstance(event, dict) else None
