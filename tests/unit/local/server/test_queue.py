"""The deployment's own queue answers as SQS does, and a long poll of it ends as soon as there is a reason."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from argosy.local.server.queue import OwnQueue
from tests.fakes.serving import front

URL = "http://127.0.0.1/123456789012/mine"


@pytest.fixture
def dead() -> list[str]:
    return []


@pytest.fixture
def queue(dead: list[str]) -> OwnQueue:
    return OwnQueue("mine", visibility_s=60.0, max_receives=2, dead=dead.append)


@pytest.fixture
def sqs(queue: OwnQueue) -> Iterator[Any]:
    with front(own=[queue]) as clients:
        yield clients("sqs")
        queue.close()


def bodies(sqs: Any, wait_s: int = 0) -> list[str]:
    found = sqs.receive_message(QueueUrl=URL, MaxNumberOfMessages=10, WaitTimeSeconds=wait_s).get("Messages", [])
    return [message["Body"] for message in found]


def test_messages_come_in_order_once_and_are_gone_when_deleted(sqs: Any, queue: OwnQueue) -> None:
    queue.put("a")
    sqs.send_message(QueueUrl=URL, MessageBody="b")
    entries = [{"Id": name, "MessageBody": name} for name in "cd"]
    assert [each["Id"] for each in sqs.send_message_batch(QueueUrl=URL, Entries=entries)["Successful"]] == ["c", "d"]
    found = sqs.receive_message(QueueUrl=URL, MaxNumberOfMessages=10)["Messages"]
    assert [message["Body"] for message in found] == ["a", "b", "c", "d"]
    assert bodies(sqs) == []
    sqs.delete_message(QueueUrl=URL, ReceiptHandle=found[0]["ReceiptHandle"])
    rest = [{"Id": message["MessageId"], "ReceiptHandle": message["ReceiptHandle"]} for message in found[1:]]
    assert len(sqs.delete_message_batch(QueueUrl=URL, Entries=rest)["Successful"]) == 3


def test_what_was_received_too_often_is_handed_to_the_dead_letters(sqs: Any, dead: list[str]) -> None:
    hasty = OwnQueue("mine", visibility_s=0.0, max_receives=2, dead=dead.append)
    with front(own=[hasty]) as clients:
        hasty.put("poison")
        assert [bodies(clients("sqs")) for _ in range(3)] == [["poison"], ["poison"], []]
    assert dead == ["poison"]


@pytest.mark.parametrize(
    ("cause", "brings"),
    [(lambda queue: queue.put("late"), ["late"]), (OwnQueue.nudge, []), (OwnQueue.close, [])],
    ids=["a message", "a nudge", "the end"],
)
def test_a_long_poll_ends_at_once(
    sqs: Any, queue: OwnQueue, cause: Callable[[OwnQueue], None], brings: list[str]
) -> None:
    began = time.monotonic()
    timer = threading.Timer(0.05, cause, [queue])
    timer.start()
    assert bodies(sqs, wait_s=20) == brings
    timer.join()
    assert time.monotonic() - began < 10


def test_a_nudge_that_comes_too_early_ends_the_next_poll_and_no_other(sqs: Any, queue: OwnQueue) -> None:
    queue.nudge()
    began = time.monotonic()
    assert bodies(sqs, wait_s=20) == []
    assert time.monotonic() - began < 10
    timer = threading.Timer(0.05, queue.put, ["later"])
    timer.start()
    assert bodies(sqs, wait_s=20) == ["later"]
    timer.join()


def test_a_message_returns_in_the_middle_of_a_poll_when_its_invisibility_ends() -> None:
    shy = OwnQueue("mine", visibility_s=0.1, max_receives=5, dead=lambda body: None)
    with front(own=[shy]) as clients:
        shy.put("again")
        assert bodies(clients("sqs")) == ["again"]
        assert bodies(clients("sqs"), wait_s=10) == ["again"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"QueueUrl": "http://127.0.0.1/1/other"}'])
def test_requests_about_other_queues_are_left_to_moto(queue: OwnQueue, body: bytes) -> None:
    assert queue.reply({"x-amz-target": "AmazonSQS.ReceiveMessage"}, body) is None
    assert queue.reply({"x-amz-target": "AmazonSQS.GetQueueUrl"}, b'{"QueueUrl": "mine"}') is None
