"""An HTTP/1.1 keep-alive server for many clients in one process, which leaves no thread or socket behind.

werkzeug's own server closes every connection after one reply, which costs a third of the throughput (and every SDK
keeps connections). Request bodies are read whole before the application runs, so a connection is always in step. A
client that sends nothing for a while is disconnected, and the number of connections is bounded because each has a
thread.

Any page that is open in a browser can send requests to 127.0.0.1. A browser says on whose behalf it sends a request, in
headers that no script can set (Fetch standard, "forbidden request-header"): `Host`, which under DNS rebinding is the
attacker's name, `Origin` and `Sec-Fetch-Site`. Programs send neither of the last two. A page of another port on
localhost is the same site, so `same-site` is refused as well (`stranger`).
"""

from __future__ import annotations

import io
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

LOOPBACK = "127.0.0.1"  # never another address: what is served here is for this user only
PATIENCE_S = 30.0  # for the client's next bytes; AWS SDKs open another connection when an idle one was closed
MAX_CONNECTIONS = 512  # half of the usual limit of open files
MAX_BODY_BYTES = 5 * 1024**3  # the largest object that S3 takes in one PutObject
_PIECE_BYTES = 1024**2  # size of the pieces of a body: bytes that are announced and not sent take no memory
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"  # SDKs try again
_DECIMAL, _HEXADECIMAL = re.compile(r"[0-9]{1,20}"), re.compile(rb"[0-9a-fA-F]{1,16}")
_MAX_CHUNK_LINE = 4096
_MAX_HEADERS, _MAX_LINE = 100, 65_536  # as the standard library's
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*\r?\n")  # RFC 9112, 5: no other form is taken
_FIRST_LINE = re.compile(r"([A-Z]+) (\S+) (HTTP/1\.[01])\r?\n")


class BodyError(Exception):
    """A request that cannot be read; the reply has this status, and the connection ends."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one server for its clients."""

    patience_s: float = PATIENCE_S
    connections: int = MAX_CONNECTIONS


class WsgiServer(ThreadingHTTPServer):
    """A threaded WSGI server on the loopback interface; `port` 0 takes a free one. Raises OSError if it is taken."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, application: Application, port: int = 0, bounds: Bounds | None = None) -> None:
        self.application = application
        self.bounds = bounds or Bounds()
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._starting = threading.Lock()
        super().__init__((LOOPBACK, port), _Handler)
        self.port = int(self.server_address[1])
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), name="argosy-http")

    def start(self) -> None:
        """Serve on a new thread."""
        self._thread.start()

    def serve_too(self, listener: socket.socket) -> Callable[[], None]:
        """Accept connections there as well, on a new thread; the result ends that, and closes the socket."""

        def accept() -> None:
            while True:
                try:
                    connection, address = listener.accept()
                except OSError:
                    return  # shut down below
                self.process_request(connection, address)

        thread = threading.Thread(target=accept, name="argosy-http-inside")
        thread.start()

        def close() -> None:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()

        return close

    def close(self) -> None:
        """Stop listening, end every connection, wait for every thread."""
        self.shutdown()
        self._thread.join()
        with self._guard:
            for connection in self._open:
                _hang_up(connection)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Record the connection, so that close() can end it; refuse it if there are too many."""
        with self._guard:
            full = len(self._open) >= self.bounds.connections
            if not full:
                self._open.add(request)
        if full:
            request.sendall(_BUSY)  # a fresh connection has room for it
            self.shutdown_request(request)
        else:
            with self._starting:  # the list of threads takes one at a time
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


@dataclass(slots=True)
class RequestHeaders:
    """Of one request, as they came: their values by name in lower case."""

    values: dict[str, list[str]] = field(default_factory=dict)

    def get(self, name: str, otherwise: str = "") -> str:
        """The first one."""
        return self.values.get(name.lower(), [otherwise])[0]

    def get_all(self, name: str, otherwise: list[str]) -> list[str]:
        """In their order."""
        return self.values.get(name.lower(), otherwise)


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
    raw_requestline: bytes

    def setup(self) -> None:
        """Every wait for the client to send or to read is bounded; then the connection ends."""
        super().setup()
        self.connection.settimeout(self.server.bounds.patience_s)

    def parse_request(self) -> bool:
        """In place of the standard library's, whose parser of headers, that of mail, takes as long as all the rest."""
        self.requestline, self.command, self.request_version = "", "", "HTTP/1.1"  # for an answer that refuses it
        self.close_connection = True
        try:
            if (first := _FIRST_LINE.fullmatch(str(self.raw_requestline, "latin-1"))) is None:
                raise BodyError(400, "the first line is not one of HTTP/1.1")
            self.headers: Any = self._read_headers()
        except BodyError as fault:
            self.send_error(fault.status, str(fault))
            return False
        self.command, self.path, self.request_version = first.groups()
        keeps = self.headers.get("Connection").lower()
        self.close_connection = keeps == "close" or (self.request_version == "HTTP/1.0" and keeps != "keep-alive")
        expects = self.headers.get("Expect").lower() == "100-continue" and self.request_version == "HTTP/1.1"
        return self.handle_expect_100() if expects else True

    def _read_headers(self) -> RequestHeaders:
        """Raises BodyError."""
        found = RequestHeaders()
        for _ in range(_MAX_HEADERS + 1):
            line = self.rfile.readline(_MAX_LINE + 1)
            if line in (b"\r\n", b"\n"):
                return found
            if not line:
                raise ConnectionResetError("the client hung up in the middle of a request")
            if len(line) > _MAX_LINE:
                raise BodyError(431, "a header is too long")
            matched = _HEADER.fullmatch(str(line, "latin-1"))
            if matched is None:
                raise BodyError(400, "a header cannot be read")
            found.values.setdefault(matched[1].lower(), []).append(matched[2])
        raise BodyError(431, "there are too many headers")

    def log_message(self, format: str, *args: Any) -> None:
        """No access log."""

    def handle_expect_100(self) -> bool:
        """Say "100 Continue" now: our output is buffered, and the client waits with the body of its PUT."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def _serve(self) -> None:
        reply: list[Any] = []
        try:
            environ = self._environ(self._body())
        except BodyError as fault:
            return self.send_error(fault.status, str(fault))  # which says "Connection: close" too

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
            reply[:] = [status, headers]

        result = self.server.application(environ, start_response)
        try:
            body = b"".join(result)
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()
        return self._answer(reply[0], reply[1], body)

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
        coding = self.headers.get("Transfer-Encoding").lower()
        if coding == "chunked":
            return b"".join(iter(self._chunk, b""))
        if coding:
            raise BodyError(501, "the only transfer coding is chunked")
        length = self.headers.get("Content-Length", "0")
        if not _DECIMAL.fullmatch(length):
            raise BodyError(400, "Content-Length is not a number")
        return self._read(int(length))

    def _chunk(self) -> bytes:
        size = self.rfile.readline(_MAX_CHUNK_LINE).partition(b";")[0].strip()
        if not _HEXADECIMAL.fullmatch(size):
            raise BodyError(400, "a chunk's size is not a number")
        data = self._read(int(size, 16))
        while self.rfile.readline() not in (b"\r\n", b"\n", b"") and not data:
            pass  # trailers after the last chunk
        return data

    def _read(self, size: int) -> bytes:
        """Raises ConnectionResetError when the client hangs up before."""
        if size > MAX_BODY_BYTES:
            raise BodyError(413, f"a body has at most {MAX_BODY_BYTES} bytes")
        pieces = []
        while size:
            piece = self.rfile.read(min(size, _PIECE_BYTES))
            if not piece:
                raise ConnectionResetError("the client hung up in the middle of a body")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _environ(self, body: bytes) -> Environ:
        path, _, query = self.path.partition("?")
        here = self.connection.getsockname()
        environ: Environ = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(path, "latin-1"),
            "RAW_URI": self.path,
            "REQUEST_URI": self.path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": self.headers.get("Content-Type"),
            "SERVER_NAME": here[0],  # a listener elsewhere has another
            "SERVER_PORT": str(here[1]),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": self.client_address[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "argosy.headers": self.headers,  # as they came: signatures cover them
        }
        for name, values in self.headers.values.items():
            # A name with "_" would pass for the one with "-".
            if "_" not in name and name not in ("content-type", "content-length", "transfer-encoding"):
                environ[f"HTTP_{name.upper().replace('-', '_')}"] = ",".join(values)
        return environ

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _serve  # noqa: N815 - names of the standard library


_NAMES = ("127.0.0.1", "localhost")
_OWN_FETCHES = ("none", "same-origin")  # none: the user typed the address


def stranger(environ: Environ) -> str | None:
    """Why the request may not be served, as a sentence; None for one that may."""
    host = environ.get("HTTP_HOST", "")
    allowed = _hosts(str(environ["SERVER_NAME"]), str(environ["SERVER_PORT"]))
    if host.lower() not in allowed:
        return f"the host must be {' or '.join(allowed)}, not {host!r}"
    if environ.get("HTTP_ORIGIN", f"http://{host}") != f"http://{host}":
        return "not for web pages of another origin"
    if environ.get("HTTP_SEC_FETCH_SITE", "none") not in _OWN_FETCHES:
        return "not for web pages of another origin"
    if environ["REQUEST_METHOD"] == "OPTIONS":
        return "cross-origin requests are not allowed, so preflights are refused"
    return None


def _hosts(address: str, port: str) -> list[str]:
    """address: where the connection was accepted. No DNS name can make a browser treat that address as another
    origin's."""
    names = [*_NAMES, *({address} - {*_NAMES})]
    return [f"{name}:{port}" for name in names] + (names if port == "80" else [])
