"""Where do the controller's calls meet their faults? Between an adapter and its client: every call passes here.

Time passes with each call, other controllers may work in the middle of it, and before or after the effect it can fail
in every way that a call over a network can. The auditor looks at each effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from argosy.emulator.rate_limits import Buckets
from argosy.simulation.faults import Faults
from argosy.simulation.world import World

JSON = dict[str, Any]

LATENCY_S = 0.02  # each way
PROTECTED = "The instance may not be terminated. Modify its 'disableApiTermination' instance attribute and try again."
HANG_S = 60.0  # boto3's read time-out
PAGE_SIZE = 3  # of ECS listings while pages may fail: small clusters have several pages then
SCRIPTED = ("crash-before", "crash-after", "reply-lost", "throttle", "server-error", "time-out")


class Crash(BaseException):
    """The controller's process is gone, in the middle of whatever it did."""


@dataclass(slots=True)
class Boundary:
    """All calls of all controllers. `script`: number of a call -> the fault that it meets, one of SCRIPTED."""

    world: World
    faults: Faults
    watch: Callable[[str, str, JSON, JSON], None] = lambda service, operation, request, reply: None
    remember: Callable[[str, str, JSON, str], None] = lambda service, operation, request, outcome: None
    meanwhile: Callable[[], None] = lambda: None
    script: Mapping[int, str] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    buckets: Buckets | None = None
    """AWS's own limits on the rate of calls; None = there are none."""
    store_down_until: float = 0.0
    lied_about: set[str] = field(default_factory=set)
    """Client tokens of launches that seemed to fail and did not."""
    number: int = 0

    def client(self, service: str, client: Any) -> Any:
        return FaultyClient(self, service, client)

    def call(self, service: str, operation: str, effect: Callable[..., JSON], request: JSON) -> JSON:
        self.number += 1
        self.calls[service, operation] += 1
        fault = self.script.get(self.number) or self._drawn(service, operation, request)
        self.world.run_for(LATENCY_S)
        self.meanwhile()
        if self.buckets is not None and service in ("ecs", "ec2") and not self.buckets.take(operation):
            fault = "throttle"
        self._before(service, operation, request, fault)
        if operation == "terminate_instances":
            self._refuse_protected(request["InstanceIds"])
        if fault == "time-out":
            self.world.run_for(HANG_S)
        reply = effect(**self._narrowed(operation, request))
        self.watch(service, operation, request, reply)
        self.remember(service, operation, request, fault or "ok")
        self.world.run_for(LATENCY_S)
        if fault == "crash-after":
            raise Crash
        if fault in ("reply-lost", "time-out"):
            raise ReadTimeoutError(endpoint_url=service)
        if fault == "throttle-retried":  # botocore sent it twice: the first try worked, the answer is the second's
            raise _error("ThrottlingException", 400, operation, retries=1)
        if fault == "server-error":
            raise _error("ServerException" if service == "ecs" else "InternalServerError", 500, operation)
        if fault == "failure-lies":
            return {**reply, "tasks": [], "failures": [{"reason": "RESOURCE:MEMORY", "detail": "insufficient memory"}]}
        return self._lagging(operation, reply) if service == "ecs" else reply

    def _drawn(self, service: str, operation: str, request: JSON) -> str:
        faults = self.faults
        if service == "dynamodb" and self.world.now < self.store_down_until:
            return "unreachable"
        if "nextToken" in request and faults.strikes("page-failure"):
            return "effect-lost"
        if faults.strikes("crash"):
            return "crash-before" if faults.coin() else "crash-after"
        if faults.strikes("throttle", 1.0 if service == "ecs" else 0.1):
            return "throttle-retried" if operation == "run_task" and faults.coin() else "throttle"
        if operation == "run_task" and self._lies(request.get("clientToken", "")):
            return "failure-lies"
        for kind in ("reply-lost", "effect-lost"):
            if faults.strikes(kind):
                return kind
        for kind in ("server-error", "time-out"):
            if faults.strikes(kind):
                return kind if faults.coin() else "effect-lost"
        return ""

    def _lies(self, token: str) -> bool:
        """Whether ECS speaks of failures although the task starts. The same token sent again is answered with the
        truth: that is what settles the doubt (reliability.md section 1, fact 4)."""
        if token in self.lied_about or not self.faults.strikes("failure-lies"):
            return False
        self.lied_about.add(token)
        return True

    def _before(self, service: str, operation: str, request: JSON, fault: str) -> None:
        """Faults that come before the effect, and instead of it."""
        if fault not in ("crash-before", "unreachable", "effect-lost", "throttle"):
            return
        self.remember(service, operation, request, fault)
        if fault == "crash-before":
            raise Crash
        if fault == "unreachable":
            raise EndpointConnectionError(endpoint_url=service)
        if fault == "effect-lost":
            raise ReadTimeoutError(endpoint_url=service)
        # Throttling comes dressed as other errors too (reliability.md row 6).
        dressed = service == "ecs" and self.faults.coin()
        raise _error("InvalidParameterException" if dressed else "ThrottlingException", 400, operation)

    def _refuse_protected(self, instance_ids: list[str]) -> None:
        """One protected instance spoils the call for all."""
        rate = self.faults.rates["protected"] if self.faults.on("protected") else 0.0
        for name in instance_ids:
            if self.world.share("protected", name) < rate:
                self.faults.note("protected")
                raise ClientError(
                    {"Error": {"Code": "OperationNotPermitted", "Message": PROTECTED}}, "TerminateInstances"
                )

    def _narrowed(self, operation: str, request: JSON) -> JSON:
        small = operation in ("list_tasks", "list_container_instances") and self.faults.on("page-failure")
        return {**request, "maxResults": PAGE_SIZE} if small else request

    def _lagging(self, operation: str, reply: JSON) -> JSON:
        """Listings and descriptions without the tasks that they do not show yet."""
        if not self.faults.on("listing-lag") or operation not in ("list_tasks", "describe_tasks"):
            return reply
        if operation == "list_tasks":
            return {**reply, "taskArns": [arn for arn in reply["taskArns"] if not self._hidden(arn)]}
        shown = [task for task in reply["tasks"] if not self._hidden(task["taskArn"])]
        hidden = [task["taskArn"] for task in reply["tasks"] if self._hidden(task["taskArn"])]
        missing = [{"arn": arn, "reason": "MISSING"} for arn in hidden]
        return {**reply, "tasks": shown, "failures": [*reply["failures"], *missing]}

    def _hidden(self, arn: str) -> bool:
        if self.world.share("lags", arn) >= self.faults.rates["listing-lag"]:
            return False
        task = self.world.ecs.ledger.clusters[self.world.cluster].tasks[arn]
        hidden = self.world.now - task.created_at < 290.0 * self.world.share("lag", arn)
        self.faults.seen["listing-lag"] += hidden
        return hidden


class FaultyClient:
    """A boto3-like client whose calls pass the boundary."""

    def __init__(self, boundary: Boundary, service: str, client: Any) -> None:
        self._boundary, self._service, self._client = boundary, service, client
        self._methods: dict[str, Callable[..., JSON]] = {}

    def __getattr__(self, name: str) -> Callable[..., JSON]:
        if name not in self._methods:
            effect = getattr(self._client, name)

            def call(**request: Any) -> JSON:
                return self._boundary.call(self._service, name, effect, request)

            self._methods[name] = call
        return self._methods[name]


def _error(code: str, status: int, operation: str, retries: int = 0) -> ClientError:
    message = "Rate exceeded" if status == 400 else "The server has a fault"
    metadata = {"HTTPStatusCode": status, "RetryAttempts": retries}
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}
    return ClientError(response, operation)
