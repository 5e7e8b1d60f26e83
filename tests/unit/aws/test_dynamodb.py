"""The store's contract against moto's DynamoDB, and its behaviour when a transaction's fate is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from argosy.aws import cell_records
from argosy.aws.dynamodb import CONFLICT_TRIES, DynamoStore
from argosy.aws.errors import FailureKind, classify
from argosy.ports import AlreadyExists, StaleState, Switches
from tests.builders import NOW
from tests.fakes.aws import ScriptedClient, refusal, timed_out

pytestmark = pytest.mark.slow


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        dynamodb = boto3.client("dynamodb", region_name="us-east-1")
        dynamodb.create_table(
            TableName="argosy-state",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )
        yield dynamodb


class Interposed:
    """A client whose transactions meet with trouble: `before` may raise instead, `after` once the effect is there."""

    def __init__(
        self, client: Any, before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None
    ):
        self._client, self._before, self._after = client, before, after
        self.transactions = 0

    def transact_write_items(self, **request: Any) -> Any:
        self.transactions += 1
        self._before()
        answer = self._client.transact_write_items(**request)
        self._after()
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def raising(error: Exception) -> Callable[[], None]:
    def trouble() -> None:
        raise error

    return trouble


def store(client: Any) -> DynamoStore:
    return DynamoStore(client, "argosy-state")


def test_a_commit_writes_deletes_and_raises_the_version(client: Any) -> None:
    state = store(client)
    assert state.version() == 0
    state.commit(0, {("STATE", "ROOT"): b"one", ("INBOX", "a"): b"x"}, [])
    state.commit(1, {("STATE", "ROOT"): b"two"}, [("INBOX", "a")])
    assert state.version() == 2
    assert state.read(("STATE", "ROOT")) == b"two"
    assert state.read(("INBOX", "a")) is None


def test_a_stale_commit_writes_nothing(client: Any) -> None:
    state = store(client)
    state.commit(0, {("STATE", "ROOT"): b"one"}, [])
    for version in (0, 2):
        with pytest.raises(StaleState):
            state.commit(version, {("STATE", "ROOT"): b"two"}, [("STATE", "ROOT")])
    assert (state.version(), state.read(("STATE", "ROOT"))) == (1, b"one")


def test_a_partition_is_read_whole_in_order_without_the_version(client: Any) -> None:
    state = store(client)
    body = bytes(300_000)
    for number in (3, 1, 2, 5, 4):  # 1.5 MB: more than a page
        state.create({("STATE", f"CHUNK#{number}"): body})
    state.commit(0, {("OTHER", "x"): b"y"}, [])
    assert list(state.read_partition("STATE")) == [f"CHUNK#{number}" for number in (1, 2, 3, 4, 5)]
    assert state.read_partition("NONE") == {}


def test_pages_descend_and_continue(client: Any) -> None:
    state = store(client)
    state.create({("RUNS", f"{number}"): b"%d" % number for number in range(5)})
    first, after = state.page("RUNS", 2)
    assert [key for key, _ in first] == ["4", "3"]
    second, after = state.page("RUNS", 2, after)
    last, end = state.page("RUNS", 2, after)
    assert [key for key, _ in second + last] == ["2", "1", "0"]
    assert end is None


def test_creating_is_all_or_nothing(client: Any) -> None:
    state = store(client)
    state.create({("TOKENS", "a"): b"1"})
    with pytest.raises(AlreadyExists):
        state.create({("INBOX", "r"): b"2", ("TOKENS", "a"): b"3"})
    assert state.read(("INBOX", "r")) is None
    assert state.read(("TOKENS", "a")) == b"1"


def test_what_replaces_is_written_with_the_rest_or_not_at_all_and_is_never_the_reason_to_refuse(client: Any) -> None:
    state = store(client)
    pointer = ("SUBMITTED", "r")
    state.create({("TOKENS", "a"): b"1"}, expires_at={pointer: NOW}, replacing={pointer: b"one"})
    state.create({("TOKENS", "b"): b"2"}, replacing={pointer: b"two"})
    with pytest.raises(AlreadyExists):
        state.create({("TOKENS", "b"): b"3"}, replacing={pointer: b"three"})
    assert state.read(pointer) == b"two"


def test_a_reply_that_is_lost_after_the_effect_is_no_fault(client: Any) -> None:
    forgetful = store(Interposed(client, after=raising(timed_out())))
    forgetful.commit(0, {("STATE", "ROOT"): b"one"}, [("INBOX", "a")])
    forgetful.create({("TOKENS", "a"): b"1"})
    assert forgetful.version() == 1


def test_an_sdk_retry_that_meets_its_own_effect_is_no_fault(client: Any) -> None:
    """moto does not honour ClientRequestToken: the second try of the same commit meets its own version."""
    store(client).commit(0, {("STATE", "ROOT"): b"one"}, [])
    store(client).commit(0, {("STATE", "ROOT"): b"one"}, [])
    assert store(client).version() == 1


def test_a_lost_reply_is_not_confused_with_another_controllers_commit(client: Any) -> None:
    def overtaken() -> None:
        store(client).commit(0, {("STATE", "ROOT"): b"theirs"}, [])
        raise timed_out()

    with pytest.raises(StaleState):
        store(Interposed(client, before=overtaken)).commit(0, {("STATE", "ROOT"): b"mine"}, [])


def test_an_effect_that_is_lost_is_raised_as_it_is(client: Any) -> None:
    lost = store(Interposed(client, before=raising(timed_out())))
    with pytest.raises(type(timed_out())):
        lost.commit(0, {("STATE", "ROOT"): b"one"}, [])
    with pytest.raises(type(timed_out())):
        lost.create({("TOKENS", "a"): b"1"})
    with pytest.raises(ClientError, match="AccessDenied"):
        store(Interposed(client, before=raising(refusal("AccessDenied")))).commit(0, {("STATE", "ROOT"): b"one"}, [])


def test_a_neighbours_transaction_is_waited_out_a_few_times(client: Any) -> None:
    reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
    conflicts = [refusal("TransactionCanceledException", CancellationReasons=reasons) for _ in range(CONFLICT_TRIES)]

    def conflict() -> None:
        if conflicts:
            raise conflicts.pop()

    busy = Interposed(client, before=conflict)
    with pytest.raises(ClientError, match="TransactionCanceled"):
        store(busy).commit(0, {("STATE", "ROOT"): b"one"}, [])
    assert busy.transactions == CONFLICT_TRIES
    store(busy).commit(0, {("STATE", "ROOT"): b"one"}, [])
    assert store(client).version() == 1


def test_the_lease_is_given_to_one_at_a_time(client: Any) -> None:
    state = store(client)
    assert state.take_lease("a", NOW, 90)
    assert not state.take_lease("b", NOW + 89, 90)
    assert state.take_lease("a", NOW + 60, 90)
    assert not state.take_lease("b", NOW + 149, 90)
    assert state.take_lease("b", NOW + 150, 90)
    state.release_lease("a")
    assert not state.take_lease("a", NOW + 151, 90)
    state.release_lease("b")
    assert state.take_lease("a", NOW + 151, 90)


def test_a_refused_controller_keeps_the_lease_from_being_released_once(client: Any) -> None:
    state = store(client)
    assert state.take_lease("a", NOW, 90)
    assert not state.take_lease("b", NOW + 1, 90)
    assert state.take_lease("a", NOW + 60, 90)  # a renewal does not forget that
    assert not state.lay_down_lease("a")
    assert not state.take_lease("c", NOW + 61, 90)
    assert not state.lay_down_lease("a")
    assert state.lay_down_lease("a")
    assert state.take_lease("b", NOW + 62, 90)
    assert state.lay_down_lease("a")  # it is not a's any more
    assert not state.take_lease("a", NOW + 63, 90)


def test_a_lease_that_is_released_while_it_is_requested_can_be_taken(client: Any) -> None:
    state = store(client)
    state.take_lease("a", NOW, 90)

    class LaidDownMeanwhile:
        """Between the refusal and the mark that it leaves."""

        asked = 0

        def __getattr__(self, operation: str) -> Any:
            return getattr(client, operation)

        def update_item(self, **request: Any) -> Any:
            self.asked += 1
            if self.asked == 2:
                assert state.lay_down_lease("a")
            return client.update_item(**request)

    assert store(LaidDownMeanwhile()).take_lease("b", NOW + 1, 90)
    assert not state.take_lease("a", NOW + 2, 90)


def test_the_heartbeat_says_whether_another_tick_is_to_follow(client: Any) -> None:
    state = store(client)
    for at_rest in (True, False):
        state.beat(NOW, at_rest=at_rest)
        records = cell_records.read(client, "argosy-state")
        assert records is not None
        assert records.awaits_tick is not at_rest


def test_the_heartbeat_outlives_the_lease_and_is_no_document(client: Any) -> None:
    state = store(client)
    state.take_lease("a", NOW, 90)
    state.beat(NOW + 0.5)
    state.beat(NOW + 30.25)
    state.release_lease("a")
    key = {"pk": {"S": "CONTROL"}, "sk": {"S": "HEARTBEAT"}}
    assert client.get_item(TableName="argosy-state", Key=key)["Item"]["at"] == {"N": str(NOW + 30.25)}
    assert state.read_partition("CONTROL") == {}


def test_only_items_with_an_expiry_expire(client: Any) -> None:
    state = store(client)
    token, request = ("TOKENS", "a"), ("INBOX", "r")
    state.create({token: b"1", request: b"2"}, expires_at={token: NOW + 0.9})
    items = {item["pk"]["S"]: item for item in client.scan(TableName="argosy-state")["Items"]}
    assert items["TOKENS"]["expires_at"] == {"N": str(int(NOW))}  # whole seconds, or TTL does not see it
    assert "expires_at" not in items["INBOX"]


class Refusing:
    """A table that must not be accessed."""

    def __getattr__(self, operation: str) -> Any:
        return raising_any(refusal("AccessDeniedException", "no"))


def raising_any(error: Exception) -> Callable[..., None]:
    def call(**_: Any) -> None:
        raise error

    return call


def test_what_is_not_a_lost_race_for_the_lease_is_raised() -> None:
    denied = store(Refusing())
    with pytest.raises(ClientError):
        denied.take_lease("a", NOW, 90)
    with pytest.raises(ClientError):
        denied.release_lease("a")
    with pytest.raises(ClientError):
        denied.lay_down_lease("a")


def test_the_kill_switch_says_why(client: Any) -> None:
    state = store(client)
    state.beat(1.0)
    assert state.switches() == Switches()
    item = {"pk": {"S": "CONTROL"}, "sk": {"S": "KILL"}}
    client.put_item(TableName="argosy-state", Item={**item, "reason": {"S": "the stack is being destroyed"}})
    assert state.switches().deployment == "the stack is being destroyed"
    client.put_item(TableName="argosy-state", Item=item)
    assert state.switches().deployment == "the kill switch is set"


def test_what_the_small_functions_record_of_a_cell_is_what_the_controller_reads(client: Any) -> None:
    state = store(client)
    for region, closed in {"us-east-1": None, "eu-west-1": cell_records.LEFT_OUT}.items():
        cell_records.write(client, "argosy-state", region, closed)
    assert state.switches() == Switches(cells={"eu-west-1": cell_records.LEFT_OUT})
    records = cell_records.read(client, "argosy-state")
    assert records is not None
    assert records.cells == {"us-east-1": None, "eu-west-1": cell_records.LEFT_OUT}
    cell_records.write(client, "argosy-state", "eu-west-1", None)
    assert state.switches() == Switches()
    cell_records.forget(client, "argosy-state", "eu-west-1")
    assert cell_records.read(client, "argosy-state") == cell_records.Records(None, {"us-east-1": None})
    assert cell_records.read(client, "no-such-table") is None


def test_a_transaction_that_is_too_large_is_raised_and_writes_nothing(client: Any) -> None:
    state = store(client)
    with pytest.raises(Exception, match=r"(?i)validation|length"):
        state.commit(0, {("STATE", f"{number}"): b"x" for number in range(100)}, [])
    assert state.version() == 0


def test_a_batch_of_which_nothing_is_ever_read_is_a_fault_and_no_empty_answer() -> None:
    client = ScriptedClient("dynamodb", batch_get_item=lambda **asked: {"UnprocessedKeys": asked["RequestItems"]})
    with pytest.raises(ClientError) as refused:
        store(client).read_many([("A", "1"), ("A", "2")])
    assert classify(refused.value).kind is FailureKind.THROTTLED
    assert len(client.calls) == 3
