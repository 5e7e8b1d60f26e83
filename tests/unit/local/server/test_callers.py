"""Programs of this machine may call the embedded AWS; web pages may not, under any host name."""

from __future__ import annotations

import http.client
from typing import Any

import pytest
import requests

from argosy.loopback.server import stranger
from tests.fakes.serving import front, served
from tests.fakes.signing import signed

pytestmark = pytest.mark.slow

INVOKE = "/2015-03-31/functions/argosy-api/invocations"


def ask(port: int, method: str, path: str, headers: list[tuple[str, str]]) -> tuple[int, dict[str, str], str]:
    """One request with exactly these headers: none is added, not even Host."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value.replace("PORT", str(port)))
    connection.endheaders()
    reply = connection.getresponse()
    answer = reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read().decode()
    connection.close()
    return answer


def status_of(
    headers: list[tuple[str, str]], method: str = "GET", path: str = "/argosy/health", *, with_signature: bool = False
) -> int:
    with front(admin={"GET health": lambda request: {}, "POST shutdown": lambda request: {}}) as clients:
        added = signed(method, clients.endpoint + path) if with_signature else {}
        return ask(int(clients.endpoint.rpartition(":")[2]), method, path, [*headers, *added.items()])[0]


HERE = ("Host", "127.0.0.1:PORT")


@pytest.mark.parametrize(
    "headers",
    [
        [HERE],
        [("Host", "localhost:PORT")],
        [("Host", "LOCALHOST:PORT")],
        [HERE, ("Origin", "http://127.0.0.1:PORT")],
        [HERE, ("Sec-Fetch-Site", "none")],
        [HERE, ("Sec-Fetch-Site", "same-origin"), ("Origin", "http://127.0.0.1:PORT")],
    ],
)
def test_programs_and_our_own_origin_are_served(headers: list[tuple[str, str]]) -> None:
    assert status_of(headers) == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Host", "")],
        [("Host", "evil.example:PORT")],
        [("Host", "evil.example:PORT"), ("Origin", "http://evil.example:PORT"), ("Sec-Fetch-Site", "same-origin")],
        [("Host", "127.0.0.1")],
        [("Host", "127.0.0.1:1")],
        [("Host", "localhost.evil.example:PORT")],
        [("Host", "0.0.0.0:PORT")],
        [("Host", "evil.example:PORT"), HERE],
        [HERE, ("Host", "evil.example:PORT")],
        [HERE, ("Origin", "null")],
        [HERE, ("Origin", "")],
        [HERE, ("Origin", "http://evil.example")],
        [HERE, ("Origin", "http://localhost:PORT")],
        [HERE, ("Origin", "http://127.0.0.1:3000")],
        [HERE, ("Origin", "https://127.0.0.1:PORT")],
        [HERE, ("Sec-Fetch-Site", "cross-site")],
        [HERE, ("Sec-Fetch-Site", "same-site")],
        [HERE, ("Sec-Fetch-Site", "cross-site"), ("Sec_Fetch_Site", "none")],
        [HERE, ("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")],
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/argosy/health"), ("POST", INVOKE), ("GET", "/bucket/key")])
def test_other_names_and_other_origins_are_refused(headers: list[tuple[str, str]], method: str, path: str) -> None:
    """With a signature as well: under DNS rebinding a page may send any header."""
    assert status_of(headers, method, path, with_signature=True) == 403


@pytest.mark.parametrize("path", ["/argosy/health", INVOKE, "/bucket/key", "/", "*"])
def test_a_preflight_is_refused_and_learns_nothing(path: str) -> None:
    with front(admin={"GET health": lambda request: {}}) as clients:
        port = int(clients.endpoint.rpartition(":")[2])
        for origin in ([], [("Origin", "http://127.0.0.1:PORT")], [("Origin", "http://evil.example")]):
            signature = signed("OPTIONS", clients.endpoint + path) if path != "*" else {}
            asked = [HERE, *signature.items(), *origin, ("Access-Control-Request-Method", "POST")]
            status, headers, _ = ask(port, "OPTIONS", path, asked)
            assert status == 403
            assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", INVOKE, {}),
        ("POST", INVOKE + "?X-Amz-Credential=K", {}),
        ("POST", INVOKE, {"Authorization": "Basic YTpi"}),
        ("POST", "/", {"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.RunTask"}),
        ("POST", "/argosy/x", {"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.RunTask"}),
        ("POST", "/?Action=TerminateInstances", {}),
        ("GET", "/bucket/key", {}),
        ("DELETE", "/bucket/key?X-Amz-Credential=K", {}),
    ],
)
def test_aws_wants_a_signature(method: str, path: str, headers: dict[str, str]) -> None:
    with front() as clients:
        reply = requests.request(method, clients.endpoint + path, headers=headers, timeout=60)
    assert reply.status_code == 403


def test_applications_behind_the_gate_see_no_origins_and_allow_none() -> None:
    heard: dict[str, Any] = {}

    def generous(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        heard.update(environ)
        allowed = [("Access-Control-Allow-Origin", "*"), ("access-control-allow-headers", "x"), ("ETag", "1")]
        start_response("200 OK", allowed)
        return [b"page"]

    with front(moto=generous) as clients:
        address = f"{clients.endpoint}/bucket/key"
        asking = {**signed("GET", address), "Origin": clients.endpoint, "Access-Control-Request-Method": "PUT"}
        reply = requests.get(address, headers=asking, timeout=60)
    assert not [key for key in heard if "ORIGIN" in key or "ACCESS_CONTROL" in key]
    assert not [name for name in reply.headers if name.lower().startswith("access-control-")]
    assert reply.headers["ETag"] == "1"


def test_a_page_among_the_results_has_its_own_origin() -> None:
    """Else the HTML that a task has written could, once it is looked at, do all that our own origin may."""
    with front() as clients:
        page = f"{clients.endpoint}/bucket/page.html"
        replies = [
            requests.get(page, headers=signed("GET", page), timeout=60),
            requests.get(f"{clients.endpoint}/argosy/none", timeout=60),
        ]
    assert [reply.headers["Content-Security-Policy"] for reply in replies] == ["sandbox", "sandbox"]


def test_a_header_is_known_by_its_own_name_only() -> None:
    """As WSGI spells them `Sec_Fetch_Site` would be `Sec-Fetch-Site`, and a page may send the former."""
    heard: dict[str, Any] = {}

    def listening(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        heard.update(environ)
        start_response("200 OK", [])
        return [b""]

    with served(listening) as server:
        ask(server.port, "GET", "/", [HERE, ("X_Odd", "1"), ("X-Twice", "1"), ("x-twice", "2")])
    assert "HTTP_X_ODD" not in heard
    assert heard["HTTP_X_TWICE"] == "1,2"


@pytest.mark.parametrize(
    ("accepted_at", "host", "served_there"),
    [
        ("172.18.0.1", "172.18.0.1:4566", True),  # a container's way to us
        ("172.18.0.1", "127.0.0.1:4566", True),
        ("172.18.0.1", "evil.example:4566", False),
        ("127.0.0.1", "172.18.0.1:4566", False),
    ],
)
def test_the_address_at_which_a_connection_was_accepted_is_a_name_of_ours(
    accepted_at: str, host: str, served_there: bool
) -> None:
    environ = {"SERVER_NAME": accepted_at, "SERVER_PORT": "4566", "HTTP_HOST": host}
    assert (stranger({**environ, "REQUEST_METHOD": "GET"}) is None) is served_there
