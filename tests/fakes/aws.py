"""Clients that answer from a script and check every request against botocore's own model of the service."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import ClientError, ReadTimeoutError
from botocore.validate import ParamValidator

from argosy.aws.cell import Cell, Deployment
from argosy.aws.pace import Pace, Paces
from tests.builders import CELL, NOW

ACCOUNT = "123456789012"
DEPLOYMENT = Deployment(
    stage="main",
    prefix="argosy",
    log_group="/ecs/argosy/tasks",
    execution_role_arn=f"arn:aws:iam::{ACCOUNT}:role/execution",
    task_role_arn=f"arn:aws:iam::{ACCOUNT}:role/task",
)


@cache
def operations(service: str) -> dict[str, Any]:
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self, at: float = NOW) -> None:
        self.at = at
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


class ScriptedClient:
    """Each operation has a script: one answer for every call, or a list with one for each call.

    An answer is a value, an exception to raise, or a function of the request. Calls are recorded.
    """

    def __init__(self, service: str, **scripts: Any) -> None:
        self._operations, self._scripts, self._lock = operations(service), scripts, Lock()
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
                assert operation in self._scripts, f"{operation} is not in the script"
                script = self._scripts[operation]
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


def cell(clock: Clock, ecs: Any = None, ec2: Any = None, *, name: str = CELL, pace: float = 1000) -> Cell:
    """A cell whose buckets hold `pace` tokens and refill as fast a second."""

    def bucket() -> Pace:
        return Pace(pace, pace, clock, clock.sleep)

    return Cell(name, "argosy", ecs, ec2, Paces(bucket(), bucket(), bucket(), bucket()))
