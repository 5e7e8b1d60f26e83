"""One sentence for each way in which no deployment is reached."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from botocore.parsers import ResponseParserError

from argosy.client.access import Access
from argosy.client.api import ApiClient
from argosy.client.aws_clients import Connection
from argosy.client.deployment import find_deployment
from argosy.client.errors import ArgosyError, InvalidInput, from_aws
from tests.fakes.cli import Parameters, World


@pytest.mark.parametrize(
    ("url", "sentence", "step"),
    [
        ("127.0.0.1:4566", "The endpoint 127.0.0.1:4566 has no scheme.", "write http://127.0.0.1:4566"),
        ("localhost", "has no scheme", "write http://localhost"),
        ("ftp://here", "is not a URL", "http://127.0.0.1:4566"),
        ("http://", "is not a URL", ""),
        ("http://here:99999", "is not a URL", ""),
        ("http://[", "is not a URL", ""),
    ],
)
def test_an_invalid_endpoint_is_reported_before_anything_is_called(url: str, sentence: str, step: str) -> None:
    access = Access(Connection(endpoint_url=url), lambda connection, service: pytest.fail("a client was made"))
    with pytest.raises(InvalidInput) as refused:
        _ = access.deployment
    assert sentence in refused.value.message
    assert step in refused.value.next_step


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:4566", "https://vpce-1.lambda.us-east-1.vpce.amazonaws.com"])
def test_an_address_is_one(url: str | None) -> None:
    Connection(endpoint_url=url).check()


def test_the_command_says_so_too() -> None:
    refused = World().argosy("runs", "--endpoint-url", "127.0.0.1:4566")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == ("error: The endpoint 127.0.0.1:4566 has no scheme.\nnext: write http://127.0.0.1:4566\n")


def test_a_starting_local_mode_differs_from_a_missing_one() -> None:
    parameters = Parameters()
    parameters.values = {}
    with pytest.raises(ArgosyError) as refused:
        find_deployment(Connection(endpoint_url="http://127.0.0.1:4567"), lambda service: parameters)
    assert "http://127.0.0.1:4567 has no deployment of the stage main: it is still starting" in refused.value.message
    assert "argosy local --port 4567" in refused.value.next_step
    busy = ClientError({"Error": {"Code": "503"}, "ResponseMetadata": {"HTTPStatusCode": 503}}, "GetParameter")
    assert from_aws(busy).message == "The endpoint is not ready: local mode may still be starting."


class NoFunction:
    def __init__(self, code: str) -> None:
        self.code = code

    def invoke(self, **_: Any) -> Any:
        raise ClientError({"Error": {"Code": self.code, "Message": "Function not found: f"}}, "Invoke")


def test_a_missing_function_is_reported() -> None:
    with pytest.raises(ArgosyError, match="The deployment has no function f") as refused:
        ApiClient(NoFunction("ResourceNotFoundException"), "f").describe("x")
    assert "argosy doctor" in refused.value.next_step
    with pytest.raises(ClientError):
        ApiClient(NoFunction("AccessDeniedException"), "f").describe("x")


def test_a_stale_endpoint_is_reported_with_the_variable_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = EndpointConnectionError(endpoint_url="http://127.0.0.1:4566/")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("ARGOSY_ENDPOINT_URL", "http://127.0.0.1:4566")
    assert from_aws(gone).message == "Nothing answers at http://127.0.0.1:4566/, from ARGOSY_ENDPOINT_URL."
    monkeypatch.delenv("ARGOSY_ENDPOINT_URL")
    assert from_aws(gone).message == "Nothing answers at http://127.0.0.1:4566/."


def test_what_is_no_aws_and_what_lacks_credentials_say_what_helps() -> None:
    assert from_aws(ResponseParserError("<html>")).message == "The endpoint does not answer like AWS."
    step = from_aws(NoCredentialsError()).next_step
    assert "`argosy local`" in step
    assert "export ARGOSY_ENDPOINT_URL=http://127.0.0.1:4566" in step


def test_an_answer_that_is_not_the_apis_is_reported() -> None:
    class Odd:
        def invoke(self, **_: Any) -> Any:
            return {"Payload": io.BytesIO(json.dumps([1]).encode())}

    with pytest.raises(ArgosyError, match="did not answer like Argosy's api"):
        ApiClient(Odd(), "f").describe("x")
