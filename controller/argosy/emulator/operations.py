"""Operations of an emulated service and their refusals, both as in boto3.

Inside the models a refusal is `Refusal`, which need not know the operation's name. `operation` turns it into botocore's
ClientError with AWS's code and message. Before each call it takes the service's lock and lets the service catch up with
its clock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar

from botocore.exceptions import ClientError

JSON = dict[str, Any]
_AWS_FAULTS = frozenset({"ServerException", "InternalError"})


class Refusal(Exception):
    """A request that AWS would answer with this code. `members` are further fields of the modelled exception."""

    def __init__(self, code: str, message: str, **members: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.members = members

    def as_client_error(self, operation_name: str) -> ClientError:
        """The error that boto3 would raise."""
        status = 500 if self.code in _AWS_FAULTS else 400
        error = {"Code": self.code, "Message": self.message}
        metadata = {"HTTPStatusCode": status, "HTTPHeaders": {}, "RetryAttempts": 0}
        return ClientError({"Error": error, "ResponseMetadata": metadata, **self.members}, operation_name)


class LockedService(Protocol):
    """The members that `operation` needs of the service whose method it wraps."""

    @property
    def lock(self) -> RLock:
        """Held during each operation: several server threads may call."""

    def catch_up(self) -> None:
        """Apply the effects of time alone, e.g. forget tasks that stopped long ago."""


class EmulatedService:
    """A service that changes only when it is called."""

    def __init__(self) -> None:
        self.lock = RLock()

    def catch_up(self) -> None:
        """Time alone changes nothing."""


L = TypeVar("L", bound=LockedService)


class OperationGroup(Generic[L]):
    """A group of operations on one ledger. The model of the service inherits all its groups, which share the ledger."""

    def __init__(self, ledger: L) -> None:
        self.ledger = ledger

    @property
    def lock(self) -> RLock:
        """One lock for the whole service."""
        return self.ledger.lock

    def catch_up(self) -> None:
        """Like the ledger."""
        self.ledger.catch_up()


S = TypeVar("S", bound=LockedService)


def operation(method: Callable[[S, JSON], JSON]) -> Callable[..., JSON]:
    """A public API operation: called boto3 style, with keyword arguments; the method receives them as one dict."""
    name = "".join(part.capitalize() for part in method.__name__.split("_"))

    @wraps(method)
    def call(self: S, **request: Any) -> JSON:
        with self.lock:
            self.catch_up()
            try:
                return method(self, request)
            except Refusal as refusal:
                raise refusal.as_client_error(name) from None

    return call
