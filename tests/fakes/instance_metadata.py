"""The instance metadata service, version 2, on 127.0.0.1: a token first, then the keys of the instance's role."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.signed_s3 import ACCESS_KEY, SECRET_KEY, TOKEN

_ROLES = "/latest/meta-data/iam/security-credentials/"


class InstanceMetadata(BaseHTTPRequestHandler):
    """`late`: this many requests are refused. `url`: where it answers."""

    late = 0
    url = ""

    def do_PUT(self) -> None:
        self._answer(b"token-of-the-session")

    def do_GET(self) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != "token-of-the-session" or type(self).late > 0:
            type(self).late -= 1
            self.send_error(404)
        elif self.path == _ROLES:
            self._answer(b"argosy-instance-us-east-1")
        elif self.path == _ROLES + "argosy-instance-us-east-1":
            keys = {"Code": "Success", "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": TOKEN}
            self._answer(json.dumps(keys, indent=2).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@contextmanager
def instance_metadata() -> Iterator[type[InstanceMetadata]]:
    """One service that answers until the end."""
    handler: type[InstanceMetadata] = type("Handler", (InstanceMetadata,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.url = f"http://127.0.0.1:{server.server_port}/latest"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
