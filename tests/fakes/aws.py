"""Clients that answer from a script and check every request against botocore's own model of the service."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError
from botocore.validate import ParamValidator

from argosy.aws.call_rates import CallRate, CallRates, TokenBucket
from argosy.aws.cell import AwsDeployment, Cell
from argosy.aws.items import S3ItemsReader
from argosy.aws.launcher import TaskLauncher
from argosy.aws.preparation import RunPreparation
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptKey
from tests.builders import (
    CELL,
    NOW,
    RUN_ID,
    instance_id,
)

ACCOUNT = "123456789012"
DEPLOYMENT = AwsDeployment(
    stage="main",
    prefix="argosy",
    log_group="/ecs/argosy/tasks",
    execution_role_arn=f"arn:aws:iam::{ACCOUNT}:role/execution",
    task_role_arn=f"arn:aws:iam::{ACCOUNT}:role/task",
    target_groups={"web": "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/0123456789abcdef"},
    threads=1,
)


KEY = AttemptKey(RUN_ID, 0, 1, 0)
LAUNCH = Launch(KEY, 1, "argosy-testtest-1", instance_id(1), CELL)
SOON = NOW + 5


@cache
def operations(service: str) -> dict[str, Any]:
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


class Clock:
    """Time that passes only in `sleep`."""

    def __init__(self, at: float = NOW) -> None:
        self.at = at
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


# What every sweep asks and few tests are about: no instance fails a check.
UNLESS_TOLD: dict[str, dict[str, Any]] = {"ec2": {"describe_instance_status": {"InstanceStatuses": []}}}


class ScriptedClient:
    """Each operation has a script: one answer for every call, or a list with one for each call.

    An answer is a value, an exception to raise, or a function of the request. Calls are recorded.
    """

    def __init__(self, service: str, **scripts: Any) -> None:
        self._operations, self._lock = operations(service), Lock()
        self.scripts = {**UNLESS_TOLD.get(service, {}), **scripts}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def requests(self, operation: str) -> list[dict[str, Any]]:
        return [request for name, request in self.calls if name == operation]

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation.startswith("_") or operation not in self._operations:
            raise AttributeError(operation)

        def call(**request: Any) -> Any:
            shape = self._operations[operation].input_shape
            report = ParamValidator().validate(request, shape)
            assert not report.has_errors(), report.generate_report()
            with self._lock:
                self.calls.append((operation, request))
                assert operation in self.scripts, f"{operation} is not in the script"
                script = self.scripts[operation]
                answer = script.pop(0) if isinstance(script, list) else script
            if isinstance(answer, BaseException):
                raise answer
            return answer(**request) if callable(answer) else answer

        return call


def refusal(code: str, message: str = "", status: int = 400, **members: Any) -> ClientError:
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}, **members}
    return ClientError(response, "AnyOperation")


def timed_out() -> ReadTimeoutError:
    return ReadTimeoutError(endpoint_url="https://ecs.us-east-1.amazonaws.com")


# What S3 answers, or fails with, while it is away.
S3_OUTAGES = [
    refusal("SlowDown", "Please reduce your request rate.", 503),
    refusal("InternalError", "We encountered an internal error.", 500),
    ConnectTimeoutError(endpoint_url="https://results.s3.amazonaws.com"),
]


def cell(clock: Clock, ecs: Any = None, ec2: Any = None, *, name: str = CELL, pace: float = 1000) -> Cell:
    """A cell whose buckets hold `pace` tokens and refill as fast a second."""

    def bucket() -> TokenBucket:
        return TokenBucket(CallRate(pace, pace), clock, clock.sleep)

    return Cell(name, "argosy", ecs, ec2, CallRates(bucket(), bucket(), bucket(), bucket()))


def launching(ecs: Any, clock: Clock | None = None, s3: Any = None, *, home: Cell | None = None) -> TaskLauncher:
    """The launcher of one cell: `home`, or a cell around `ecs` that never runs out of tokens."""
    clock = clock or Clock()
    cells = {CELL: home or cell(clock, ecs)}
    items = S3ItemsReader(s3)
    return TaskLauncher(DEPLOYMENT, cells, RunPreparation(DEPLOYMENT, cells, s3, items), clock)
