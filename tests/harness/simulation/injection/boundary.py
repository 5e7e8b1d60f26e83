"""Faults of the controllers' calls. Every call passes here, between an adapter and its client.

Time passes with each call, and other controllers may work in the middle of it. Before or after its effect, a call can
fail in every way that a call over a network can. An observer sees each effect.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from tests.harness.simulation.faults import Faults
from tests.harness.simulation.world.rate_limits import Buckets
from tests.harness.simulation.world.regions import Regions

JSON = dict[str, Any]

LATENCY_S = 0.02  # each way
PROTECTED = "The instance may not be terminated. Modify its 'disableApiTermination' instance attribute and try again."
HANG_S = 60.0  # boto3's read time-out
PAGE_SIZES = {  # entries of a listing while pages are small: small clusters have several pages then
    "list_tasks": ("maxResults", 3),
    "list_container_instances": ("maxResults", 3),
    "describe_fleets": ("MaxResults", 3),
    "describe_instances": ("MaxResults", 5),  # EC2 takes no less
    "query": ("Limit", 2),
}
GOES_ON = ("nextToken", "NextToken", "ExclusiveStartKey")  # the member that a request for a further page has
LONGEST_FREEZE_S, STIR_S = 3600.0, 30.0  # standstills of a process, and how often others may work in the meantime
REFUSED_S = 80.0  # at most
# Refusals that pass: rights and roles spread slowly, keys are throttled, clocks are off, and ECS says ClientException.
REFUSALS = {
    "ecs": (
        ("AccessDeniedException", "User: x is not authorized to perform: ecs:x"),
        ("UnrecognizedClientException", "The security token included in the request is invalid."),
        ("ClientException", "ECS was unable to assume the role 'arn:aws:iam::123456789012:role/x' of this task."),
        ("ClientException", "Too many concurrent attempts to create a new revision of the specified family."),
        ("SomethingNewException", "never seen before"),
    ),
    "s3": (("AccessDenied", "Access Denied"), ("RequestTimeTooSkewed", "The difference is too large.")),
    "ec2": (("UnauthorizedOperation", "You are not authorized to perform this operation."), ("AuthFailure", "")),
    "dynamodb": (("ReplicatedWriteConflictException", ""), ("KMSThrottlingException", "")),
    "sqs": (("AccessDenied", "Access to the resource is denied."), ("InvalidSecurity", "")),
    "events": (("AccessDeniedException", "User: x is not authorized to perform: events:PutEvents"),),
    "elbv2": (("AccessDenied", "User: x is not authorized to perform: elasticloadbalancing:x"),),
}
SCRIPTED = ("crash-before", "crash-after", "reply-lost", "throttle", "server-error", "time-out")


class Crash(BaseException):
    """The controller's process is gone, in the middle of its work."""


@dataclass(slots=True)
class ProcessLife:
    """State of a process: once it has crashed, none of its later calls takes effect."""

    is_over: bool = False
    ends_at: float = math.inf
    """When Lambda ends it, at any point of its work: a call that it has not sent by then is never sent."""


class Call(NamedTuple):
    """One call of a controller."""

    service: str
    operation: str
    request: JSON


class CallObserver(Protocol):
    """Sees every call of a trial."""

    def took_effect(self, call: Call, reply: JSON) -> None:
        """Called before the controller sees the reply, if it ever does."""

    def ended(self, call: Call, outcome: str) -> None:
        """outcome: "ok", or the fault that the call met."""


class NoObserver:
    """Ignores every call."""

    def took_effect(self, call: Call, reply: JSON) -> None:
        """Does nothing."""

    def ended(self, call: Call, outcome: str) -> None:
        """Does nothing."""


@dataclass(slots=True)
class CallConditions:
    """The faults and limits that controllers' calls meet."""

    faults: Faults
    observer: CallObserver = field(default_factory=NoObserver)
    script: Mapping[int, str] = field(default_factory=dict)
    """Number of a call -> the fault that it meets, one of SCRIPTED."""
    limits: Buckets | None = None
    """AWS's limits on the rate of calls; None = no limits."""
    strict: bool = False
    """Whether the shapes of all requests and replies are checked."""
    interleaved: bool = False
    """Whether controllers work in the middle of each other's calls."""


class Boundary:
    """All calls of all controllers. `meanwhile` is called in the middle of each."""

    def __init__(
        self, regions: Regions, conditions: CallConditions, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        """By service and operation."""
        self.conditions = conditions
        self.store_down_until = 0.0
        self._regions, self._world = regions, regions.home
        self._faults, self._observer = conditions.faults, conditions.observer
        self._meanwhile = meanwhile
        self._lied_about: set[str] = set()
        """Client tokens of launches that seemed to fail and did not."""
        self._number = 0
        self._refused: dict[tuple[str, str], float] = {}
        """Until when calls of an operation are refused."""

    def client(self, service: str, client: Any, life: ProcessLife | None = None) -> Any:
        """The same client, whose calls pass the boundary. life: of the process that it belongs to."""
        return FaultyClient(self, service, client, life or ProcessLife())

    def call(self, call: Call, effect: Callable[..., JSON], life: ProcessLife) -> JSON:
        service, operation, request = call
        self._number += 1
        self.calls[service, operation] += 1
        fault = self.conditions.script.get(self._number) or self._drawn(call)
        self._world.run_for(LATENCY_S)
        self._meanwhile()
        self._refuse(call)
        limits = self.conditions.limits
        if limits is not None and service in ("ecs", "ec2") and not limits.take(operation):
            fault = "throttle"
        self._fail_before(call, fault)
        freezes = self._faults.strikes("freeze")
        freezes_before = freezes and self._world.share("freeze before", self._number) < 0.5
        if freezes_before:
            self._stand_still(life.ends_at)
        if operation == "terminate_instances":
            self._refuse_protected(request["InstanceIds"])
        if fault == "time-out":
            self._world.run_for(HANG_S)
        reply = self._in_small_pages(call, effect)
        self._observer.took_effect(call, reply)
        if operation == "run_task" and self._faults.strikes("token-misbehaviour"):
            for world in self._regions.worlds:
                world.ecs.ledger.clusters[world.cluster].launches.clear()
        self._observer.ended(call, fault or "ok")
        self._world.run_for(LATENCY_S)
        if freezes and not freezes_before:
            self._stand_still()
        return self._answer(call, fault, reply)

    def _answer(self, call: Call, fault: str, reply: JSON) -> JSON:
        """The reply as the controller gets it, or a fault in its place."""
        if fault == "crash-after":
            raise Crash
        if fault in ("reply-lost", "time-out"):
            raise ReadTimeoutError(endpoint_url=call.service)
        if fault == "throttle-retried":  # botocore sent it twice: the first worked, the answer is the second's
            raise _error("ThrottlingException", 400, call.operation, retries=1)
        if fault == "server-error":
            code = "ServerException" if call.service == "ecs" else "InternalServerError"
            raise _error(code, 500, call.operation)
        if fault == "failure-lies":
            return {**reply, "tasks": [], "failures": [{"reason": "RESOURCE:MEMORY", "detail": "insufficient memory"}]}
        return self._lagging(call.operation, reply) if call.service == "ecs" else reply

    def _drawn(self, call: Call) -> str:
        """The fault that the call meets; "" = none."""
        faults, (service, operation, request) = self._faults, call
        if service == "dynamodb" and self._world.now < self.store_down_until:
            return "unreachable"
        if any(name in request for name in GOES_ON) and faults.strikes("page-failure"):
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
        """Whether ECS reports failures although the task starts. The same token sent again gets the true answer, which
        settles
        the doubt (reliability.md section 1, fact 4).
        """
        if token in self._lied_about or not self._faults.strikes("failure-lies"):
            return False
        self._lied_about.add(token)
        return True

    def _fail_before(self, call: Call, fault: str) -> None:
        """Faults before the effect, which then does not happen."""
        if fault not in ("crash-before", "unreachable", "effect-lost", "throttle"):
            return
        self._observer.ended(call, fault)
        if fault == "crash-before":
            raise Crash
        if fault == "unreachable":
            raise EndpointConnectionError(endpoint_url=call.service)
        if fault == "effect-lost":
            raise ReadTimeoutError(endpoint_url=call.service)
        # ECS also reports throttling as another error (reliability.md row 6).
        dressed = call.service == "ecs" and self._faults.coin()
        raise _error("InvalidParameterException" if dressed else "ThrottlingException", 400, call.operation)

    def _refuse(self, call: Call) -> None:
        """For a while all calls of one operation are refused and have no effect."""
        key, kinds = (call.service, call.operation), REFUSALS.get(call.service)
        if kinds and self._faults.strikes("refused"):
            self._refused[key] = self._world.now + REFUSED_S * self._world.share("refused", *key, self._number)
        if not kinds or not self._faults.active or self._world.now >= self._refused.get(key, 0.0):
            return
        self._faults.note("refused")
        self._observer.ended(call, "refused")
        code, message = kinds[int(len(kinds) * self._world.share("refusal", *key, self._refused[key]))]
        metadata = {"HTTPStatusCode": 400, "RetryAttempts": 0}
        raise ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}, call.operation)

    def _refuse_protected(self, instance_ids: list[str]) -> None:
        """One protected instance makes EC2 refuse the whole call."""
        rate = self._faults.rates["protected"] if self._faults.on("protected") else 0.0
        for name in instance_ids:
            if self._world.share("protected", name) < rate:
                self._faults.note("protected")
                error = {"Code": "OperationNotPermitted", "Message": PROTECTED}
                raise ClientError({"Error": error}, "TerminateInstances")

    def _in_small_pages(self, call: Call, effect: Callable[..., JSON]) -> JSON:
        """The reply, of a few entries at a time while pages are small."""
        operation, request = call.operation, call.request
        name, size = PAGE_SIZES.get(operation, ("", 0))
        whole = not name or any(request.get(member) for member in ("InstanceIds", "Limit")) or _asks_for_few(request)
        if whole or not (self._faults.on("pages") or self._faults.on("page-failure")):
            return effect(**request)
        reply = effect(**{**request, name: size})
        if any(each in reply for each in (*GOES_ON, "LastEvaluatedKey")):
            self._faults.note("pages")
        return reply

    def _stand_still(self, ends_at: float = math.inf) -> None:
        """This process does nothing for a while, and the others continue. Raises Crash if it ends in the meantime."""
        until = self._world.now + LONGEST_FREEZE_S ** self._world.share("freeze", self._number)
        while self._world.now < min(until, ends_at):
            self._world.run_for(min(STIR_S, until - self._world.now))
            self._meanwhile()
        if until > ends_at:
            raise Crash

    def _lagging(self, operation: str, reply: JSON) -> JSON:
        """Listings and descriptions without the tasks that they do not show yet."""
        if not self._faults.on("listing-lag") or operation not in ("list_tasks", "describe_tasks"):
            return reply
        if operation == "list_tasks":
            return {**reply, "taskArns": [arn for arn in reply["taskArns"] if not self._hidden(arn)]}
        shown = [task for task in reply["tasks"] if not self._hidden(task["taskArn"])]
        hidden = [task["taskArn"] for task in reply["tasks"] if self._hidden(task["taskArn"])]
        missing = [{"arn": arn, "reason": "MISSING"} for arn in hidden]
        return {**reply, "tasks": shown, "failures": [*reply["failures"], *missing]}

    def _hidden(self, arn: str) -> bool:
        if self._world.share("lags", arn) >= self._faults.rates["listing-lag"]:
            return False
        task = self._regions.task(arn)
        hidden = task is not None and self._world.now - task.created_at < 290.0 * self._world.share("lag", arn)
        self._faults.seen["listing-lag"] += hidden
        return hidden


class FaultyClient:
    """A boto3-like client whose calls pass the boundary."""

    def __init__(self, boundary: Boundary, service: str, client: Any, life: ProcessLife) -> None:
        self._boundary, self._service, self._client, self._life = boundary, service, client, life
        self._methods: dict[str, Callable[..., JSON]] = {}

    def __getattr__(self, name: str) -> Callable[..., JSON]:
        if name not in self._methods:
            effect = getattr(self._client, name)

            def call(**request: Any) -> JSON:
                if self._life.is_over:
                    raise Crash
                try:
                    return self._boundary.call(Call(self._service, name, request), effect, self._life)
                except Crash:
                    self._life.is_over = True
                    raise

            self._methods[name] = call
        return self._methods[name]


def _asks_for_few(request: JSON) -> bool:
    """Whether a query is for the switches, heartbeat and lease: DynamoDB never splits so few items."""
    return bool(request.get("ExpressionAttributeValues") == {":pk": {"S": "CONTROL"}})


def _error(code: str, status: int, operation: str, retries: int = 0) -> ClientError:
    message = "Rate exceeded" if status == 400 else "The server has a fault"
    metadata = {"HTTPStatusCode": status, "RetryAttempts": retries}
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}
    return ClientError(response, operation)
