"""The functions' calls of AWS, which is local mode, on the shortest way there.

Problem: with tasks of milliseconds, half of the CPU time went into botocore's signatures and HTTP client, 1.4 ms a
call. Idea: botocore asks hooks for an answer once it has checked and serialized a call. The hook here sends it over a
connection that stays open, with the secret key, which never leaves this machine, in place of a signature.

What does not work this way goes the usual one: botocore repeats the call, or says what is wrong. So do calls whose
body or answer is a stream.
"""

from __future__ import annotations

import os
import select
from collections import deque
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from io import BytesIO
from socket import IPPROTO_TCP, TCP_NODELAY, create_connection
from types import SimpleNamespace
from typing import IO, Any

from botocore import handlers
from botocore.awsrequest import HeadersDict
from botocore.parsers import create_parser

from argosy.local.server.signatures import SECRET_SCHEME

PATIENCE_S = 35.0  # more than a long poll


class _Connection:
    """One that stays open. Raises OSError."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = create_connection((host, port), PATIENCE_S)
        self._socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        self._reading: IO[bytes] = self._socket.makefile("rb")

    @property
    def is_open(self) -> bool:
        """Whether the server has not closed it meanwhile."""
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        return not poller.poll(0)

    def ask(self, request: bytes) -> Any:
        """What botocore reads of an HTTP reply."""
        self._socket.sendall(request)
        first, *lines = iter(self._line, "")
        status, headers = int(first.split()[1]), HeadersDict(line.split(": ", 1) for line in lines)
        bodiless = request.startswith(b"HEAD ") or status == HTTPStatus.NO_CONTENT
        content = b"" if bodiless else self._reading.read(int(headers["content-length"]))
        return SimpleNamespace(status_code=status, headers=headers, content=content)

    def close(self) -> None:
        self._reading.close()
        self._socket.close()

    def _line(self) -> str:
        line = self._reading.readline()
        if not line:
            raise ConnectionResetError("the server hung up")
        return str(line, "latin-1").rstrip("\r\n")


class DirectCalls:
    """A hook of botocore's `before-call`. Thread-safe."""

    def __init__(self, endpoint: str, key_id: str, secret: str) -> None:
        """endpoint: `http://host:port`. Calls of any other go the usual way."""
        self._endpoint = endpoint
        host, _, port = endpoint.removeprefix("http://").partition(":")
        self._address = host, int(port)
        self._key_id, self._secret = key_id, secret
        self._idle: deque[_Connection] = deque()

    def __call__(self, model: Any, params: Any, context: Any, **_: Any) -> tuple[Any, Any] | None:
        """The reply, and what botocore makes of it; None for a call that has to go the usual way."""
        url, body = params["url"], params["body"]
        body = body.getvalue() if isinstance(body, BytesIO) else body
        is_stream = not isinstance(body, bytes) or model.has_streaming_output
        if is_stream or not url.startswith(f"{self._endpoint}/"):
            return None
        service = model.service_model
        scope = f"{self._key_id}/-/{context['client_region']}/{service.signing_name}/aws4_request"
        headers = {
            **{name: value for name, value in params["headers"].items() if name != "Expect"},
            "Host": self._endpoint.removeprefix("http://"),
            "Authorization": f"{SECRET_SCHEME} Credential={scope},Secret={self._secret}",
            "Content-Length": len(body),
        }
        lines = [f"{params['method']} {url.removeprefix(self._endpoint)} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "\r\n"])
        try:
            answer = self._asked(head.encode() + body)
        except OSError:
            return None
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        about = {"headers": answer.headers, "status_code": answer.status_code, "body": answer.content}
        return answer, _parsed({**about, "context": {"operation_name": model.name}}, model)

    def close(self) -> None:
        """Close every connection."""
        while self._idle:
            self._idle.pop().close()

    def _asked(self, request: bytes) -> Any:
        connection = self._open() or _Connection(*self._address)
        try:
            answer = connection.ask(request)
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    def _open(self) -> _Connection | None:
        with suppress(IndexError):
            while not (found := self._idle.pop()).is_open:
                found.close()
            return found
        return None


_parser = cache(create_parser)


def _parsed(reply: dict[str, Any], model: Any) -> Any:
    """As botocore's `Endpoint` parses it: an error is parsed again for the fields that only this error has."""
    parser, service = _parser(model.service_model.resolved_protocol), model.service_model
    parsed = parser.parse(reply, model.output_shape)
    shape = service.shape_for_error_code(code) if (code := parsed.get("Error", {}).get("Code")) else None
    return parsed if shape is None else {**parsed, **parser.parse(reply, shape)}


def take() -> None:
    """All clients that this process makes from now on go the short way to the endpoint of its environment."""
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        way = DirectCalls(endpoint, os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
        handlers.BUILTIN_HANDLERS.append(("before-call", way))
