"""How does the REST call Lambda Invoke reach a function?"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from urllib.parse import unquote

from argosy.local.lambdas.function import LambdaFunction, ThrottledError
from argosy.local.server.protocol import Reply

_INVOKE = re.compile(r"^/2015-03-31/functions/([^/]+)/invocations/?$")
MAX_PAYLOAD_BYTES = {"RequestResponse": 6 * 1024 * 1024, "Event": 1024 * 1024}  # Lambda quotas page; Event since 2025


class LambdaApi:
    """Invoke, for the functions of the deployment. `functions` may be filled after construction."""

    def __init__(self, functions: Mapping[str, LambdaFunction]) -> None:
        self._functions = functions

    def owns(self, path: str) -> bool:
        """Whether this path is an Invoke."""
        return _INVOKE.match(path) is not None

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Run one Invoke; `headers` has lower-case keys."""
        matched = _INVOKE.match(path)
        name = _plain_name(unquote(matched.group(1))) if matched else ""
        function = self._functions.get(name)
        if function is None or method != "POST":
            return _refuse(404, "ResourceNotFoundException", f"Function not found: {name}")
        kind = headers.get("x-amz-invocation-type", "RequestResponse")
        if kind not in ("RequestResponse", "Event", "DryRun"):
            return _refuse(400, "InvalidParameterValueException", f"unknown invocation type {kind}")
        if len(body) > MAX_PAYLOAD_BYTES.get(kind, len(body)):
            return _refuse(413, "RequestTooLargeException", f"the payload of {len(body)} bytes is too large for {kind}")
        try:
            json.loads(body or b"{}")
        except (ValueError, RecursionError) as fault:
            return _refuse(400, "InvalidRequestContentException", f"Could not parse request body into json: {fault}")
        return _run(function, kind, body or b"{}")


def _run(function: LambdaFunction, kind: str, body: bytes) -> Reply:
    request_id = str(uuid.uuid4())
    headers = {"x-amzn-RequestId": request_id, "Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
    if kind == "DryRun":
        return Reply(204, b"", headers)
    if kind == "Event":
        function.invoke_later(body, request_id)
        return Reply(202, b"", headers)
    try:
        outcome = function.invoke(body, request_id)
    except ThrottledError:
        return _refuse(429, "TooManyRequestsException", "Rate Exceeded.")
    if outcome.error is not None:
        headers["X-Amz-Function-Error"] = outcome.error
    return Reply(200, outcome.payload, headers)


def _plain_name(name: str) -> str:
    """A function's name from its name, ARN or partial ARN, without version or alias."""
    parts = name.split(":")
    if "function" in parts[:-1]:
        return parts[parts.index("function") + 1]
    return parts[0]


def _refuse(status: int, code: str, message: str) -> Reply:
    body = json.dumps({"Type": "User", "Message": message, "message": message}).encode()
    return Reply(status, body, {"Content-Type": "application/json", "x-amzn-ErrorType": code})
