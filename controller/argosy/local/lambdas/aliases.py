"""The aliases of the functions. Each stands for the latest version: local mode publishes none."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from argosy.local.lambdas.function import LambdaFunction
from argosy.local.server.protocol import Reply
from argosy.model.entrances import LATEST

_PATH = re.compile(r"^/2015-03-31/functions/([^/]+)/aliases(?:/([^/]+))?/?$")
_NAME = re.compile(r"(?!^[0-9]+$)[a-zA-Z0-9-_]{1,128}")
JSON = dict[str, Any]
Named = tuple[str, str]  # function, alias


class Aliases:
    """Create, get, list, update and delete, for the functions of the deployment. on_change: called with an alias and
    its new
    content, None = deleted, before the caller gets an answer.
    """

    def __init__(self, functions: Mapping[str, LambdaFunction]) -> None:
        """functions: by name; may be filled after construction."""
        self._functions = functions
        self.known: dict[Named, JSON] = {}
        self.on_change: Callable[[Named, JSON | None], None] = lambda named, about: None

    def owns(self, path: str) -> bool:
        """Whether this path is about aliases."""
        return _PATH.match(path) is not None

    def has(self, function: str, alias: str) -> bool:
        """Whether the function may be invoked with it."""
        return alias in ("", LATEST) or (function, alias) in self.known

    def answer(self, method: str, path: str, body: bytes) -> Reply:
        """One call."""
        matched = _PATH.match(path)
        function, name = (unquote(part or "") for part in matched.groups()) if matched else ("", "")
        function, _ = split_name(function)
        if function not in self._functions:
            return refuse(404, "ResourceNotFoundException", f"Function not found: {function}")
        try:
            given = json.loads(body or b"{}")
        except ValueError as fault:
            return refuse(400, "InvalidRequestContentException", f"Could not parse request body into json: {fault}")
        if method == "POST" and not name:
            return self._create(function, given)
        if method == "GET" and not name:
            return _json(200, {"Aliases": [about for (its, _), about in sorted(self.known.items()) if its == function]})
        return self._one(method, (function, name), given)

    def _one(self, method: str, named: Named, given: JSON) -> Reply:
        if method == "DELETE":  # of one that is not there it says the same, as Lambda does
            self._put(named, None)
            return Reply(204, b"")
        if named not in self.known:
            return refuse(404, "ResourceNotFoundException", f"Cannot find alias arn: {self._arn(named)}")
        if method == "GET":
            return _json(200, self.known[named])
        if method != "PUT":
            return refuse(404, "ResourceNotFoundException", f"Lambda has no {method} for an alias")
        return self._stored(200, named, {**self.known[named], **given})

    def _create(self, function: str, given: JSON) -> Reply:
        named = function, str(given.get("Name") or "")
        if _NAME.fullmatch(named[1]) is None:
            return refuse(400, "ValidationException", f"{named[1][:140]!r} is not a name of an alias")
        if named in self.known:
            return refuse(409, "ResourceConflictException", f"Alias already exists: {self._arn(named)}")
        return self._stored(201, named, given)

    def _stored(self, status: int, named: Named, given: JSON) -> Reply:
        if given.get("FunctionVersion") != LATEST:
            version = str(given.get("FunctionVersion"))[:20]
            return refuse(404, "ResourceNotFoundException", f"Function not found: {named[0]} has no version {version}")
        about = {
            "AliasArn": self._arn(named),
            "Name": named[1],
            "FunctionVersion": LATEST,
            "Description": str(given.get("Description") or ""),
            "RevisionId": str(uuid.uuid4()),
        }
        self._put(named, about)
        return _json(status, about)

    def _put(self, named: Named, about: JSON | None) -> None:
        self.on_change(named, about)
        if about is None:
            self.known.pop(named, None)
        else:
            self.known[named] = about

    def _arn(self, named: Named) -> str:
        return f"{self._functions[named[0]].spec.arn}:{named[1]}"


def split_name(name: str) -> tuple[str, str]:
    """A function's name and its alias ("" = none), from its name, ARN or partial ARN."""
    parts = name.split(":")
    if "function" in parts[:-1]:
        parts = parts[parts.index("function") + 1 :]
    return parts[0], ":".join(parts[1:])


def refuse(status: int, code: str, message: str) -> Reply:
    """An error as Lambda answers it."""
    body = json.dumps({"Type": "User", "Message": message, "message": message}).encode()
    return Reply(status, body, {"Content-Type": "application/json", "x-amzn-ErrorType": code})


def _json(status: int, document: JSON) -> Reply:
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json"})
