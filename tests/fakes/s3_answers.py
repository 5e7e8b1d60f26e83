"""An S3 that answers every request to a bucket `bNNN` with the status NNN, for answers that moto never gives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CODES = {403: "AccessDenied", 404: "NoSuchKey", 409: "ConditionalRequestConflict", 412: "PreconditionFailed"}


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status = int(self.path.strip("/").split("/")[0].split("?")[0][1:])
        body = f"<Error><Code>{CODES.get(status, 'SlowDown')}</Code><Message>told to</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@contextmanager
def answering() -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()
