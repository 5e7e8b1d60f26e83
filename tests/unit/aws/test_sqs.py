"""The queue's contract against moto's SQS, and queues that do not answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from threading import Barrier, Lock
from typing import Any

import boto3
import pytest
from moto import mock_aws

from argosy.aws.sqs import ENOUGH, SqsQueue, parse
from tests.builders import NOW
from tests.fakes.aws import Clock, ScriptedClient, refusal, timed_out

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/argosy-events"


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1")


def test_messages_come_in_several_batches_and_are_gone_once_deleted(client: Any) -> None:
    url = client.create_queue(QueueName="argosy-events")["QueueUrl"]
    for number in range(25):
        client.send_message(QueueUrl=url, MessageBody=json.dumps({"number": number}))
    queue = SqsQueue(client, url, Clock().sleep, threads=1)  # moto loses deletions that come at the same time
    messages = queue.receive(0)
    assert sorted(message.body["number"] for message in messages if message.body) == list(range(25))
    queue.delete([message.receipt for message in messages])
    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessages"] == attributes["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_a_full_queue_gives_a_bounded_number_and_only_the_first_receive_waits() -> None:
    batch = {"Messages": [{"ReceiptHandle": "r", "Body": "{}"}] * 10}
    client = ScriptedClient("sqs", receive_message=batch)
    assert len(SqsQueue(client, URL, Clock().sleep, threads=1).receive(60)) == ENOUGH
    waits = [request["WaitTimeSeconds"] for request in client.requests("receive_message")]
    assert waits == [20] + [0] * (ENOUGH // 10 - 1)


def test_a_long_queue_is_read_by_several_threads_at_once_and_a_short_one_is_not() -> None:
    together, most = Counter[str](), Counter[str]()
    lock = Lock()
    barrier = Barrier(4, timeout=60)

    def receive(**request: Any) -> dict[str, Any]:
        with lock:
            together["now"] += 1
            together["calls"] += 1
            most["now"] = max(most["now"], together["now"])
            meets = 4 <= together["calls"] <= 7  # one, two, then four at once
        if meets:
            barrier.wait()  # breaks unless all four are under way together
        with lock:
            together["now"] -= 1
        return {"Messages": [{"ReceiptHandle": "r", "Body": "{}"}] * 10}

    client = ScriptedClient("sqs", receive_message=receive)
    assert len(SqsQueue(client, URL, Clock().sleep, threads=4).receive(0)) == ENOUGH
    assert most["now"] == 4


def test_a_queue_that_does_not_answer_is_an_empty_one_that_still_takes_its_time() -> None:
    clock = Clock()
    queue = SqsQueue(ScriptedClient("sqs", receive_message=timed_out()), URL, clock.sleep)
    assert queue.receive(5) == []
    assert clock.at == NOW + 5


def test_what_was_received_before_the_queue_fell_silent_is_kept() -> None:
    script = [{"Messages": [{"ReceiptHandle": "r", "Body": "{}"}]}, refusal("ServiceUnavailable", status=503)]
    clock = Clock()
    queue = SqsQueue(ScriptedClient("sqs", receive_message=script), URL, clock.sleep)
    assert [message.receipt for message in queue.receive(5)] == ["r"]
    assert clock.at == NOW


def test_deletions_that_fail_are_logged_and_hinder_no_others(caplog: pytest.LogCaptureFixture) -> None:
    failed = {"Failed": [{"Id": "3", "SenderFault": False, "Code": "InternalError"}], "Successful": []}
    client = ScriptedClient("sqs", delete_message_batch=[failed, timed_out(), {"Successful": []}])
    queue = SqsQueue(client, URL, Clock().sleep, threads=1)
    queue.delete([f"r{number}" for number in range(21)])
    sizes = [len(request["Entries"]) for request in client.requests("delete_message_batch")]
    assert sizes == [10, 10, 1]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "1 messages stay in the queue",
        "10 messages stay in the queue",
    ]


@pytest.mark.parametrize("body", ["", "not json", "[1, 2]", '"text"', "null", "[" * 100_000, '{"a": '])
def test_poison_has_no_body(body: str) -> None:
    assert parse(body) is None


def test_an_event_is_read_from_eventbridge_and_from_sns() -> None:
    event = {"source": "aws.ecs", "detail": {}}
    assert parse(json.dumps(event)) == event
    assert parse(json.dumps({"Type": "Notification", "Message": json.dumps(event)})) == event
    assert parse(json.dumps({"Type": "Notification", "Message": "hello"})) is None
    assert parse(json.dumps({"Type": "Notification", "Message": 5})) == {"Type": "Notification", "Message": 5}
