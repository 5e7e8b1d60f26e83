"""Lambda's REST calls. Invoke and GetFunctionConfiguration are here; calls about aliases are in `aliases`."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from argosy.local.lambdas.aliases import Aliases, refuse, split_name
from argosy.local.lambdas.function import LambdaFunction, ThrottledError
from argosy.local.server.protocol import Reply

_INVOKE = re.compile(r"^/2015-03-31/functions/([^/]+)/invocations/?$")
_CONFIGURATION = re.compile(r"^/2015-03-31/functions/([^/]+)/configuration/?$")
MAX_PAYLOAD_BYTES = {"RequestResponse": 6 * 1024 * 1024, "Event": 1024 * 1024}  # Lambda quotas page; Event since 2025


@dataclass(frozen=True, slots=True)
class RestCall:
    """One HTTP request; `headers` has lower-case keys."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    query: str = ""

    @property
    def qualifier(self) -> str:
        """The alias or version in the query; "" = none."""
        return parse_qs(self.query).get("Qualifier", [""])[0]


class LambdaApi:
    """Invoke, for the functions of the deployment, and their aliases. `functions` may be filled after construction."""

    def __init__(self, functions: Mapping[str, LambdaFunction]) -> None:
        self._functions = functions
        self.aliases = Aliases(functions)

    def owns(self, path: str) -> bool:
        """Whether this path is one of these calls."""
        return any(form.match(path) for form in (_INVOKE, _CONFIGURATION)) or self.aliases.owns(path)

    def answer(self, call: RestCall) -> Reply:
        """Run one call."""
        if self.aliases.owns(call.path):
            return self.aliases.answer(call.method, call.path, call.body)
        asks = _CONFIGURATION.match(call.path)
        matched = asks or _INVOKE.match(call.path)
        name, alias = split_name(unquote(matched.group(1))) if matched else ("", "")
        function = self._functions.get(name)
        if function is None or call.method != ("GET" if asks else "POST"):
            return refuse(404, "ResourceNotFoundException", f"Function not found: {name}")
        if asks:
            return _configuration(function)
        if alias and call.qualifier not in ("", alias):
            message = "The derived qualifier from the function name does not match the specified qualifier."
            return refuse(400, "InvalidParameterValueException", message)
        alias = alias or call.qualifier
        if not self.aliases.has(name, alias):
            return refuse(404, "ResourceNotFoundException", f"Function not found: {function.spec.arn}:{alias}")
        kind = call.headers.get("x-amz-invocation-type", "RequestResponse")
        return _fault_of(kind, call.body) or _run(function, kind, call.body or b"{}", alias)


def _configuration(function: LambdaFunction) -> Reply:
    """The variables of the process that AWS does not have are left out."""
    spec = function.spec
    variables = {name: value for name, value in spec.environment.items() if name.startswith("ARGOSY_")}
    about = {"FunctionName": spec.name, "FunctionArn": spec.arn, "MemorySize": spec.memory_mib}
    about |= {"Timeout": int(spec.timeout_s), "Environment": {"Variables": variables}}
    return Reply(200, json.dumps(about).encode(), {"Content-Type": "application/json"})


def _fault_of(kind: str, body: bytes) -> Reply | None:
    if kind not in ("RequestResponse", "Event", "DryRun"):
        return refuse(400, "InvalidParameterValueException", f"unknown invocation type {kind}")
    if len(body) > MAX_PAYLOAD_BYTES.get(kind, len(body)):
        return refuse(413, "RequestTooLargeException", f"the payload of {len(body)} bytes is too large for {kind}")
    try:
        json.loads(body or b"{}")
    except (ValueError, RecursionError) as fault:
        return refuse(400, "InvalidRequestContentException", f"Could not parse request body into json: {fault}")
    return None


def _run(function: LambdaFunction, kind: str, body: bytes, alias: str) -> Reply:
    request_id = str(uuid.uuid4())
    headers = {"x-amzn-RequestId": request_id, "Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
    if kind == "DryRun":
        return Reply(204, b"", headers)
    if kind == "Event":
        function.invoke_later(body, request_id, alias)
        return Reply(202, b"", headers)
    try:
        outcome = function.invoke(body, request_id, alias)
    except ThrottledError:
        return refuse(429, "TooManyRequestsException", "Rate Exceeded.")
    if outcome.error is not None:
        headers["X-Amz-Function-Error"] = outcome.error
    return Reply(200, outcome.payload, headers)
