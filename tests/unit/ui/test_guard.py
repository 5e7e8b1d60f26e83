"""Only the browser that opened the printed address may read, and no request may change anything."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from argosy.client.errors import ArgosyError
from argosy.loopback.server import WsgiServer
from argosy.ui.guard import Guard
from argosy.ui.pages import Pages
from tests.fakes.cli import refusal
from tests.fakes.looks import looks

pytestmark = pytest.mark.slow

Headers = dict[str, str]


@dataclass
class Reply:
    status: int
    headers: Headers
    text: str


@dataclass
class Site:
    port: int
    token: str
    jar: str = ""
    asked: list[str] = field(default_factory=list)

    def ask(self, path: str, method: str = "GET", **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {name.replace("_", "-"): value.replace("PORT", str(self.port)) for name, value in headers.items()}
        if self.jar:
            given.setdefault("Cookie", self.jar)
        connection.request(method, path, headers=given)
        reply = connection.getresponse()
        answer = Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read().decode())
        connection.close()
        return answer

    def enter(self) -> Reply:
        reply = self.ask(f"/?token={self.token}")
        self.jar = reply.headers.get("set-cookie", "").partition(";")[0]
        return reply


@pytest.fixture
def site() -> Iterator[Site]:
    guard = Guard()
    server = WsgiServer(Pages(looks(), guard, "argosy in us-east-1"))
    server.start()
    try:
        yield Site(server.port, guard.token)
    finally:
        server.close()


def test_the_printed_address_lets_one_browser_in(site: Site) -> None:
    entered = site.enter()
    assert (entered.status, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"argosy-{site.port}=")  # cookies do not tell ports apart
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
    assert site.ask("/").status == 200


def test_a_token_counts_once(site: Site) -> None:
    site.enter()
    assert site.ask(f"/?token={site.token}", Cookie="").status == 403
    assert site.ask(f"/?token={site.token}").status == 303  # the same browser, reloading: it has the cookie


@pytest.mark.parametrize("token", ["", "x", "%ff", "%00", "&token="])
def test_a_wrong_token_admits_no_browser_and_does_not_use_up_the_right_one(site: Site, token: str) -> None:
    assert site.ask(f"/?token={token}").status == 403
    assert site.enter().status == 303


@pytest.mark.parametrize("cookie", ["", "argosy-PORT=x", "argosy-1=x", "=;;==", "argosy-PORT=\xe9"])
def test_without_the_cookie_there_is_nothing_to_see(site: Site, cookie: str) -> None:
    site.enter()
    for path in ("/", "/cluster", "/static/page.css", "/runs/digits-261121-062733-k3f9?changes"):
        assert site.ask(path, Cookie=cookie).status == 403


@pytest.mark.parametrize("foreign", ['theme={"dark":true}', "two words=1", "no-value", "caf\xe9=1", "argosy-PORT=old"])
def test_cookies_of_other_programs_on_this_machine_lock_no_browser_out(site: Site, foreign: str) -> None:
    """Browsers send a host's cookies to all of its ports, in whatever form they were set."""
    site.enter()
    assert site.ask("/", Cookie=f"{foreign}; {site.jar}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:PORT"},
        {"Host": "evil.example:PORT", "Origin": "http://evil.example:PORT", "Sec_Fetch_Site": "same-origin"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:3000"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_strangers_are_refused_even_with_the_cookie(site: Site, headers: Headers) -> None:
    site.enter()
    assert site.ask("/", **headers).status == 403
    assert site.ask(f"/?token={site.token}", **headers).status == 403


def test_a_stranger_is_refused_before_the_token_counts() -> None:
    """Without a server: a browser's request when a name was rebound to this machine."""
    guard = Guard()
    said: list[str] = []
    rebound = {
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "HTTP_HOST": "evil.example",
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/",
        "QUERY_STRING": f"token={guard.token}",
    }
    Pages(looks(), guard, "argosy")(rebound, lambda status, headers: said.append(status))
    assert said == ["403 Forbidden"]
    assert guard.token


@pytest.mark.parametrize(
    ("method", "status"), [("POST", 405), ("PUT", 405), ("DELETE", 405), ("PATCH", 405), ("OPTIONS", 403)]
)
def test_nothing_but_reading_is_possible(site: Site, method: str, status: int) -> None:
    site.enter()
    assert site.ask("/", method).status == status


@pytest.mark.parametrize(
    "path",
    [
        "/static/../guard.py",
        "/static/%2e%2e/guard.py",
        "/static/",
        "/static/README.md",
        "//etc/passwd",
        "/runs/../x",
        "/runs/%00",
    ],
)
def test_there_are_no_other_files(site: Site, path: str) -> None:
    site.enter()
    reply = site.ask(path)
    assert reply.status == 404
    assert "There is no" in reply.text


def test_every_reply_has_the_policy(site: Site) -> None:
    site.enter()
    for reply in (
        site.ask("/"),
        site.ask("/", Cookie=""),
        site.ask("/x"),
        site.ask("/", "POST"),
        site.ask("/?changes"),
    ):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"


def test_a_page_has_no_inline_script_or_style_for_the_policy_to_refuse(site: Site) -> None:
    site.enter()
    for path in ("/", "/cluster", "/market", "/runs/digits-261121-062733-k3f9", "/runs/digits-261121-062733-k3f9/plan"):
        text = site.ask(path).text
        for attributes, content in re.findall(r"<script([^>]*)>(.*?)</script>", text, flags=re.DOTALL):
            assert 'type="application/json"' in attributes or not content
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", text)


def test_a_change_is_asked_for_with_the_filters_of_the_page(site: Site) -> None:
    site.enter()
    path = "/runs/digits-261121-062733-k3f9/tasks"
    assert "exit 1" in site.ask(f"{path}?state=failed").text
    changes = site.ask(f"{path}?changes&state=failed").text
    assert "exit 1" in changes
    assert "status-succeeded" not in json.loads(changes)["parts"]["tasks"]


def test_a_browser_that_has_seen_it_all_gets_nothing_new(site: Site) -> None:
    site.enter()
    path = "/runs/digits-261121-062733-k3f9?changes"
    first = site.ask(path)
    again = site.ask(path, If_None_Match=first.headers["etag"])
    assert (first.status, again.status, again.text) == (200, 304, "")
    assert site.ask(path, If_None_Match='"unknown"').text == first.text


@pytest.mark.parametrize("fault", [refusal("ExpiredTokenException", "sign in again"), ArgosyError("nobody is there")])
def test_an_unreachable_aws_is_reported_on_the_page(fault: Exception) -> None:
    shown = looks()
    api: Any = shown.access.api

    def refused(limit: int) -> Any:
        raise fault

    api.runs = refused
    guard = Guard()
    server = WsgiServer(Pages(shown, guard, "argosy"))
    server.start()
    try:
        site = Site(server.port, guard.token)
        site.enter()
        reply = site.ask("/")
        changes = site.ask("/?changes")
    finally:
        server.close()
    assert (reply.status, changes.status, changes.text) == (502, 502, "")
    assert "sign in again" in reply.text or "nobody is there" in reply.text


def test_a_head_request_states_the_length(site: Site) -> None:
    site.enter()
    reply = site.ask("/", "HEAD")
    assert (reply.status, reply.text) == (200, "")
    assert int(reply.headers["content-length"]) > 1000
