"""A stand-in for AWS whose clock differs from ours: each service refuses requests that carry our time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOLERATED_S = {"s3": 900.0}
USUAL_S = 300.0
# The texts that users of AWS's SDKs report.
SAYS = {
    "sts": ("SignatureDoesNotMatch", "Signature expired: {sent} is now earlier than {least} ({now} - 5 min.)"),
    "ec2": ("RequestExpired", "Request has expired."),
    "s3": ("RequestTimeTooSkewed", "The difference between the request time and the current time is too large."),
}
JSON_SAYS = ("InvalidSignatureException", "Signature expired: {sent} is now earlier than {least} ({now} - 5 min.)")
XML = {
    "sts": "<ErrorResponse><Error><Type>Sender</Type>{error}</Error></ErrorResponse>",
    "ec2": "<Response><Errors><Error>{error}</Error></Errors><RequestID>1</RequestID></Response>",
    "s3": "<Error>{error}</Error>",
}


class Skewed(ThreadingHTTPServer):
    """ahead_s: of this machine's clock. A request that is signed in time is answered with 418."""

    def __init__(self, ahead_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ahead_s = ahead_s
        self.seen: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Skewed

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        service = self.headers["Authorization"].partition("Credential=")[2].split("/")[3]
        self.server.seen.append(service)
        sent = datetime.strptime(self.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        if abs(sent - self._now()) <= TOLERATED_S.get(service, USUAL_S):
            return self._reply(418, "")
        code, text = SAYS.get(service, JSON_SAYS)
        said = text.format(sent=_iso(sent), least=_iso(self._now() - USUAL_S), now=_iso(self._now()))
        if service in XML:
            return self._reply(403, XML[service].format(error=f"<Code>{code}</Code><Message>{said}</Message>"))
        return self._reply(403, json.dumps({"__type": code, "message": said}))

    do_POST = do_HEAD = do_GET  # noqa: N815 - names of the standard library

    def _now(self) -> float:
        return time.time() + self.server.ahead_s

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(self._now(), usegmt=True)

    def _reply(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


def _iso(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y%m%dT%H%M%SZ}"


@contextmanager
def skewed(ahead_s: float) -> Iterator[tuple[str, Skewed]]:
    """Its address, and the server."""
    server = Skewed(ahead_s)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()
