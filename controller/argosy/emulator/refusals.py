"""How does a model of an AWS service refuse a request? As boto3 does: a ClientError with AWS's code and message.

Inside the models a refusal is `Refused`, which need not know the operation's name; `operation` turns it into botocore's
error, takes the model's lock and lets the model's clock catch up before each call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, Protocol, TypeVar

from botocore.exceptions import ClientError

JSON = dict[str, Any]
_AWS_FAULTS = frozenset({"ServerException", "InternalError"})


class Refused(Exception):
    """A request that AWS would answer with this code. `members` are further fields of the modelled exception."""

    def __init__(self, code: str, message: str, **members: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.members = members

    def as_client_error(self, operation_name: str) -> ClientError:
        """What boto3 would raise."""
        status = 500 if self.code in _AWS_FAULTS else 400
        error = {"Code": self.code, "Message": self.message}
        metadata = {"HTTPStatusCode": status, "HTTPHeaders": {}, "RetryAttempts": 0}
        return ClientError({"Error": error, "ResponseMetadata": metadata, **self.members}, operation_name)


class Model(Protocol):
    """What `operation` needs of the model whose method it wraps."""

    @property
    def lock(self) -> RLock: ...

    def catch_up(self) -> None:
        """Do what time alone does, e.g. forget tasks that stopped long ago."""


M = TypeVar("M", bound=Model)


def operation(method: Callable[[M, JSON], JSON]) -> Callable[..., JSON]:
    """A public API operation: called boto3 style, with keyword arguments; the method receives them as one dict."""
    name = "".join(part.capitalize() for part in method.__name__.split("_"))

    @wraps(method)
    def call(self: M, **request: Any) -> JSON:
        with self.lock:
            self.catch_up()
            try:
                return method(self, request)
            except Refused as refused:
                raise refused.as_client_error(name) from None

    return call
