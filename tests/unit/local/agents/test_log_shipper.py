"""Log lines and events reach moto in order and in batches; what cannot be delivered is complained about."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.local.agents.log_shipper import MAX_LINE, LogShipper
from argosy.local.clients import LocalClients
from argosy.local.forwarder import EventForwarder
from argosy.local.moto.app import MotoApp
from tests.fakes.serving import front
from tests.fakes.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clients() -> Iterator[LocalClients]:
    moto = MotoApp()
    with front(moto=moto) as made:
        yield made
        moto.stop_waiting()
    moto.close()


@pytest.fixture
def group(clients: LocalClients, request: pytest.FixtureRequest) -> str:
    name = f"/test/{request.node.name}"
    clients("logs").create_log_group(logGroupName=name)
    return name


def _messages(clients: LocalClients, group: str, stream: str) -> list[str]:
    found = clients("logs").get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)
    return [event["message"] for event in found["events"]]


def _message(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "source": "aws.ecs",
        "detail-type": "ECS Task State Change",
        "detail": {"version": number},
        "resources": [f"arn:{number}"],
        "time": "2026-11-21T06:40:17Z",
        "region": "us-east-1",
        **changes,
    }


def test_lines_are_stored_in_order_by_the_time_flush_returns(clients: LocalClients, group: str) -> None:
    complaints: list[str] = []
    shipper = LogShipper(clients("logs"), complaints.append)
    try:
        shipper.open(group, "a")
        shipper.open(group, "a")  # a second start is no fault
        shipper.open(group, "b")
        for number in range(300):
            shipper.put(group, "ab"[number % 2], f"line {number}")
        assert shipper.flush(30)
    finally:
        shipper.close()
    assert _messages(clients, group, "a") == [f"line {number}" for number in range(0, 300, 2)]
    assert len(_messages(clients, group, "b")) == 150
    assert complaints == []


def test_empty_lines_are_dropped_and_long_ones_split(clients: LocalClients, group: str) -> None:
    shipper = LogShipper(clients("logs"), print)
    shipper.open(group, "a")
    shipper.put(group, "a", "")
    shipper.put(group, "a", "x" * (MAX_LINE + 5))
    shipper.close()
    assert [len(message) for message in _messages(clients, group, "a")] == [MAX_LINE, 5]


def test_a_missing_group_refuses_the_stream(clients: LocalClients) -> None:
    shipper = LogShipper(clients("logs"), print)
    try:
        with pytest.raises(ClientError, match="ResourceNotFoundException"):
            shipper.open("/no/such/group", "a")
    finally:
        shipper.close()


def test_lost_lines_are_complained_about_and_the_rest_goes_on(clients: LocalClients, group: str) -> None:
    complaints: list[str] = []
    shipper = LogShipper(clients("logs"), complaints.append)
    shipper.open(group, "a")
    shipper.put("/no/such/group", "a", "lost")
    shipper.put(group, "a", "kept")
    shipper.close()
    assert len(complaints) == 1
    assert _messages(clients, group, "a") == ["kept"]


def _queue_of(clients: LocalClients, name: str, bus: str = "default") -> tuple[str, Callable[[], list[dict[str, Any]]]]:
    url = clients("sqs").create_queue(QueueName=name)["QueueUrl"]
    arn = clients("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    clients("events").put_rule(Name=name, EventBusName=bus, EventPattern=json.dumps({"source": ["aws.ecs"]}))
    clients("events").put_targets(Rule=name, EventBusName=bus, Targets=[{"Id": "queue", "Arn": arn}])

    def receive() -> list[dict[str, Any]]:
        reply = clients("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        messages = reply.get("Messages", [])
        for message in messages:
            clients("sqs").delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in messages]

    return url, receive


def _forwarder(clients: LocalClients, complain: Callable[[str], None]) -> EventForwarder:
    return EventForwarder(clients("events"), home="us-east-1", bus="argosy", complain=complain)


def test_another_regions_events_come_over_the_deployments_own_bus_and_not_over_the_accounts(
    clients: LocalClients,
) -> None:
    clients("events").create_event_bus(Name="argosy")
    _, of_default = _queue_of(clients, "of-default")
    _, of_own = _queue_of(clients, "of-own", bus="argosy")
    forwarder = _forwarder(clients, print)
    forwarder(_message(1))
    forwarder(_message(2, region="eu-west-1"))
    forwarder.close()
    for receive, number in ((of_default, 1), (of_own, 2)):
        received: list[dict[str, Any]] = []
        until(lambda receive=receive, received=received: received.extend(receive()) or received)
        assert [event["detail"]["version"] for event in received] == [number]


def test_events_reach_the_queue_of_their_rule_in_order_and_whole(clients: LocalClients) -> None:
    _, receive = _queue_of(clients, "in-order")
    forwarder = _forwarder(clients, print)
    for number in range(25):
        forwarder(_message(number))
    forwarder(_message(99, source="aws.other"))
    forwarder.close()
    received: list[dict[str, Any]] = []

    def all_are_there() -> bool:
        received.extend(receive())
        return len(received) >= 25

    until(all_are_there)
    assert [event["detail"]["version"] for event in received] == list(range(25))
    first = received[0]
    assert (first["source"], first["detail-type"]) == ("aws.ecs", "ECS Task State Change")
    assert (first["time"], first["resources"]) == ("2026-11-21T06:40:17Z", ["arn:0"])


def test_an_event_that_is_refused_is_complained_about(clients: LocalClients) -> None:
    complaints: list[str] = []
    forwarder = _forwarder(clients, complaints.append)
    forwarder(_message(1, detail=[]))
    forwarder(_message(1, source=""))
    forwarder.close()
    assert len(complaints) >= 1


def test_an_unreachable_bus_is_complained_about() -> None:
    with front() as nobody:  # its moto refuses everything
        complaints: list[str] = []
        forwarder = _forwarder(nobody, complaints.append)
        forwarder(_message(1))
        forwarder.close()
    assert "1 events lost" in complaints[0]


def test_a_long_poll_returns_as_soon_as_there_is_a_message(clients: LocalClients) -> None:
    url = clients("sqs").create_queue(QueueName="long-poll")["QueueUrl"]
    sender = threading.Thread(target=lambda: clients("sqs").send_message(QueueUrl=url, MessageBody="hello"))
    began = time.monotonic()
    sender.start()
    reply = clients("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=20)
    sender.join()
    assert reply["Messages"][0]["Body"] == "hello"
    assert time.monotonic() - began < 10


def test_a_transaction_that_fails_undoes_nobody_elses_write(clients: LocalClients) -> None:
    """moto rolls back by putting its copy of the whole table back: without the lock, writes of other threads go."""
    dynamodb = clients("dynamodb")
    dynamodb.create_table(
        TableName="t",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )

    def put(number: int) -> None:
        dynamodb.put_item(TableName="t", Item={"pk": {"S": f"item {number}"}})

    for number in range(1_000, 1_300):
        put(number)  # the copy takes as long as the table is large

    def fail(number: int) -> None:
        impossible = {
            "TableName": "t",
            "Item": {"pk": {"S": f"never {number}"}},
            "ConditionExpression": "attribute_exists(pk)",
        }
        with pytest.raises(ClientError, match="TransactionCanceled"):
            dynamodb.transact_write_items(TransactItems=[{"Put": impossible}])

    with ThreadPoolExecutor(8) as pool:
        work = [pool.submit(put if number % 2 else fail, number) for number in range(160)]
        for each in work:
            each.result(60)
    assert dynamodb.scan(TableName="t", Select="COUNT")["Count"] == 380
