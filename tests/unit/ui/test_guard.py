"""Only the browser that opened the printed address may read, and only a confirmation on a page changes anything."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from argosy.client.aws_clients import Connection
from argosy.client.errors import ArgosyError
from argosy.loopback.server import WsgiServer
from argosy.ui.guard import Guard
from argosy.ui.pages import Pages
from tests.fakes.cli import RUN_ID, refusal, tasks
from tests.fakes.fis import Fis
from tests.fakes.reader import reader

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
    api: Any = None
    access: Any = None

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {name.replace("_", "-"): value.replace("PORT", str(self.port)) for name, value in headers.items()}
        if self.jar:
            given.setdefault("Cookie", self.jar)
        connection.request(method, path, body, headers=given)
        reply = connection.getresponse()
        answer = Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read().decode())
        connection.close()
        return answer

    def enter(self) -> Reply:
        reply = self.ask(f"/?token={self.token}")
        self.jar = reply.headers.get("set-cookie", "").partition(";")[0]
        return reply

    def confirm(self, action: str, form: str = "", **headers: str) -> Reply:
        """As a browser does after the question; TOKEN in the form is the page's."""
        path = f"/runs/{RUN_ID}/{action}"
        [token] = re.findall('name="token" value="([^"]+)"', self.ask(path).text)
        given = {"Origin": f"http://127.0.0.1:{self.port}", "Sec_Fetch_Site": "same-origin"} | headers
        return self.ask(path, "POST", (form or "token=TOKEN").replace("TOKEN", token), **given)

    @property
    def changes(self) -> list[str]:
        return [each for each in self.asked if each.startswith(("cancel", "retry"))]


@pytest.fixture
def site() -> Iterator[Site]:
    guard, shown = Guard(), reader()
    api: Any = shown.access.api
    api.view = {**api.view, "tasks": tasks(running=3, pending=2, failed=4)}
    server = WsgiServer(Pages(shown, guard, "argosy in us-east-1"))
    server.start()
    try:
        yield Site(server.port, guard.token, asked=api.asked, api=api, access=shown.access)
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
    Pages(reader(), guard, "argosy")(rebound, lambda status, headers: said.append(status))
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


def test_a_run_is_cancelled_after_a_confirmation_which_counts_once(site: Site) -> None:
    site.enter()
    site.api.view |= {"status": "RUNNING"}
    assert f'href="/runs/{RUN_ID}/cancel"' in site.ask(f"/runs/{RUN_ID}").text
    page = site.ask(f"/runs/{RUN_ID}/cancel").text
    assert "3 live tasks will be stopped, and 2 will never start." in page
    assert site.ask(f"/runs/{RUN_ID}/cancel").text == page  # a tab that looks again invalidates no form
    assert site.changes == []
    [token] = re.findall('name="token" value="([^"]+)"', page)
    done = site.confirm("cancel", "token=TOKEN&reason=too+late%C3%A9")
    assert (done.status, done.headers["location"]) == (303, f"/runs/{RUN_ID}")
    again = site.ask(f"/runs/{RUN_ID}/cancel", "POST", f"token={token}", Origin=f"http://127.0.0.1:{site.port}")
    assert again.status == 403
    assert site.changes == [f"cancel {RUN_ID} too lateé"]
    assert "neither an index" in site.confirm("cancel", "token=TOKEN&tasks=x").text
    assert site.confirm("cancel", "token=TOKEN&tasks=3,7-8").status == 303
    assert site.changes[1:] == [f"cancel {RUN_ID} None [[3, 3], [7, 8]]"]


def test_what_failed_is_retried_after_a_confirmation(site: Site) -> None:
    site.enter()
    assert f'href="/runs/{RUN_ID}/retry"' in site.ask(f"/runs/{RUN_ID}").text
    assert "4 failed tasks" in site.ask("/runs/last/retry").text
    nothing = site.confirm("retry")
    assert nothing.status == 409
    assert "Choose the failed tasks" in nothing.text
    assert site.confirm("retry", "token=TOKEN&failed=yes").status == 303
    assert site.changes == [f"retry {RUN_ID} ['failed']"]


def test_a_run_that_cannot_be_changed_has_no_form(site: Site) -> None:
    site.enter()
    assert "<button" not in site.ask(f"/runs/{RUN_ID}/cancel").text  # it has ended
    site.api.view |= {"status": "RUNNING"}
    site.ask("/runs/other/retry")
    assert "<button" not in site.ask(f"/runs/{RUN_ID}/retry").text


def test_an_instance_of_local_mode_is_interrupted_after_a_confirmation(site: Site) -> None:
    notices: list[Any] = []

    def local_mode(environ: Any, start_response: Any) -> list[bytes]:
        given = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        notices.append((environ["PATH_INFO"], json.loads(given)))
        start_response("200 OK", [("Content-Type", "application/json")])
        return [b"{}"]

    server = WsgiServer(local_mode)
    server.start()
    try:
        site.access.connection = Connection(endpoint_url=f"http://127.0.0.1:{server.port}", region="us-east-1")
        site.enter()
        site.api.view |= {"status": "RUNNING", "taskList": [{"index": 7, "status": "RUNNING", "instance": "i-0a"}]}
        assert f'href="/runs/{RUN_ID}/interrupt"' in site.ask(f"/runs/{RUN_ID}").text
        for form, status in {
            "task=7&seconds=121": 409, "task=&seconds=5": 409, "task=8&seconds=5": 409, "task=7&seconds=5": 303
        }.items():  # fmt: skip
            assert site.confirm("interrupt", f"token=TOKEN&{form}").status == status
        assert notices == [("/argosy/interrupt", {"instanceId": "i-0a", "noticeS": 5.0})]
        assert site.confirm("interrupt", "token=x&task=7&seconds=5").status == 403
        site.api.view |= {"taskList": []}
        assert "No task of the run is running." in site.ask(f"/runs/{RUN_ID}/interrupt").text
    finally:
        server.close()
    assert len(notices) == 1


def test_on_aws_an_instance_is_interrupted_where_the_owner_allows_it(site: Site) -> None:
    fis, arn = Fis("running"), "arn:aws:ecs:eu-west-1:123456789012:task/argosy/f00"
    question, row = f"/runs/{RUN_ID}/interrupt", {"index": 7, "status": "RUNNING", "instance": "i-0a", "taskArn": arn}
    site.enter()
    site.api.view |= {"status": "RUNNING", "taskList": [row]}
    site.access.connection, site.access.deployment.allow_interrupt = Connection(), True
    assert f'href="{question}"' in site.ask(f"/runs/{RUN_ID}").text
    site.access.client = lambda service, region=None: {"fis": fis}[service]
    site.access.deployment.allow_interrupt = False
    refused = site.ask(question)
    assert (refused.status, "its setting allowInterrupt is not true" in refused.text) == (404, True)
    site.access.deployment.allow_interrupt = True
    assert 'name="seconds"' not in site.ask(question).text  # AWS's notice has its length
    assert site.confirm("interrupt", "token=x&task=7").status == 403
    assert site.confirm("interrupt", "token=TOKEN&task=7", Origin="http://evil.example").status == 403
    assert site.confirm("interrupt", "token=TOKEN&task=8").status == 409
    assert fis.calls == []
    assert site.confirm("interrupt", "token=TOKEN&task=7").status == 303
    assert fis.calls[0][1]["targets"]["one"]["resourceArns"] == ["arn:aws:ec2:eu-west-1:123456789012:instance/i-0a"]
    site.access.client = lambda service, region=None: {"fis": Fis("failed")}[service]
    assert "i-0a was not interrupted" in site.confirm("interrupt", "token=TOKEN&task=7").text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example:PORT", "Origin": "http://evil.example:PORT"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Cookie": ""},
        {"Cookie": "argosy-PORT=x"},
    ],
)
def test_a_hostile_page_changes_nothing_even_if_it_knows_the_token(site: Site, headers: Headers) -> None:
    site.enter()
    reply = site.confirm("retry", "token=TOKEN&failed=yes", **headers)
    assert (reply.status, site.changes) == (403, [])


@pytest.mark.parametrize(
    "form", ["failed=yes", "token=&failed=yes", "token=x", "token=%ff", "&".join(["a=1"] * 30), "token"]
)
def test_a_form_without_the_token_of_its_page_changes_nothing(site: Site, form: str) -> None:
    site.enter()
    assert (site.confirm("retry", form).status, site.changes) == (403, [])


def test_a_token_counts_for_its_own_action_and_run_only_and_never_in_an_address(site: Site) -> None:
    site.enter()
    [token] = re.findall('name="token" value="([^"]+)"', site.ask(f"/runs/{RUN_ID}/retry").text)
    own = {"Origin": f"http://127.0.0.1:{site.port}"}
    form = f"token={token}&failed=yes"
    for path in (f"/runs/{RUN_ID}/cancel", "/runs/last/retry", "/runs/other-261121-062733-k3f9/retry"):
        assert site.ask(path, "POST", form, **own).status == 403
    assert site.ask(f"/runs/{RUN_ID}/retry?{form}", **own).status == 303  # as for every page: the query is dropped
    assert site.ask(f"/runs/{RUN_ID}/retry?{form}", "POST", "", **own).status == 403
    assert site.ask(f"/runs/{RUN_ID}/retry", "POST", form).status == 403  # no browser leaves the origin out
    assert site.changes == []
    assert site.ask(f"/runs/{RUN_ID}/retry", "POST", form, **own).status == 303


def test_a_change_that_the_deployment_refuses_is_reported_on_the_page(site: Site) -> None:
    site.enter()

    def refused(*given: Any) -> Any:
        raise ArgosyError("the run belongs to an environment")

    site.api.retry = refused
    reply = site.confirm("retry", "token=TOKEN&failed=yes")
    assert reply.status == 409
    assert "belongs to an environment" in reply.text


def test_only_the_newest_forms_have_a_token() -> None:
    guard = Guard()
    first = guard.token_for("cancel 0")
    newest = [guard.token_for(f"cancel {number}") for number in range(1, 300)][-1]
    assert not guard.spent("cancel 0", first)
    assert guard.spent("cancel 299", newest)
    assert not guard.spent("cancel 299", newest)


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
    shown = reader()
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
