"""Calls of a function's process go the short way, with the answers and errors of the usual one."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from argosy.emulator.dynamodb import DynamoModel
from argosy.emulator.operations import Refusal
from argosy.local.lambdas.short_way import DirectCalls
from argosy.local.server.model_calls import ModelCalls, models_of, short_way
from tests.fakes.serving import front

HERE = {"pk": {"S": "a"}, "sk": {"S": "b"}}
TABLE = "argosy-state"


class Usual:
    """In place of boto3's client, for calls that the short way does not answer."""

    def list_tables(self) -> dict[str, Any]:
        return {"TableNames": ["usual"]}

    def get_item(self, **request: Any) -> dict[str, Any]:
        return {"Item": {"way": {"S": "usual"}}}


@contextmanager
def short(model: Any, asked: Callable[[str, str], None] = lambda service, region: None) -> Iterator[Any]:
    """A client of DynamoDB that goes the short way to this model."""

    def model_of(service: str, region: str) -> Any:
        asked(service, region)
        return model

    with tempfile.TemporaryDirectory() as folder:  # pytest's are too long for a socket
        calls = ModelCalls(Path(folder), model_of)
        way = DirectCalls(calls.address)
        yield way.client("dynamodb", "eu-west-1", Usual)
        way.close()
        calls.close()


def test_answers_and_errors_are_those_of_the_usual_way() -> None:
    put = {"TableName": TABLE, "Item": HERE, "ConditionExpression": "attribute_not_exists(pk)"}
    with front() as clients, short(DynamoModel()) as new:
        found, errors = [], []
        for each in (clients("dynamodb"), new):
            each.put_item(TableName=TABLE, Item={**HERE, "n": {"N": "7"}, "b": {"B": b"\0\xff"}})
            found.append(each.get_item(TableName=TABLE, Key=HERE)["Item"])
            with pytest.raises(each.exceptions.ConditionalCheckFailedException) as failed:
                each.put_item(**put)
            with pytest.raises(each.exceptions.TransactionCanceledException) as cancelled:
                each.transact_write_items(TransactItems=[{"Put": put}])
            with pytest.raises(ParamValidationError) as wrong:
                each.put_item(TableName=TABLE, Item=7)
            reasons = cancelled.value.response["CancellationReasons"]
            errors.append((failed.value.response["Error"], reasons, str(wrong.value)))
    assert found[0] == found[1]
    assert errors[0] == errors[1]


def test_a_model_is_that_of_the_service_and_the_region() -> None:
    asked: list[tuple[str, str]] = []
    with short(DynamoModel(), lambda *named: asked.append(named)) as new:
        new.get_item(TableName=TABLE, Key=HERE)
    assert asked == [("dynamodb", "eu-west-1")]


class Faulty:
    """A model with a fault of ours, a refusal that is AWS's fault, and an answer that cannot be sent."""

    def __init__(self, what: str) -> None:
        self._what = what

    def get_item(self, **request: Any) -> dict[str, Any]:
        if self._what == "refusal":
            raise Refusal("InternalError", "try again").as_client_error("GetItem") from None
        return {"Item": {}[self._what]} if self._what == "fault" else {"Item": threading.Lock()}


@pytest.mark.parametrize("what", ["refusal", "fault", "answer"])
def test_what_fails_on_the_short_way_goes_the_usual_one(what: str) -> None:
    with short(Faulty(what)) as new:
        assert new.get_item(TableName=TABLE, Key=HERE)["Item"] == {"way": {"S": "usual"}}
        assert new.list_tables()["TableNames"] == ["usual"]  # the model has no such operation


def test_without_a_server_every_call_goes_the_usual_way() -> None:
    nowhere = DirectCalls("/nowhere/calls").client("dynamodb", "us-east-1", Usual)
    assert nowhere.get_item(TableName=TABLE, Key=HERE)["Item"] == {"way": {"S": "usual"}}


def test_the_end_of_the_server_ends_its_connections_and_threads() -> None:
    before = set(threading.enumerate())
    with tempfile.TemporaryDirectory() as folder:
        calls = ModelCalls(Path(folder), lambda service, region: DynamoModel())
        way = DirectCalls(calls.address)
        client = way.client("dynamodb", "us-east-1", Usual)
        assert client.get_item(TableName=TABLE, Key=HERE).get("Item") is None
        calls.close()
        assert set(threading.enumerate()) == before
        assert client.get_item(TableName=TABLE, Key=HERE)["Item"] == {"way": {"S": "usual"}}
        way.close()


def test_a_folder_whose_path_is_too_long_for_a_socket_has_no_short_way(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    with short_way(folder, lambda service, region: None) as environment:
        assert environment == {}


def test_regions_without_a_cell_are_answered_by_home() -> None:
    table, home, away = DynamoModel(), SimpleNamespace(ecs="home"), SimpleNamespace(ecs="away")
    model_of = models_of({"us-east-1": home, "eu-west-1": away}, dynamodb=table)
    assert [model_of("ecs", region) for region in ("eu-west-1", "us-east-1", "ap-south-1")] == ["away", "home", "home"]
    assert model_of("dynamodb", "eu-west-1") is table


def test_other_services_have_boto3s_client() -> None:
    usual = Usual()
    assert DirectCalls("/nowhere/calls").client("s3", "us-east-1", lambda: usual) is usual


def test_a_call_that_no_service_has_is_no_attribute() -> None:
    with short(DynamoModel()) as new, pytest.raises(AttributeError):
        new.get_items()


def test_a_refusal_of_the_usual_way_is_raised() -> None:
    class Refusing:
        def list_tables(self) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "ListTables")

    with pytest.raises(ClientError, match="AccessDenied"):
        DirectCalls("/nowhere/calls").client("dynamodb", "us-east-1", Refusing).list_tables()
