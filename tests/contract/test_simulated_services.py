"""The simulated table, queue, bucket and bus under the real adapters; the table's cases run against moto as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from argosy.aws.dynamodb import DynamoStore
from argosy.aws.sqs import SqsQueue
from argosy.aws.wake import AwsWake
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.dynamodb import DynamoModel
from argosy.emulator.sqs import SqsModel
from argosy.ports import AlreadyExists, StaleState
from tests.harness.simulation.world.bus import BusModel, LambdaModel
from tests.harness.simulation.world.s3 import S3Model

TABLE = "argosy-state"


@pytest.fixture(params=["simulation", "moto"])
def dynamodb(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "simulation":
        yield SimulatedClient(DynamoModel(), "dynamodb")
        return
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


@pytest.fixture
def store(dynamodb: Any) -> DynamoStore:
    return DynamoStore(dynamodb, TABLE)


def code_of(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return str(refused.value.response["Error"]["Code"])


def test_documents_come_back_by_key_by_partition_and_in_pages(store: DynamoStore) -> None:
    store.create({("A", f"{number:03d}"): b"x%d" % number for number in range(5)})
    assert store.read(("A", "003")) == b"x3"
    assert store.read(("A", "nothing")) is None
    assert list(store.read_partition("A")) == ["000", "001", "002", "003", "004"]
    rows, after = store.page("A", 2)
    assert ([key for key, _ in rows], after) == (["004", "003"], "003")
    assert [key for key, _ in store.page("A", 9, after)[0]] == ["002", "001", "000"]


def test_creating_is_all_or_nothing(store: DynamoStore) -> None:
    store.create({("A", "1"): b"first"})
    with pytest.raises(AlreadyExists):
        store.create({("A", "1"): b"second", ("A", "2"): b"second"})
    assert store.read_partition("A") == {"1": b"first"}
    with pytest.raises(AlreadyExists):
        store.create({("A", "1"): b"second"}, replacing={("A", "3"): b"second"})
    store.create({("A", "2"): b"third"}, replacing={("A", "1"): b"third"})
    assert store.read_partition("A") == {"1": b"third", "2": b"third"}


def test_of_two_commits_on_one_version_the_second_fails_and_writes_nothing(store: DynamoStore) -> None:
    store.commit(0, {("A", "1"): b"one"}, [])
    store.commit(1, {("A", "2"): b"two"}, [("A", "1")])
    with pytest.raises(StaleState):
        store.commit(1, {("A", "3"): b"three"}, [])
    assert (store.version(), store.read_partition("A")) == (2, {"2": b"two"})


def test_a_commits_items_say_when_they_expire_in_whole_seconds_and_the_others_do_not(
    store: DynamoStore, dynamodb: Any
) -> None:
    """In the form that TTL needs: a number of epoch seconds. Expired items may stay for days: readers handle that
    themselves."""
    store.commit(0, {("CHANGES", "1"): b"x", ("A", "1"): b"y"}, [], {("CHANGES", "1"): 1000.75})
    keys = [{"pk": {"S": partition}, "sk": {"S": "1"}} for partition in ("CHANGES", "A")]
    expiring, lasting = (dynamodb.get_item(TableName=TABLE, Key=key)["Item"] for key in keys)
    assert expiring["expires_at"] == {"N": "1000"}
    assert "expires_at" not in lasting
    assert store.read_partition("CHANGES") == {"1": b"x"}


def test_a_page_may_begin_after_a_key_that_is_not_there_in_either_order(store: DynamoStore) -> None:
    store.create({("A", f"{number:03d}"): b"x" for number in (1, 3, 5)})
    assert [key for key, _ in store.page("A", 9, "002~", oldest_first=True)[0]] == ["003", "005"]
    assert [key for key, _ in store.page("A", 9, "004")[0]] == ["003", "001"]
    rows, after = store.page("A", 1, "001~", oldest_first=True)
    assert ([key for key, _ in rows], after) == (["003"], "003")


def test_the_lease_is_taken_kept_and_given_back_by_its_owner_alone(store: DynamoStore) -> None:
    assert store.take_lease("a", 100.0, 90.0)
    assert not store.take_lease("b", 150.0, 90.0)
    store.release_lease("b")
    assert store.take_lease("a", 160.0, 90.0)
    assert store.take_lease("b", 250.5, 90.0)


def test_a_lease_that_was_refused_to_another_controller_is_released_at_the_second_try(store: DynamoStore) -> None:
    assert store.take_lease("a", 100.0, 90.0)
    assert not store.take_lease("b", 150.0, 90.0)
    assert [store.lay_down_lease("a"), store.lay_down_lease("a")] == [False, True]
    assert store.take_lease("b", 151.0, 90.0)


def test_transactions_keep_to_the_limits(dynamodb: Any) -> None:
    def put(number: int, size: int = 1) -> dict[str, Any]:
        item = {"pk": {"S": "A"}, "sk": {"S": str(number)}, "body": {"B": b"x" * size}}
        return {"Put": {"TableName": TABLE, "Item": item}}

    dynamodb.transact_write_items(TransactItems=[put(number) for number in range(100)])
    with pytest.raises(ClientError) as twice:
        dynamodb.transact_write_items(TransactItems=[put(1), put(1)])
    assert code_of(twice) == "ValidationException"
    with pytest.raises(ClientError) as large:
        dynamodb.transact_write_items(TransactItems=[put(1, 401 * 1024)])
    assert code_of(large) == "ValidationException"


def test_a_simulated_transaction_holds_a_hundred_actions_and_four_megabytes() -> None:
    client = SimulatedClient(DynamoModel(), "dynamodb", strict=False)  # botocore itself refuses more than 100

    def puts(count: int, size: int) -> list[dict[str, Any]]:
        keys = [{"pk": {"S": "A"}, "sk": {"S": str(number)}} for number in range(count)]
        return [{"Put": {"TableName": TABLE, "Item": {**key, "body": {"B": b"x" * size}}}} for key in keys]

    for actions in (puts(101, 1), puts(12, 390 * 1024)):
        with pytest.raises(ClientError) as refused:
            client.transact_write_items(TransactItems=actions)
        assert code_of(refused) == "ValidationException"


def test_a_partition_beyond_a_megabyte_comes_in_pages(store: DynamoStore) -> None:
    for number in range(4):
        store.create({("A", str(number)): b"x" * 390_000})
    assert [len(body) for body in store.read_partition("A").values()] == [390_000] * 4


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_a_message_that_is_not_deleted_comes_again_and_in_the_end_is_set_aside() -> None:
    clock = Clock()
    model = SqsModel(clock, visibility_s=30.0, max_receives=3)
    client = SimulatedClient(model, "sqs")
    queue = SqsQueue(client, "url", lambda seconds: None)
    for _ in range(12):
        client.send_message(QueueUrl="url", MessageBody='{"detail": {}}')
    first = queue.receive(0)
    assert (len(first), queue.receive(0)) == (12, [])
    queue.delete([message.receipt for message in first[:11]])
    for _ in range(2):
        clock.at += 31
        assert len(queue.receive(0)) == 1
    clock.at += 31
    assert queue.receive(0) == []
    assert model.dead == ['{"detail": {}}']


def test_an_object_is_created_once_when_asked_so_and_listed_in_pages() -> None:
    s3 = SimulatedClient(S3Model(), "s3")
    s3.put_object(Bucket="b", Key="k", Body=b"one", Metadata={"argosy-attempt": "1"}, IfNoneMatch="*")
    with pytest.raises(ClientError) as refused:
        s3.put_object(Bucket="b", Key="k", Body=b"two", IfNoneMatch="*")
    assert code_of(refused) == "PreconditionFailed"
    head = s3.head_object(Bucket="b", Key="k")
    assert head["Metadata"] == {"argosy-attempt": "1"}
    s3.put_object(Bucket="b", Key="k", Body=b"one", IfMatch=head["ETag"])
    for key, etag, code in (("k", '"other"', "PreconditionFailed"), ("nobody", head["ETag"], "NoSuchKey")):
        with pytest.raises(ClientError) as refused:
            s3.put_object(Bucket="b", Key=key, Body=b"two", IfMatch=etag)
        assert code_of(refused) == code
    assert s3.get_object(Bucket="b", Key="k")["Body"].read() == b"one"
    with pytest.raises(ClientError) as missing:
        s3.head_object(Bucket="b", Key="other")
    assert code_of(missing) == "404"
    for number in range(5):
        s3.put_object(Bucket="b", Key=f"many/{number}", Body=b"")
    page = s3.list_objects_v2(Bucket="b", Prefix="many/", MaxKeys=3)
    rest = s3.list_objects_v2(Bucket="b", Prefix="many/", ContinuationToken=page["NextContinuationToken"])
    assert [each["Key"] for each in page["Contents"] + rest["Contents"]] == [f"many/{number}" for number in range(5)]
    assert (page["IsTruncated"], rest["IsTruncated"]) == (True, False)


def test_the_schedule_is_enabled_and_disabled_and_the_controller_is_invoked() -> None:
    bus, functions = BusModel(), LambdaModel()
    wake = AwsWake(SimulatedClient(functions, "lambda"), SimulatedClient(bus, "events"), "argosy-controller", "tick")
    wake.controller()
    assert (bus.enabled, functions.invoked) == ({"tick"}, ["argosy-controller"])
    wake.rest()
    assert bus.enabled == set()


def test_many_documents_are_read_in_batches_and_a_partition_from_either_end(store: DynamoStore) -> None:
    store.create({("A", f"{number:03d}"): b"x%d" % number for number in range(60)})
    store.create({("B", f"{number:03d}"): b"y%d" % number for number in range(60)})
    keys = [(partition, f"{number:03d}") for partition in "AB" for number in range(70)]
    found = store.read_many([*keys, *keys])
    assert found == {(pk, sk): b"%s%d" % (b"x" if pk == "A" else b"y", int(sk)) for pk, sk in keys if int(sk) < 60}
    assert store.read_many([]) == {}
    rows, after = store.page("A", 2, oldest_first=True)
    assert ([key for key, _ in rows], after) == (["000", "001"], "001")
    assert [key for key, _ in store.page("A", 1, after, oldest_first=True)[0]] == ["002"]


def test_a_batch_has_its_limits(dynamodb: Any) -> None:
    def keys(*names: str) -> dict[str, Any]:
        return {TABLE: {"Keys": [{"pk": {"S": "A"}, "sk": {"S": name}} for name in names]}}

    for wrong in (keys(*(f"{number}" for number in range(101))), keys("1", "1")):
        with pytest.raises(ClientError) as refused:
            dynamodb.batch_get_item(RequestItems=wrong)
        assert code_of(refused) == "ValidationException"


def test_what_one_reply_does_not_hold_is_asked_for_again(store: DynamoStore) -> None:
    """16 MB a reply."""
    for number in range(45):
        store.create({("A", f"{number:03d}"): bytes(390_000)})
    found = store.read_many([("A", f"{number:03d}") for number in range(45)])
    assert [len(body) for body in found.values()] == [390_000] * 45
