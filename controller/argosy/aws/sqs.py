"""The controller's messages, received in batches of ten, several at a time when there are many."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from argosy.aws.errors import AWS_ERRORS, classify
from argosy.ports import Message

BATCH = 10  # SQS's limit of a receive and of a delete
ENOUGH = 12_000  # messages a tick, to bound its work: those of eight cells in six seconds at their full launch rate
THREADS = 8  # each call takes some 15 ms, and 40 launches a second bring 240 messages a second
LONGEST_WAIT_S = 20  # SQS's limit of a long poll

log = logging.getLogger(__name__)
A = TypeVar("A")
B = TypeVar("B")


class SqsQueue:
    """`ports.EventQueue` over a boto3 SQS client. A queue that does not answer counts as empty; sweeps compensate."""

    def __init__(self, client: Any, url: str, sleep: Callable[[float], None], threads: int = THREADS) -> None:
        """sleep: used while a queue does not answer, so that the controller's loop keeps its pace. threads: 1 does
        everything in the caller's own thread."""
        self._client, self._url, self._sleep, self._threads = client, url, sleep, threads

    def receive(self, wait_s: float) -> list[Message]:
        messages = self._receive_batch(wait_s)
        at_once = 1 + len(messages) // BATCH
        while messages and len(messages) < ENOUGH:
            at_once = min(at_once, self._threads, (ENOUGH - len(messages)) // BATCH)
            batches = list(self._together(self._receive_batch, [0.0] * max(1, at_once)))
            messages += [message for batch in batches for message in batch]
            if not all(batches):
                break
            at_once *= 2  # while every one of them brings messages
        return messages

    def delete(self, receipts: Sequence[str]) -> None:
        batches = [receipts[start : start + BATCH] for start in range(0, len(receipts), BATCH)]
        deque(self._together(self._delete_batch, batches), maxlen=0)

    def _together(self, call: Callable[[A], B], work: Sequence[A]) -> Iterator[B]:
        """In order; every thread has ended before the last answer is out."""
        if self._threads == 1 or len(work) < 2:
            yield from map(call, work)
            return
        with ThreadPoolExecutor(min(self._threads, len(work))) as pool:
            yield from pool.map(call, work)

    def _receive_batch(self, wait_s: float) -> list[Message]:
        try:
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=BATCH,
                WaitTimeSeconds=max(0, min(LONGEST_WAIT_S, round(wait_s))),
            )
        except AWS_ERRORS as error:
            log.error("the queue does not answer: %s", classify(error).text)
            self._sleep(wait_s)
            return []
        return [Message(str(each["ReceiptHandle"]), parse(each.get("Body", ""))) for each in answer.get("Messages", ())]

    def _delete_batch(self, receipts: Sequence[str]) -> None:
        entries = [{"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(receipts)]
        try:
            answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
        except AWS_ERRORS as error:
            log.warning("%d messages stay in the queue: %s", len(receipts), classify(error).text)
            return
        failed = answer.get("Failed", ())
        if failed:
            log.warning("%d messages stay in the queue: %s", len(failed), failed[0].get("Code"))


def parse(body: str) -> dict[str, Any] | None:
    """The event in a message's body, sent by EventBridge or SNS; None when it is not a JSON object."""
    try:
        event = json.loads(body)
        if isinstance(event, dict) and event.get("Type") == "Notification" and isinstance(event.get("Message"), str):
            event = json.loads(event["Message"])
    except (ValueError, RecursionError):  # not JSON, or nested too deeply
        return None
    return event if isinstance(event, dict) else None
