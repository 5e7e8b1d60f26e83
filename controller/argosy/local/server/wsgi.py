"""How are many clients served over HTTP/1.1 keep-alive from one process, with nothing left behind at the end?

werkzeug's own server closes every connection after one reply, which costs a third of the throughput (and every SDK
keeps connections). Request bodies are read whole before the application runs, so a connection is always in step.
"""

from __future__ import annotations

import io
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

LOOPBACK = "127.0.0.1"  # never another address: the embedded AWS runs any command it is given


class WsgiServer(ThreadingHTTPServer):
    """A threaded WSGI server on the loopback interface; `port` 0 takes a free one. Raises OSError if it is taken."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, application: Application, port: int = 0) -> None:
        self.application = application
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__((LOOPBACK, port), _Handler)
        self.port = int(self.server_address[1])
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), name="argosy-http")

    def start(self) -> None:
        """Serve on a new thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening, end every connection, wait for every thread."""
        self.shutdown()
        self._thread.join()
        with self._guard:
            for connection in self._open:
                _hang_up(connection)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, so that close() can end it."""
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """The connection is over."""
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up in the middle are ignored; every other fault is printed."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RD)  # a reply that is being written may still go out
    except OSError:
        return  # the client has hung up already


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body go out at once
    wbufsize = -1
    server: WsgiServer

    def log_message(self, format: str, *args: Any) -> None:
        """No access log."""

    def handle_expect_100(self) -> bool:
        """Say "100 Continue" now: our output is buffered, and the client waits with the body of its PUT."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def _serve(self) -> None:
        reply: list[Any] = []
        environ = self._environ(self._body())

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
            reply[:] = [status, headers]

        result = self.server.application(environ, start_response)
        try:
            body = b"".join(result)
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()
        self._answer(reply[0], reply[1], body)

    def _answer(self, status: str, headers: list[tuple[str, str]], body: bytes) -> None:
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason or None)
        bodiless = self.command == "HEAD" or code in ("204", "304")
        for name, value in headers:
            # A HEAD reply states the length that GET would have.
            if name.lower() not in ("transfer-encoding", "connection", "date", "server") and (
                name.lower() != "content-length" or bodiless
            ):
                self.send_header(name, value)
        if not bodiless:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not bodiless:
            self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().partition(b";")[0], 16)
        data = self.rfile.read(size)
        while self.rfile.readline() not in (b"\r\n", b"\n", b"") and size == 0:
            pass  # trailers after the last chunk
        return data

    def _environ(self, body: bytes) -> Environ:
        path, _, query = self.path.partition("?")
        environ: Environ = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(path, "latin-1"),
            "RAW_URI": self.path,
            "REQUEST_URI": self.path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "SERVER_NAME": LOOPBACK,
            "SERVER_PORT": str(self.server.port),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": self.client_address[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in self.headers.items():
            key = name.upper().replace("-", "_")
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH", "TRANSFER_ENCODING"):
                environ[f"HTTP_{key}"] = value
        return environ

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _serve  # noqa: N815 - names of the standard library
