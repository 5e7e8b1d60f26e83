"""The replaced parts of moto's SQS: messages hide, wait and expire as on AWS, and many of them are no burden."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from moto.sqs.models import sqs_backends

from argosy.local.moto.app import MotoApp
from tests.fakes.serving import front

pytestmark = pytest.mark.slow

ACCOUNT, REGION = "123456789012", "us-east-1"


@pytest.fixture(scope="module")
def sqs() -> Iterator[Any]:
    moto = MotoApp()
    with front(moto=moto) as clients:
        yield clients("sqs")
        moto.stop_waiting()
    moto.close()


@pytest.fixture
def queue(sqs: Any, request: pytest.FixtureRequest) -> str:
    return str(sqs.create_queue(QueueName=request.node.name[:80])["QueueUrl"])


def _receive(sqs: Any, queue: str, wait_s: int = 0) -> list[dict[str, Any]]:
    return list(sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=wait_s).get("Messages", []))


def test_a_received_message_hides_until_it_is_given_back(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="a")
    (message,) = _receive(sqs, queue)
    assert _receive(sqs, queue) == []
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    assert [each["Body"] for each in _receive(sqs, queue)] == ["a"]


def test_a_received_message_comes_back_after_its_visibility_timeout(sqs: Any, queue: str) -> None:
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "1"})
    sqs.send_message(QueueUrl=queue, MessageBody="a")
    assert _receive(sqs, queue)
    assert [each["Body"] for each in _receive(sqs, queue, wait_s=10)] == ["a"]


def test_a_delayed_message_is_not_there_yet(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="later", DelaySeconds=1)
    assert _receive(sqs, queue) == []
    assert [each["Body"] for each in _receive(sqs, queue, wait_s=10)] == ["later"]


def test_a_message_past_its_retention_is_not_delivered(sqs: Any, queue: str) -> None:
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"MessageRetentionPeriod": "60"})
    sqs.send_message(QueueUrl=queue, MessageBody="old")
    (stored,) = sqs_backends[ACCOUNT][REGION].get_queue(queue.rpartition("/")[2]).messages
    stored.sent_timestamp -= 61_000  # type: ignore[assignment, operator]
    assert _receive(sqs, queue) == []


def test_hundreds_of_waiting_messages_are_no_burden(sqs: Any, queue: str) -> None:
    for batch in range(40):
        entries = [{"Id": str(number), "MessageBody": f"{batch} {number}" + "x" * 2_000} for number in range(10)]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    began = time.monotonic()
    received = [each["Body"] for _ in range(40) for each in _receive(sqs, queue)]
    assert len(set(received)) == 400
    assert time.monotonic() - began < 5  # 0.2 s here; 12 s with moto's own way of telling the time
