"""A web page that is open in the user's browser cannot do anything with local mode, in a real browser."""

from __future__ import annotations

import http.client
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import page
from tests.e2e.local_cloud import Cloud, cloud

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

ATTACK = (Path(__file__).resolve().parents[1] / "data" / "attack.html").read_text(encoding="utf-8")
EVIL = "evil.example"
PATIENCE_S = 90.0
NOT_READ = ("", "true")  # true: sendBeacon says that it has sent something


@dataclass
class Attacker:
    """The web server of a page. rebound_to: a port whose server answers the requests that this one cannot."""

    marker: Path
    port: int = 0
    rebound_to: int = 0
    target: str = ""
    reports: queue.Queue[dict[str, str]] = field(default_factory=queue.Queue)

    def page(self) -> bytes:
        return ATTACK.replace("TARGET", self.target).replace("MARKER", str(self.marker)).encode()


@contextmanager
def serving(attacker: Attacker, address: str = "127.0.0.1", port: int = 0) -> Iterator[Attacker]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/page":
                self._say(200, attacker.page())
            else:
                self._relay()

        def do_POST(self) -> None:
            if self.path == "/report":
                attacker.reports.put(json.loads(self._body()))
                self._say(204, b"")
            else:
                self._relay()

        do_PUT = do_OPTIONS = do_POST  # noqa: N815 - names of the standard library

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def _relay(self) -> None:
            """The name now leads to another server, which gets the unchanged request of the browser."""
            if not attacker.rebound_to:
                return self._say(404, b"")
            connection = http.client.HTTPConnection("127.0.0.1", attacker.rebound_to, timeout=30)
            connection.request(self.command, self.path, self._body(), dict(self.headers))
            reply = connection.getresponse()
            self._say(reply.status, reply.read())
            return connection.close()

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    with ThreadingHTTPServer((address, port), Handler) as server:
        attacker.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield attacker
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Attacked:
    """A deployment with something to lose."""

    cloud: Cloud
    marker: Path
    shutdowns: list[str]

    @property
    def port(self) -> int:
        return int(self.cloud.aws.endpoint_url.rpartition(":")[2])

    def is_unharmed(self) -> bool:
        families = self.cloud.clients("ecs").list_task_definition_families()["families"]
        kept = self.cloud.clients("s3").get_object(Bucket="argosy-results", Key="kept")["Body"].read()
        return not self.marker.exists() and not self.shutdowns and "evil" not in families and kept == b"mine"


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[Attacked]:
    obey = "tests.fakes.lambda_handlers.obey"
    with cloud(tmp_path, api_handler=obey) as made:
        made.clients("s3").put_object(Bucket="argosy-results", Key="kept", Body=b"mine")
        shutdowns: list[str] = []
        made.aws.on_shutdown = lambda: shutdowns.append("asked")
        yield Attacked(made, tmp_path / "invoked", shutdowns)


@pytest.mark.parametrize(
    ("host", "target"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("localhost", "127.0.0.1"), (EVIL, "127.0.0.1")],
    ids=["same-address", "same-site", "other-name", "stranger"],
)
def test_a_page_of_another_origin_neither_does_nor_reads_anything(
    attacked: Attacked, tmp_path: Path, host: str, target: str
) -> None:
    with serving(Attacker(attacked.marker, target=f"http://{target}:{attacked.port}")) as attacker:
        with page(f"http://{host}:{attacker.port}/page", tmp_path / "profile", {EVIL: "127.0.0.1"}):
            report = attacker.reports.get(timeout=PATIENCE_S)
        assert {name: said for name, said in report.items() if said not in NOT_READ} == {}
    assert attacked.is_unharmed()


def test_a_name_that_was_rebound_to_this_machine_is_refused(attacked: Attacked, tmp_path: Path) -> None:
    """To the browser it is all one origin: it sends every header, makes no preflight and lets the page read the
    replies."""
    attacker = Attacker(attacked.marker, rebound_to=attacked.port, target=f"http://{EVIL}:{attacked.port}")
    with (
        serving(attacker, "127.0.0.2", attacked.port),
        page(f"{attacker.target}/page", tmp_path / "profile", {EVIL: "127.0.0.2"}),
    ):
        report = attacker.reports.get(timeout=PATIENCE_S)
    read = {name for name, said in report.items() if said not in NOT_READ}
    assert {"signed post", "ecs", "presigned", "health"} <= read  # they arrived, and their refusals were read
    assert all("AccessDenied" in report[name] for name in read)
    assert attacked.is_unharmed()


def test_the_attack_would_work_on_a_server_without_a_gate(tmp_path: Path) -> None:
    """This shows that the other tests can fail: the same page, and a server that accepts every request."""
    marker = tmp_path / "invoked"
    heard: set[str] = set()

    class Careless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.add(json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}").get("action", ""))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Careless) as careless:
        thread = threading.Thread(target=careless.serve_forever, args=(0.05,))
        thread.start()
        target = f"http://127.0.0.1:{careless.server_address[1]}"
        with (
            serving(Attacker(marker, target=target)) as attacker,
            page(f"http://{EVIL}:{attacker.port}/page", tmp_path / "profile", {EVIL: "127.0.0.1"}),
        ):
            attacker.reports.get(timeout=PATIENCE_S)
        careless.shutdown()
        thread.join()
    assert {"simple", "unseen", "beacon", "form"} <= heard
