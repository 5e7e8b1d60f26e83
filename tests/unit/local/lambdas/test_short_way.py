"""Calls of a function's process go the short way, with the answers and errors of the usual one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.client.local_key import LocalKey
from argosy.local.clients import LocalClients
from argosy.local.lambdas.short_way import DirectCalls
from argosy.local.server.signatures import SECRET_SCHEME
from argosy.loopback.server import WsgiServer
from tests.fakes.serving import front, moto_clients, served
from tests.fakes.signing import KEY

STRANGER = LocalKey("AKIDSTRANGER", "its-secret", KEY.region)
HERE = {"pk": {"S": "a"}, "sk": {"S": "b"}}


@contextmanager
def client(endpoint: str, service: str, key: LocalKey = KEY, way: DirectCalls | None = None) -> Iterator[Any]:
    """One that goes the short way, by default with the right key."""
    way = way or DirectCalls(endpoint, KEY.id, KEY.secret)
    clients = LocalClients(endpoint, KEY.region, key)
    clients(service).meta.events.register(f"before-call.{service}", way)
    yield clients(service)
    clients.close()
    way.close()


def test_answers_and_errors_are_those_of_the_usual_way() -> None:
    # Without the short way the client would be refused.
    with front() as usual, client(usual.endpoint, "dynamodb", STRANGER) as short:
        short.put_item(TableName="argosy-state", Item={**HERE, "n": {"N": "7"}, "b": {"B": b"\0\xff"}})
        found = [each.get_item(TableName="argosy-state", Key=HERE)["Item"] for each in (short, usual("dynamodb"))]
        with pytest.raises(short.exceptions.ConditionalCheckFailedException) as failed:
            short.put_item(TableName="argosy-state", Item=HERE, ConditionExpression="attribute_not_exists(pk)")
        put = {"TableName": "argosy-state", "Item": HERE, "ConditionExpression": "attribute_not_exists(pk)"}
        with pytest.raises(short.exceptions.TransactionCanceledException) as cancelled:
            short.transact_write_items(TransactItems=[{"Put": put}])
    assert cancelled.value.response["CancellationReasons"][0]["Code"] == "ConditionalCheckFailed"
    assert found[0] == found[1]
    assert failed.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_objects_and_their_absence_are_those_of_the_usual_way() -> None:
    with moto_clients() as usual, client(usual.endpoint, "s3", STRANGER) as short:
        usual("s3").create_bucket(Bucket="results")
        short.put_object(Bucket="results", Key="a é/1", Body=b"\0one", Metadata={"attempt": "1"}, IfNoneMatch="*")
        with pytest.raises(ClientError, match="PreconditionFailed"):
            short.put_object(Bucket="results", Key="a é/1", Body=b"two", IfNoneMatch="*")
        with pytest.raises(ClientError, match="404"):
            short.head_object(Bucket="results", Key="none")
        seen = [each.head_object(Bucket="results", Key="a é/1") for each in (short, usual("s3"))]
        listed = short.list_objects_v2(Bucket="results", Prefix="a é/")["Contents"]
        assert usual("s3").get_object(Bucket="results", Key="a é/1")["Body"].read() == b"\0one"
        short.delete_object(Bucket="results", Key="a é/1")
        assert "Contents" not in usual("s3").list_objects_v2(Bucket="results")
    kept = ("ContentLength", "Metadata", "ETag")
    assert [[each[name] for name in kept] for each in seen] == [[4, {"attempt": "1"}, listed[0]["ETag"]]] * 2


Answering = Callable[[], str]


def way_taken(answer: Answering = lambda: "200 OK") -> Callable[..., list[bytes]]:
    """An SQS whose list of queues is the way that the request took. answer: the status on the short one."""

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        short = environ["HTTP_AUTHORIZATION"].startswith(SECRET_SCHEME)
        start_response(answer() if short else "200 OK", [("Content-Type", "application/x-amz-json-1.0")])
        return [json.dumps({"QueueUrls": ["short" if short else "usual"]}).encode()]

    return application


def hang_up() -> str:
    raise ConnectionResetError


@pytest.mark.parametrize("answer", [lambda: "503 Service Unavailable", hang_up])
def test_what_fails_on_the_short_way_goes_the_usual_one(answer: Answering) -> None:
    with served(way_taken(answer)) as server, client(f"http://127.0.0.1:{server.port}", "sqs") as short:
        assert short.list_queues()["QueueUrls"] == ["usual"]


def test_another_endpoint_gets_no_secret() -> None:
    elsewhere = DirectCalls("http://127.0.0.1:1", KEY.id, KEY.secret)
    with served(way_taken()) as server, client(f"http://127.0.0.1:{server.port}", "sqs", way=elsewhere) as other:
        assert other.list_queues()["QueueUrls"] == ["usual"]


def test_a_connection_that_the_server_has_closed_is_replaced() -> None:
    first = WsgiServer(way_taken())
    first.start()
    with client(f"http://127.0.0.1:{first.port}", "sqs") as short:
        ways = [short.list_queues()["QueueUrls"]]
        first.close()
        second = WsgiServer(way_taken(), first.port)
        second.start()
        ways.append(short.list_queues()["QueueUrls"])
        second.close()
    assert ways == [["short"], ["short"]]


def test_a_refusal_is_the_services_own() -> None:
    with front() as usual:
        way = DirectCalls(usual.endpoint, STRANGER.id, STRANGER.secret)
        with (
            client(usual.endpoint, "dynamodb", way=way) as strange,
            pytest.raises(ClientError, match="UnrecognizedClientException"),
        ):
            strange.get_item(TableName="argosy-state", Key=HERE)
