"""Clients some of whose operations AWS refuses, for as long as a test wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ReadTimeoutError

from tests.fakes.aws import refusal
from tests.scenarios.controlled import Controlled

DENIED = (
    "UnauthorizedOperation",
    "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/argosy-controller/"
    "argosy-controller is not authorized to perform this with an explicit deny in a service control policy. Encoded "
    f"authorization failure message: {'q3Vx' * 150}",
)


class Refusing:
    """A client in front of another one. `answers`: by operation, the code and message of its refusal, or what botocore
    raises. `meant`: which of its requests are refused."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.answers: dict[str, tuple[str, str] | Exception] = {}
        self.meant: Callable[[dict[str, Any]], bool] = lambda request: True
        self.refused = 0  # calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call: Callable[..., Any] = getattr(self._client, name)
        if name not in self.answers:
            return call

        def refuse(*args: Any, **request: Any) -> Any:
            if not self.meant(request):
                return call(*args, **request)
            self.refused += 1
            answer = self.answers[name]
            raise answer if isinstance(answer, Exception) else refusal(*answer)

        return refuse


def refusing(cluster: Controlled, service: str) -> Refusing:
    """Put one in front of the cluster's `ecs`, `ec2` or `s3`; its controller starts again."""
    client = Refusing(getattr(cluster, service))
    setattr(cluster, service, client)
    cluster.controllers = [cluster.controller()]
    return client


class LosesReplies:
    """EC2 whose next `left` answers to CreateFleet never arrive."""

    def __init__(self, client: Any, left: int) -> None:
        self._client, self.left, self.calls = client, left, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def create_fleet(self, **request: Any) -> Any:
        self.calls += 1
        answer = self._client.create_fleet(**request)
        self.left -= 1
        if self.left >= 0:
            raise ReadTimeoutError(endpoint_url="https://ec2")
        return answer
