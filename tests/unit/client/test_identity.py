"""The requests that a client signs: those that start something, where the deployment can verify it, with the user's own
keys."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from argosy.client.access import Access
from argosy.client.api import Signer
from argosy.client.aws_clients import Connection, find_credentials
from argosy.model.signed_requests import AUTHORIZATION, PROOF, TEXT
from tests.fakes.cli import DEPLOYMENT, World, run_view
from tests.fakes.sts import credentials

IDENTITY = {"host": "sts.us-east-1.amazonaws.com", "deployment": "123456789012/us-east-1/argosy"}
SPEC = "version: 1\nname: digits\ncontainer: {image: argosy/digits}\narray: {size: 3}\n"


class Lambda:
    def __init__(self) -> None:
        self.payloads: list[Any] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's name
        self.payloads.append(json.loads(Payload))
        return {"Payload": io.BytesIO(b'{"statusCode": 200, "body": {}}')}


def access(found: Lambda, keys: Any = None, **connection: Any) -> Access:
    world = World()
    world.parameters.values["/argosy/deployment"] = json.dumps({**DEPLOYMENT, "identity": IDENTITY})
    clients = {"lambda": found, "ssm": world.parameters}
    return Access(Connection(**connection), lambda _, service: clients[service], lambda _: keys)


def test_requests_that_start_something_are_signed_and_reads_are_not() -> None:
    found = Lambda()
    api = access(found, credentials()).api
    api.submit({"name": "digits"}, "t-1")
    api.describe("run-1")
    signed, plain = found.payloads
    request = json.loads(signed[TEXT])
    assert request == {"action": "SubmitRun", "spec": {"name": "digits"}, "clientToken": "t-1"}
    proof = signed[PROOF]
    assert proof["host"] == "sts.us-east-1.amazonaws.com"
    assert proof["x-argosy-deployment"] == IDENTITY["deployment"]
    assert proof["x-argosy-action"] == "SubmitRun"
    assert (
        "/us-east-1/sts/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-argosy-action;"
        in proof[AUTHORIZATION]
    )
    assert "alices-secret" not in json.dumps(signed)
    assert plain == {"action": "DescribeRun", "runId": "run-1"}


def test_nothing_is_signed_without_keys_without_the_option_or_without_a_verifier() -> None:
    found = Lambda()
    access(found).api.submit({"name": "digits"}, "t-1")
    access(found, credentials(), signs=False).api.submit({"name": "digits"}, "t-1")
    world = World().answers("SubmitRun", run_view())
    assert [PROOF in each for each in found.payloads] == [False, False]
    assert Access(Connection(), world.client, lambda _: pytest.fail("asked for keys")).api.submit({}, "t")


def test_the_keys_are_those_that_boto3_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDALICE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "alices-secret")
    found = find_credentials(Connection())
    assert (found.access_key, found.secret_key) == ("AKIDALICE", "alices-secret")
    assert find_credentials(Connection()).access_key == "AKIDALICE"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDBOB")
    assert find_credentials(Connection()).access_key == "AKIDBOB"


@pytest.mark.parametrize(("words", "shell"), [(("--unsigned",), {}), ((), {"ARGOSY_UNSIGNED": "1"})])
def test_a_command_signs_unless_unsigned_is_given(words: tuple[str, ...], shell: dict[str, str], tmp_path: Any) -> None:
    (tmp_path / "run.yaml").write_text(SPEC)
    world = World().answers("SubmitRun", run_view()).answers("ValidateRun", {"name": "x", "tasks": 3, "warnings": []})
    said = world.argosy("submit", str(tmp_path / "run.yaml"), "-d", *words, **shell)
    assert said.exit_code == 0, said.output
    assert {each.signs for each in world.connections} == {False}
    assert (" --unsigned" in said.stdout) == bool(words)


def test_a_header_of_the_token_is_signed_too() -> None:
    from argosy.model.signed_requests import SignedFor

    made = Signer(SignedFor(**IDENTITY), lambda: credentials(token="session"), "us-east-1").headers("SubmitRun", "{}")
    assert made is not None
    assert ";x-amz-security-token;" in made[AUTHORIZATION]
