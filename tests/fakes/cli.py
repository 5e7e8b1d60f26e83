"""An AWS of a few dictionaries that the commands receive in place of boto3 clients."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer.testing
from botocore.exceptions import ClientError
from typer.main import get_command
from typer.testing import CliRunner

from argosy.cli.main import app
from argosy.cli.session import Tools
from argosy.client.aws_clients import Connection

# typer builds every command for each call, a third of the time of a case. They do not change.
vars(typer.testing)["_get_command"] = cache(get_command)

GOLDEN = Path(__file__).parents[1] / "data" / "cli"
NOW = 1_795_242_453.0  # 2026-11-21 06:27:33 UTC
RUN_ID = "digits-261121-062733-k3f9"
OUTPUT = f"s3://argosy-results/{RUN_ID}/"
DEPLOYMENT = {
    "stage": "main",
    "region": "us-east-1",
    "cells": ["us-east-1"],
    "cluster": "argosy",
    "apiFunction": "argosy-api",
    "controllerFunction": "argosy-controller",
    "bucket": "argosy-results",
    "logGroup": "/ecs/argosy/tasks",
    "table": "argosy-state",
    "queueUrl": "https://sqs/argosy-events",
}
_SHELL_NAMES = """
    ARGOSY_ENDPOINT_URL AWS_ENDPOINT_URL AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE ARGOSY_STAGE ARGOSY_QUEUE
    COLUMNS FORCE_COLOR NO_COLOR TTY_COMPATIBLE
"""
CLEAN_SHELL: dict[str, str | None] = dict.fromkeys(_SHELL_NAMES.split())


def golden(name: str, text: str) -> None:
    """The text equals tests/data/cli/NAME.txt; trailing spaces do not count."""
    lines = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    assert lines == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def refusal(code: str, message: str = "no", operation: str = "Operation") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def tasks(**counts: int) -> dict[str, int]:
    """Counts of a run's tasks; `total` is their sum."""
    states = ("pending", "starting", "running", "succeeded", "failed", "cancelled")
    filled = {state: counts.get(state, 0) for state in states}
    return {"total": sum(filled.values()), **filled}


def run_view(**changes: Any) -> dict[str, Any]:
    """A run that is well under way."""
    return {
        "runId": RUN_ID,
        "name": "digits",
        "status": "RUNNING",
        "statusReason": None,
        "submittedAt": "2026-11-21T06:26:33.000Z",
        "startedAt": "2026-11-21T06:26:43.000Z",
        "stoppedAt": None,
        "output": OUTPUT,
        "gpus": 0,
        "tasks": tasks(pending=2, running=4, succeeded=12),
        "attempts": 17,
        "interruptions": 1,
        "costUsd": 0.002134,
        "onDemandCostUsd": 0.0064,
        "instances": 3,
        "failures": [],
        "waiting": None,
        **changes,
    }


def ended(status: str = "SUCCEEDED", **changes: Any) -> dict[str, Any]:
    return run_view(
        **{
            "status": status,
            "stoppedAt": "2026-11-21T06:27:45.000Z",
            "tasks": tasks(succeeded=18),
            "attempts": 19,
            **changes,
        }
    )


def task_row(index: int, **changes: Any) -> dict[str, Any]:
    return {
        "index": index,
        "status": "SUCCEEDED",
        "attempts": 1,
        "exitCode": 0,
        "reason": None,
        "instance": "i-0abc",
        "seconds": 4.25,
        "gpuIds": [],
        "taskArn": None,
        **changes,
    }


def instance(**changes: Any) -> dict[str, Any]:
    return {
        "instanceId": "i-0a1b2c3d4e5f60718",
        "instanceType": "c5.xlarge",
        "availabilityZone": "us-east-1a",
        "cell": "us-east-1",
        "purchase": "spot",
        "status": "ACTIVE",
        "cpu": {"total": 4.0, "used": 3.0},
        "memory": {"total": 7526, "used": 3072},
        "gpus": {"total": 0, "used": 0},
        "tasks": 3,
        "priceUsdPerHour": 0.0712,
        "onDemandUsdPerHour": 0.17,
        "launchedAt": "2026-11-21T06:26:33.000Z",
        "stoppedAt": None,
        **changes,
    }


class Functions:
    """Lambda with one function, the api. `answers`: action -> what it answers, the last one forever."""

    def __init__(self) -> None:
        gone = {"statusCode": 404, "body": {"error": {"code": "ResourceNotFoundException", "message": "no history"}}}
        self.answers: dict[str, list[Any]] = {"DescribeTask": [gone]}
        self.requests: list[dict[str, Any]] = []
        self.error = ""
        self.qualifiers: list[str] = []
        self.aliases: dict[str, dict[str, Any]] = {}
        self.unreserved = 1000

    def get_account_settings(self) -> dict[str, Any]:
        return {"AccountLimit": {"UnreservedConcurrentExecutions": self.unreserved}}

    def create_alias(self, *, FunctionName: str, Name: str, FunctionVersion: str, Description: str) -> dict[str, Any]:
        if Name in self.aliases:
            raise refusal("ResourceConflictException", operation="CreateAlias")
        assert (FunctionName, FunctionVersion) == ("argosy-api", "$LATEST")
        arn = f"arn:aws:lambda:us-east-1:123456789012:function:{FunctionName}:{Name}"
        self.aliases[Name] = {"AliasArn": arn, "Name": Name, "FunctionVersion": FunctionVersion}
        return self.aliases[Name]

    def get_alias(self, *, FunctionName: str, Name: str) -> dict[str, Any]:
        return self.aliases[Name]

    def update_alias(self, *, FunctionName: str, Name: str, **about: Any) -> dict[str, Any]:
        self.aliases[Name] |= about
        return self.aliases[Name]

    def delete_alias(self, *, FunctionName: str, Name: str) -> None:
        self.aliases.pop(Name, None)

    def list_aliases(self, *, FunctionName: str, Marker: str = "") -> dict[str, Any]:
        """One on a page."""
        names = sorted(self.aliases)
        place = int(Marker or 0)
        more = {"NextMarker": str(place + 1)} if place + 1 < len(names) else {}
        return {"Aliases": [self.aliases[name] for name in names[place : place + 1]], **more}

    def invoke(self, *, FunctionName: str, Payload: bytes, Qualifier: str = "") -> dict[str, Any]:
        assert FunctionName == "argosy-api"
        request = json.loads(Payload)
        self.requests.append(request)
        self.qualifiers.append(Qualifier)
        if Qualifier and Qualifier not in self.aliases:
            raise refusal("ResourceNotFoundException", operation="Invoke")
        if self.error:
            return {
                "FunctionError": "Unhandled",
                "Payload": io.BytesIO(json.dumps({"errorMessage": self.error}).encode()),
            }
        answers = self.answers[request["action"]]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, BaseException):
            raise answer
        answer = answer(request) if callable(answer) else answer
        is_body = isinstance(answer, dict) and "statusCode" not in answer
        reply = {"statusCode": 200, "body": answer} if is_body else answer
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(reply).encode())}

    def get_function_configuration(self, *, FunctionName: str) -> dict[str, Any]:
        raise refusal("ResourceNotFoundException", operation="GetFunctionConfiguration")


def api_error(status: int, code: str, message: str, *faults: tuple[str, str]) -> dict[str, Any]:
    fields = [{"path": path, "message": text} for path, text in faults]
    return {
        "statusCode": status,
        "body": {"error": {"code": code, "message": message, "fieldList": fields, "requestId": "r-1"}},
    }


class Parameters:
    """SSM."""

    meta = SimpleNamespace(region_name="us-east-1")  # as boto3's clients have it

    def __init__(self) -> None:
        self.values = {"/argosy/deployment": json.dumps(DEPLOYMENT)}
        self.denied = False

    def get_parameter(self, *, Name: str) -> dict[str, Any]:
        if self.denied:
            raise refusal("AccessDeniedException", operation="GetParameter")
        if Name not in self.values:
            raise refusal("ParameterNotFound", operation="GetParameter")
        return {"Parameter": {"Name": Name, "Value": self.values[Name]}}

    def get_paginator(self, operation: str) -> Pages:
        assert operation == "get_parameters_by_path"
        return Pages(self._by_path)

    def _by_path(self, Path: str) -> list[dict[str, Any]]:
        names = [name for name in self.values if name.startswith(f"{Path}/")]
        return [{"Parameters": [{"Name": name, "Value": self.values[name]} for name in names]}]


@dataclass
class Pages:
    """A paginator over a function's answers."""

    answer: Callable[..., Sequence[dict[str, Any]]]

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        yield from self.answer(**request)


class Objects:
    """S3. Keys are (bucket, key)."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[str, str], bytes] = {}
        self.refuses: dict[str, Exception] = {}  # by key
        self.metadata: dict[str, dict[str, str]] = {}  # by key
        self.refuses_writes: Exception | None = None
        self.written: list[str] = []  # keys
        self.asked: list[str] = []  # keys of head_object
        self.ages: dict[str, timedelta] = {}  # by key; otherwise none

    def put(self, uri: str, body: bytes | str | dict[str, Any]) -> None:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        text = json.dumps(body) if isinstance(body, dict) else body
        self.bodies[bucket, key] = text.encode() if isinstance(text, str) else text

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        if Key in self.refuses:
            raise self.refuses[Key]
        if (Bucket, Key) not in self.bodies:
            raise refusal("NoSuchKey", operation="GetObject")
        body = io.BytesIO(self.bodies[Bucket, Key])
        return {"Body": body, "Metadata": self.metadata.get(Key, {}), "LastModified": self._made(Key)}

    def _made(self, key: str) -> datetime:
        return datetime.now(UTC) - self.ages.get(key, timedelta())

    def head_bucket(self, *, Bucket: str, ExpectedBucketOwner: str) -> None:
        if Bucket in self.refuses:
            raise self.refuses[Bucket]

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        self.asked.append(Key)
        if Key in self.refuses:
            raise self.refuses[Key]
        if (Bucket, Key) not in self.bodies:
            raise refusal("404", operation="HeadObject")
        return {"ContentLength": len(self.bodies[Bucket, Key]), "LastModified": self._made(Key)}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        if self.refuses_writes:
            raise self.refuses_writes
        self.written.append(Key)
        self.ages.pop(Key, None)
        self.bodies[Bucket, Key] = Body

    def copy_object(self, *, Bucket: str, Key: str, CopySource: dict[str, str], MetadataDirective: str) -> None:
        assert MetadataDirective == "REPLACE"  # S3 refuses to copy an object onto itself without a change
        if (Bucket, CopySource["Key"]) not in self.bodies:
            raise refusal("NoSuchKey", operation="CopyObject")
        self.put_object(Bucket=Bucket, Key=Key, Body=self.bodies[Bucket, CopySource["Key"]])

    def delete_object(self, *, Bucket: str, Key: str) -> None:
        del self.bodies[Bucket, Key]

    def upload_file(self, path: str, bucket: str, key: str, Callback: Callable[[int], None]) -> None:
        body = Path(path).read_bytes()
        self.put_object(Bucket=bucket, Key=key, Body=body)
        Callback(len(body))

    def get_paginator(self, operation: str) -> Pages:
        assert operation == "list_objects_v2"
        return Pages(self._listed)

    def _listed(self, Bucket: str, Prefix: str) -> list[dict[str, Any]]:
        if Bucket in self.refuses:
            raise self.refuses[Bucket]
        found = [(k, len(body)) for (b, k), body in sorted(self.bodies.items()) if b == Bucket and k.startswith(Prefix)]
        return [{"Contents": [{"Key": key, "Size": size, "LastModified": NOW} for key, size in found]}]


@dataclass
class World:
    """The AWS a test sets up, and a shell to type commands in. `sleep` moves the clock; nothing waits."""

    functions: Functions = field(default_factory=Functions)
    parameters: Parameters = field(default_factory=Parameters)
    objects: Objects = field(default_factory=Objects)
    others: dict[str, Any] = field(default_factory=dict)
    now: float = NOW
    is_terminal: bool = False
    typed: str | None = None
    on_sleep: Callable[[float], None] = lambda _: None
    slept: list[float] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    def client(self, connection: Connection, service: str) -> Any:
        self.connections.append(connection)
        own = {"lambda": self.functions, "ssm": self.parameters, "s3": self.objects}
        return (own | self.others)[service]

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        self.on_sleep(seconds)

    def answers(self, action: str, *bodies: Any) -> World:
        self.functions.answers[action] = list(bodies)
        return self

    def argosy(self, *words: str, **environment: str) -> Any:
        """The result of a command line: exit_code, stdout, stderr."""
        tools = Tools(self.client, lambda: self.now, self.sleep, lambda: "token-1", lambda: self.is_terminal)
        return CliRunner().invoke(app, list(words), self.typed, obj=tools, env=CLEAN_SHELL | environment)

    def document(self, *words: str) -> Any:
        """What --json prints."""
        result = self.argosy(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


def failure_kind(count: int, index: int, exit_code: int | None, reason: str, **changes: Any) -> dict[str, Any]:
    """One of `failureGroups` of a run view."""
    return {
        "reason": reason,
        "exitCode": exit_code,
        "count": count,
        "firstIndex": index,
        "lastIndex": index + count - 1,
        "firstAt": "2026-11-21T06:26:43.000Z",
        "lastAt": "2026-11-21T06:27:43.000Z",
        **changes,
    }


FAILURE = {
    "index": 3,
    "attempt": 2,
    "exitCode": 137,
    "reason": "OutOfMemoryError: killed [at 1024 MiB]",
    "instance": "i-0abc",
}
