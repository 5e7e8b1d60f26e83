"""Log lines reach moto in order and in batches; what cannot be delivered is complained about."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.local.agents.log_shipper import MAX_LINE, LogRefusedError, LogShipper
from argosy.local.clients import LocalClients
from argosy.local.moto.logs import MotoLogs
from tests.fakes.serving import moto_clients

pytestmark = pytest.mark.slow
ACCOUNT, REGION = "123456789012", "us-east-1"


@pytest.fixture(scope="module")
def clients() -> Iterator[LocalClients]:
    with moto_clients() as made:
        yield made


@pytest.fixture
def group(clients: LocalClients, request: pytest.FixtureRequest) -> str:
    name = f"/test/{request.node.name}"
    clients("logs").create_log_group(logGroupName=name)
    return name


def _messages(clients: LocalClients, group: str, stream: str) -> list[str]:
    found = clients("logs").get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)
    return [event["message"] for event in found["events"]]


def test_lines_are_stored_in_order_by_the_time_flush_returns(clients: LocalClients, group: str) -> None:
    complaints: list[str] = []
    shipper = LogShipper(MotoLogs(ACCOUNT, REGION), complaints.append)
    try:
        shipper.open(group, "a")
        shipper.open(group, "a")  # a second start is allowed
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
    shipper = LogShipper(MotoLogs(ACCOUNT, REGION), print)
    shipper.open(group, "a")
    shipper.put(group, "a", "")
    shipper.put(group, "a", "x" * (MAX_LINE + 5))
    shipper.close()
    assert [len(message) for message in _messages(clients, group, "a")] == [MAX_LINE, 5]


def test_a_missing_group_refuses_the_stream(clients: LocalClients) -> None:
    shipper = LogShipper(MotoLogs(ACCOUNT, REGION), print)
    try:
        with pytest.raises(LogRefusedError, match="ResourceNotFoundException"):
            shipper.open("/no/such/group", "a")
    finally:
        shipper.close()


def test_lost_lines_are_reported_and_the_rest_continues(clients: LocalClients, group: str) -> None:
    complaints: list[str] = []
    shipper = LogShipper(MotoLogs(ACCOUNT, REGION), complaints.append)
    shipper.open(group, "a")
    shipper.put("/no/such/group", "a", "lost")
    shipper.put(group, "no such stream", "lost")
    shipper.put(group, "a", "kept")
    shipper.close()
    assert len(complaints) == 2
    assert _messages(clients, group, "a") == ["kept"]


def test_a_long_poll_returns_as_soon_as_there_is_a_message(clients: LocalClients) -> None:
    url = clients("sqs").create_queue(QueueName="long-poll")["QueueUrl"]
    sender = threading.Thread(target=lambda: clients("sqs").send_message(QueueUrl=url, MessageBody="hello"))
    began = time.monotonic()
    sender.start()
    reply = clients("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=20)
    sender.join()
    assert reply["Messages"][0]["Body"] == "hello"
    assert time.monotonic() - began < 10


def test_a_transaction_that_fails_undoes_no_other_write(clients: LocalClients) -> None:
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


class FullOnce:
    """A store whose disk is full at the first batch."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._failed = threading.Event()

    def open(self, group: str, stream: str) -> None:
        """Nothing to do."""

    def put(self, group: str, stream: str, entries: list[dict[str, Any]]) -> None:
        if not self._failed.is_set():
            self._failed.set()
            raise OSError("No space left on device")
        self.kept += [each["message"] for each in entries]


def test_a_full_disk_costs_lines_and_holds_up_no_task() -> None:
    complaints: list[str] = []
    store = FullOnce()
    shipper = LogShipper(store, complaints.append)
    shipper.put("g", "s", "lost")
    assert shipper.flush(10)
    shipper.put("g", "s", "kept")
    assert shipper.flush(10)
    shipper.close()
    assert store.kept == ["kept"]
    assert complaints == ["1 log lines of s lost: No space left on device"]
