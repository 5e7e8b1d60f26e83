"""Lambda's aliases in local mode: made with boto3, invoked with, and known to the next local mode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.emulator.dynamodb import DynamoModel
from argosy.local.keeping.store import LocalStore
from argosy.local.lambdas.aliases import Aliases
from argosy.local.lambdas.function import FunctionSpec, LambdaFunction
from argosy.local.options import package_root
from tests.fakes.local_mode import forks
from tests.fakes.serving import front
from tests.fakes.signing import send
from tests.fakes.waiting import until

pytestmark = pytest.mark.slow

ARN = "arn:aws:lambda:us-east-1:123456789012:function:argosy-api"
ALIAS = {"FunctionName": "argosy-api", "Name": "q-research"}


@pytest.fixture
def function(tmp_path: Path) -> Iterator[LambdaFunction]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(package_root())}
    spec = FunctionSpec("argosy-api", "tests.fakes.lambda_handlers.echo", ARN, environment, 1, False, 30.0)
    made = LambdaFunction(spec, forks(), tmp_path / "function.log")
    yield made
    made.close()


@pytest.fixture
def client(function: LambdaFunction) -> Iterator[Any]:
    with front(functions={"argosy-api": function}) as clients:
        yield clients("lambda")


def code(call: Any, **fields: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**fields)
    return str(refused.value.response["Error"]["Code"])


def arn_of(client: Any, name: str, **fields: Any) -> str:
    return str(json.loads(client.invoke(FunctionName=name, Payload=b"{}", **fields)["Payload"].read())["arn"])


def test_a_function_gets_the_alias_it_was_invoked_with(client: Any, function: LambdaFunction) -> None:
    made = client.create_alias(**ALIAS, FunctionVersion="$LATEST", Description="d")
    assert (made["AliasArn"], made["FunctionVersion"], made["Description"]) == (f"{ARN}:q-research", "$LATEST", "d")
    for name, fields in (
        ("argosy-api:q-research", {}),
        ("argosy-api", {"Qualifier": "q-research"}),
        (f"{ARN}:q-research", {}),
        (ARN, {"Qualifier": "q-research"}),
    ):
        assert arn_of(client, name, **fields) == f"{ARN}:q-research"
    assert arn_of(client, "argosy-api") == ARN
    assert arn_of(client, "argosy-api", Qualifier="$LATEST") == f"{ARN}:$LATEST"
    client.invoke(FunctionName="argosy-api", Qualifier="q-research", InvocationType="Event", Payload=b'{"later": 1}')
    assert until(lambda: b"later" in function.latest)
    assert json.loads(function.latest)["arn"] == f"{ARN}:q-research"


def test_what_has_no_such_alias_is_not_invoked(client: Any) -> None:
    for qualifier in ("q-none", "7"):
        asked = {"FunctionName": "argosy-api", "Qualifier": qualifier, "Payload": b"{}"}
        assert code(client.invoke, **asked) == "ResourceNotFoundException"
    client.create_alias(**ALIAS, FunctionVersion="$LATEST")
    two = {"FunctionName": "argosy-api:q-research", "Qualifier": "q-other", "Payload": b"{}"}
    assert code(client.invoke, **two) == "InvalidParameterValueException"


def test_aliases_are_made_changed_listed_and_deleted_as_lambda_does(client: Any) -> None:
    client.create_alias(**ALIAS, FunctionVersion="$LATEST")
    assert code(client.create_alias, **ALIAS, FunctionVersion="$LATEST") == "ResourceConflictException"
    assert client.update_alias(**ALIAS, Description="new")["Description"] == "new"
    assert client.get_alias(**ALIAS)["Description"] == "new"
    assert [each["Name"] for each in client.list_aliases(FunctionName="argosy-api")["Aliases"]] == ["q-research"]
    client.delete_alias(**ALIAS)
    client.delete_alias(**ALIAS)
    assert client.list_aliases(FunctionName=ARN)["Aliases"] == []
    assert code(client.get_alias, **ALIAS) == "ResourceNotFoundException"
    assert code(client.update_alias, **ALIAS, Description="x") == "ResourceNotFoundException"


def test_bad_requests_about_aliases_are_refused(client: Any) -> None:
    other = {"FunctionName": "other", "Name": "q-x"}
    assert code(client.create_alias, **other, FunctionVersion="$LATEST") == "ResourceNotFoundException"
    assert code(client.create_alias, **ALIAS, FunctionVersion="3") == "ResourceNotFoundException"
    named = {"FunctionName": "argosy-api", "Name": "no alias", "FunctionVersion": "$LATEST"}
    assert code(client.create_alias, **named) == "ValidationException"
    url = f"{client.meta.endpoint_url}/2015-03-31/functions/argosy-api/aliases"
    assert send("POST", url, "lambda", b"{").status_code == 400
    client.create_alias(**ALIAS, FunctionVersion="$LATEST")
    assert send("POST", f"{url}/q-research", "lambda", b"{}").status_code == 404


def test_the_next_local_mode_has_the_aliases_of_the_one_before(tmp_path: Path, function: LambdaFunction) -> None:
    def kept(fresh: bool = False) -> tuple[LocalStore, Aliases]:
        folder, aliases = LocalStore(tmp_path / "state", fresh=fresh), Aliases({"argosy-api": function})
        folder.keep_models(DynamoModel(), {})
        folder.keep_aliases(aliases)
        return folder, aliases

    folder, aliases = kept()
    for name in ("q-a", "q-b"):
        body = json.dumps({"Name": name, "FunctionVersion": "$LATEST"}).encode()
        assert aliases.answer("POST", "/2015-03-31/functions/argosy-api/aliases", body).status == 201
    assert aliases.answer("DELETE", "/2015-03-31/functions/argosy-api/aliases/q-a", b"").status == 204
    folder.close()
    folder, aliases = kept()
    assert (aliases.has("argosy-api", "q-a"), aliases.has("argosy-api", "q-b")) == (False, True)
    folder.close()
    folder, aliases = kept(fresh=True)
    assert not aliases.known
    folder.close()
