"""The one port: routing of requests, and connections that stay in step and end."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError

from argosy.client.aws_clients import Connection, make_client
from argosy.client.errors import from_aws
from argosy.client.local_key import LocalKey
from argosy.emulator.ecs.service import EcsModel
from argosy.emulator.region import AwsRegion
from argosy.local.lambdas.invoke_api import LambdaApi
from argosy.local.server.front import Front, UnknownThingError
from argosy.local.server.signatures import Signatures
from argosy.loopback.server import Bounds, WsgiServer
from tests.fakes.serving import Region, front, no_moto, served
from tests.fakes.signing import KEY, send, signed
from tests.fakes.waiting import until

pytestmark = pytest.mark.slow

CALLS: dict[str, Callable[[Any], Any]] = {  # JSON, REST with JSON, queries, and XML
    "ssm": lambda client: client.get_parameter(Name="/argosy/deployment"),
    "lambda": lambda client: client.invoke(FunctionName="argosy-api"),
    "sts": lambda client: client.get_caller_identity(),
    "ec2": lambda client: client.describe_fleets(),
    "s3": lambda client: client.list_objects_v2(Bucket="argosy-results"),
}


def _echo(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [("X-Path", environ["PATH_INFO"]), ("Content-Length", "999")])
    return [environ["wsgi.input"].read()]


def test_a_connection_serves_many_requests_even_if_the_application_reads_no_body() -> None:
    def deaf(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [environ["REQUEST_METHOD"].encode()]

    with served(deaf) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        sockets = []
        for _ in range(3):
            connection.request("POST", "/", body=b"x" * 100_000)
            assert connection.getresponse().read() == b"POST"
            sockets.append(connection.sock)
        connection.close()
    assert sockets[0] is not None
    assert len({id(each) for each in sockets}) == 1


def test_chunked_bodies_are_read_whole() -> None:
    with served(_echo) as server:
        reply = requests.post(f"http://127.0.0.1:{server.port}/a", data=iter([b"one ", b"two"]), timeout=60)
    assert (reply.content, reply.headers["X-Path"]) == (b"one two", "/a")


def test_a_put_that_expects_to_be_waved_through_is() -> None:
    with served(_echo) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.putrequest("PUT", "/a")
        connection.putheader("Expect", "100-continue")
        connection.putheader("Content-Length", "2")
        connection.endheaders()
        assert connection.sock.recv(25).startswith(b"HTTP/1.1 100 Continue")
        connection.send(b"hi")
        assert connection.getresponse().read() == b"hi"
        connection.close()


def test_a_head_reply_states_the_length_but_has_no_body() -> None:
    with served(_echo) as server:
        reply = requests.head(f"http://127.0.0.1:{server.port}/", timeout=60)
    assert (reply.headers["Content-Length"], reply.content) == ("999", b"")


def test_close_ends_idle_connections_and_every_thread() -> None:
    before = set(threading.enumerate())
    with served(_echo) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/")
        connection.getresponse().read()
    assert connection.sock is not None
    assert connection.sock.recv(1) == b""
    connection.close()
    assert set(threading.enumerate()) == before


def raw(port: int, request: bytes) -> bytes:
    """All that the server says to these bytes, until it hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (b"Content-Length: abc", b"", 400),
        (b"Content-Length: -5", b"", 400),
        (b"Content-Length: 1_0", b"", 400),
        (b"Content-Length: 100000000000000", b"", 413),
        (b"Transfer-Encoding: chunked", b"zz\r\n", 400),
        (b"Transfer-Encoding: chunked", b"-5\r\n", 400),
        (b"Transfer-Encoding: chunked", b"fffffffffffffff\r\n", 413),
        (b"Transfer-Encoding: gzip, chunked", b"", 501),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_and_ends_the_connection(
    head: bytes, body: bytes, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(_echo) as server:
        said = raw(server.port, b"POST / HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n" + body)
    assert said.startswith(b"HTTP/1.1 %d " % status)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST / HTTP/2.0\r\n\r\n", 400),
        (b"POST /\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length : 5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: " + b"x" * 65_536 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431),
        (b"BREW / HTTP/1.1\r\n\r\n", 501),
    ],
)
def test_a_head_that_cannot_be_read_is_refused(request_bytes: bytes, status: int) -> None:
    """Two readers of one request that differ in where it ends would let one request hide another."""
    with served(_echo) as server:
        assert raw(server.port, request_bytes).startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize(
    "sent", [b"POST / HTTP/1.1\r\nHost: x\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"]
)
def test_a_request_that_is_cut_off_is_dropped(sent: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    heard = []

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        heard.append(environ)
        return []

    with served(application) as server:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
        connection.close()
    assert not heard
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\nHos", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhal"])
def test_a_client_that_falls_silent_is_hung_up_on(sent: bytes) -> None:
    before = set(threading.enumerate())
    with served(_echo, Bounds(patience_s=0.2)) as server:
        assert raw(server.port, sent) == b""
        assert until(lambda: len(threading.enumerate()) == len(before) + 1)  # the one that listens


def test_the_number_of_connections_is_limited_and_one_that_ends_makes_room() -> None:
    with served(_echo, Bounds(connections=2)) as server:
        address = ("127.0.0.1", server.port)
        silent = [socket.create_connection(address, timeout=60) for _ in range(2)]
        assert raw(server.port, b"").startswith(b"HTTP/1.1 503 ")
        silent.pop().close()
        assert until(lambda: requests.get(f"http://127.0.0.1:{server.port}/", timeout=60).status_code == 200)
        silent.pop().close()


def test_only_the_loopback_interface_is_listened_on() -> None:
    with served(_echo) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_a_taken_port_is_an_os_error() -> None:
    with served(_echo) as server, pytest.raises(OSError, match="in use"):
        WsgiServer(_echo, server.port)


def test_what_is_not_ours_is_motos() -> None:
    with front() as clients:
        address = f"{clients.endpoint}/bucket/key"
        reply = send("GET", address)
    assert reply.text == "moto got GET /bucket/key"


def steered(
    endpoint: str, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> requests.Response:
    address = f"{endpoint}/argosy/{path}"
    proof = signed(method, address, "argosy", body)
    return requests.request(method, address, data=body, headers={**proof, **(headers or {})}, timeout=60)


def test_admin_requests_reach_their_action() -> None:
    with front(admin={"POST interrupt": lambda request: {"echo": request["instanceId"]}}) as clients:
        reply = steered(clients.endpoint, "POST", "interrupt", b'{"instanceId": "i-1"}')
    assert (reply.status_code, reply.json()) == (200, {"echo": "i-1"})


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("POST", "interrupt", b"{}", {}, 400),  # KeyError
        ("POST", "interrupt", b"{", {}, 400),
        ("POST", "unknown", b"{}", {}, 404),
        ("POST", "nothing", b"{}", {}, 404),
        ("GET", "interrupt", b"", {}, 404),
        ("POST", "interrupt", b'{"instanceId": "i-1"}', {"Origin": "http://evil.example"}, 403),
    ],
)
def test_admin_requests_that_cannot_be_are_refused(
    method: str, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    def unknown(request: dict[str, Any]) -> dict[str, Any]:
        raise UnknownThingError("no such thing")

    admin = {"POST interrupt": lambda request: {"id": request["instanceId"]}, "POST unknown": unknown}
    with front(admin=admin) as clients:
        reply = steered(clients.endpoint, method, path, body, headers)
    assert reply.status_code == status


def test_our_own_page_may_steer() -> None:
    with front(admin={"POST x": lambda request: {}}) as clients:
        reply = steered(clients.endpoint, "POST", "x", headers={"Origin": clients.endpoint})
    assert reply.status_code == 200


def test_without_a_signature_the_only_answer_is_whether_it_is_well() -> None:
    admin = {"GET health": lambda request: {}, "POST shutdown": lambda request: {}}
    with front(admin=admin) as clients:
        replies = [
            requests.get(f"{clients.endpoint}/argosy/health", timeout=60),
            requests.post(f"{clients.endpoint}/argosy/shutdown", timeout=60),
            requests.post(f"{clients.endpoint}/argosy/health", timeout=60),
        ]
    assert [reply.status_code for reply in replies] == [200, 403, 403]


def test_a_signed_request_below_argosy_is_for_a_bucket_of_that_name() -> None:
    with front(admin={"GET health": lambda request: {}}) as clients:
        address = f"{clients.endpoint}/argosy/health"
        reply = send("GET", address)
    assert reply.text == "moto got GET /argosy/health"


def test_each_region_answers_for_itself_and_an_unknown_one_is_answered_by_home() -> None:
    clusters = {}
    for region in ("us-east-1", "eu-west-1"):
        clusters[region] = EcsModel(AwsRegion(lambda: 0.0, region))
        clusters[region].create_cluster(clusterName=f"in-{region}")
    with front(ecs=clusters["us-east-1"], away={"eu-west-1": Region(clusters["eu-west-1"])}) as clients:
        named = {
            region: clients("ecs", region).list_clusters()["clusterArns"][0].split("/")[-1]
            for region in ("us-east-1", "eu-west-1", "ap-south-1")
        }
    assert named == {"us-east-1": "in-us-east-1", "eu-west-1": "in-eu-west-1", "ap-south-1": "in-us-east-1"}


def test_requests_during_the_start_are_asked_to_try_again() -> None:
    starting = Front(
        cells={"us-east-1": Region()},
        functions=LambdaApi({}),
        admin={"GET health": lambda request: {"status": "starting"}},
        moto=no_moto,
        signatures=Signatures({"first": "secret", KEY.id: KEY.secret}.get),
        start_key="first",
    )
    with served(starting) as server:
        address = f"http://127.0.0.1:{server.port}/bucket"
        first, later = signed("GET", address, key=LocalKey("first", "secret")), signed("GET", address)
        early = requests.get(address, headers=later, timeout=60)
        assert (early.status_code, early.headers["Retry-After"]) == (503, "1")
        assert "still starting" in early.text
        hurried = Connection(f"http://127.0.0.1:{server.port}", region="us-east-1", patience_s=60.0)
        for service, call in CALLS.items():
            with pytest.raises(ClientError) as refused:
                call(make_client(hurried, service))
            assert "local mode may still be starting" in from_aws(refused.value).message
        assert requests.get(address, headers=first, timeout=60).status_code == 418
        health = f"http://127.0.0.1:{server.port}/argosy/health"
        assert requests.get(health, timeout=60).json() == {"status": "starting"}
        starting.open()
        assert requests.get(address, headers=later, timeout=60).status_code == 418
