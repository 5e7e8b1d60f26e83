"""The pages by address, and the parts that a browser has not seen yet."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from argosy.client.errors import ArgosyError, from_aws, is_from_aws
from argosy.figures import document
from argosy.figures.document import Figure, Page
from argosy.figures.markup import element
from argosy.loopback.server import Environ, StartResponse, stranger
from argosy.ui import actions, services, tasks
from argosy.ui.deployment_reader import SPANS, DeploymentReader, NoSuchPage
from argosy.ui.guard import PARAMETER, Guard

_STATIC = {
    "/static/page.css": "text/css",
    "/static/served.css": "text/css",
    "/static/dense.js": "text/javascript",
    "/static/live.js": "text/javascript",
}
_POLL_S, _SLOW_POLL_S = 3.0, 15.0
_PAGES: tuple[tuple[re.Pattern[str], Callable[..., Page], float], ...] = (
    (re.compile("/"), DeploymentReader.runs, _POLL_S),
    (re.compile("/stream"), tasks.stream, _POLL_S),
    (re.compile("/queues"), DeploymentReader.queues, _SLOW_POLL_S),
    (re.compile("/market"), DeploymentReader.market, _SLOW_POLL_S),
    (re.compile(r"/runs/([a-z0-9-]{1,100})", re.ASCII), DeploymentReader.run, _POLL_S),
    (re.compile(r"/runs/([a-z0-9-]{1,100})/plan", re.ASCII), DeploymentReader.plan, _SLOW_POLL_S),
    (re.compile(r"/runs/([a-z0-9-]{1,100})/tasks", re.ASCII), tasks.tasks, _POLL_S),
    (re.compile(r"/runs/([a-z0-9-]{1,100})/tasks/([0-9]{1,7})", re.ASCII), tasks.task, _POLL_S),
    (re.compile("/services"), services.services, _POLL_S),
    (re.compile(r"/services/([a-z0-9-]{1,63})", re.ASCII), services.service, _POLL_S),
    (re.compile("/schedules"), services.schedules, _SLOW_POLL_S),
    (re.compile(r"/schedules/([a-z0-9-]{1,64})", re.ASCII), services.schedule, _SLOW_POLL_S),
)
_ACTION = re.compile(r"/runs/([a-z0-9-]{1,100})/(cancel|retry|interrupt)", re.ASCII)
_BY_QUERY = (DeploymentReader.runs, tasks.tasks, tasks.task)  # pages that depend on the query of their address
_VERSIONS_KEPT = 64
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_ALWAYS = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply."""

    status: HTTPStatus
    body: bytes = b""
    kind: str = _TEXT
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Pages:
    """The WSGI application. title: of the deployment, as every page names it."""

    reader: DeploymentReader
    guard: Guard
    title: str
    _seen: OrderedDict[str, dict[str, str]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        answer = self._answer(environ)
        headers = [("Content-Type", answer.kind), *_ALWAYS, *answer.headers]
        if environ["REQUEST_METHOD"] == "HEAD":
            headers.append(("Content-Length", str(len(answer.body))))
        start_response(f"{answer.status.value} {answer.status.phrase}", headers)
        return [answer.body]

    def _answer(self, environ: Environ) -> Answer:
        if (why := stranger(environ)) is not None:
            return Answer(HTTPStatus.FORBIDDEN, f"{why}\n".encode())
        path, query = str(environ["PATH_INFO"]), str(environ["QUERY_STRING"])
        if environ["REQUEST_METHOD"] == "POST" and (action := _ACTION.fullmatch(path)) is not None:
            return self._acted(environ, *action.groups())
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"this page only reads\n", headers=(("Allow", "GET, HEAD"),))
        if not self.guard.knows(environ):
            return self._let_in(environ, path)
        if f"{PARAMETER}=" in query:  # it is known here: the address need not hold it any longer
            return Answer(HTTPStatus.SEE_OTHER, headers=(("Location", path),))
        if path in _STATIC:
            return Answer(HTTPStatus.OK, document.asset(path.rpartition("/")[2]).encode(), _STATIC[path])
        return self._page(environ, path, query)

    def _let_in(self, environ: Environ, path: str) -> Answer:
        cookie = self.guard.exchanged(environ)
        if cookie is None:
            said = "Open the address that `argosy ui` printed. It works once: for another browser, start it again.\n"
            return Answer(HTTPStatus.FORBIDDEN, said.encode())
        return Answer(HTTPStatus.SEE_OTHER, headers=(("Location", path), ("Set-Cookie", cookie)))

    def _acted(self, environ: Environ, run_id: str, action: str) -> Answer:
        """Nothing happens without the cookie and the token of the confirmation."""
        try:
            done = self.guard.knows(environ) and actions.carry_out(self.reader, self.guard, environ, run_id, action)
        except Exception as fault:
            page = _refused(fault)
            if page is None:
                raise
            return Answer(HTTPStatus.CONFLICT, self._served(page, f"/runs/{run_id}/{action}", _SLOW_POLL_S), _HTML)
        if not done:
            said = (
                f"Nothing was changed: open /runs/{run_id}/{action} and confirm there. Each confirmation works once.\n"
            )
            return Answer(HTTPStatus.FORBIDDEN, said.encode())
        return Answer(HTTPStatus.SEE_OTHER, headers=(("Location", f"/runs/{run_id}"),))

    def _served(self, page: Page, path: str, poll_s: float) -> bytes:
        return document.served(page, path, self.title, poll_s).encode()

    def _page(self, environ: Environ, path: str, query: str) -> Answer:
        status, (first, _, rest) = HTTPStatus.OK, query.partition("&")
        wants_changes = first == "changes"
        try:
            page, poll_s = self._at(path, rest if wants_changes else query)
        except NoSuchPage as why:
            page, poll_s, status = _said("Not here", str(why)), _SLOW_POLL_S, HTTPStatus.NOT_FOUND
        except Exception as fault:
            refused = _refused(fault)
            if refused is None:
                raise
            page, poll_s, status = refused, _SLOW_POLL_S, HTTPStatus.BAD_GATEWAY
        if wants_changes:
            return (
                self.changes(page, environ.get("HTTP_IF_NONE_MATCH", "")) if status == HTTPStatus.OK else Answer(status)
            )
        return Answer(status, self._served(page, path, poll_s), _HTML)

    def _at(self, path: str, query: str) -> tuple[Page, float]:
        """The page, and its refresh interval in seconds. Raises NoSuchPage."""
        if path in SPANS:
            return self.reader.cluster(path), _SLOW_POLL_S
        if (found := _ACTION.fullmatch(path)) is not None:
            return actions.confirmation(self.reader, self.guard, *found.groups()), _SLOW_POLL_S
        for pattern, page, poll_s in _PAGES:
            if (found := pattern.fullmatch(path)) is not None:
                return page(self.reader, *found.groups(), *([query] if page in _BY_QUERY else [])), poll_s
        raise NoSuchPage("There is no page at this address.")

    def changes(self, page: Page, seen: str) -> Answer:
        """The parts that differ from those of the version that the browser has; all of them for an unknown one."""
        parts = document.parts(page)
        data = {key: json.dumps(each) for key, each in document.drawn(page).items()}
        digests = {key: _digest(html + data.get(key, "")) for key, html in parts.items()}
        version = f'"{_digest(json.dumps(digests))}"'
        with self._lock:
            known = self._seen.get(seen, {})
            self._seen[version] = digests
            while len(self._seen) > _VERSIONS_KEPT:
                self._seen.popitem(last=False)
        if seen == version:
            return Answer(HTTPStatus.NOT_MODIFIED, headers=(("ETag", version),))
        changed = [key for key in parts if digests[key] != known.get(key)]
        drawn = ", ".join(f"{json.dumps(key)}: {data[key]}" for key in changed if key in data)
        body = f'{{"parts": {json.dumps({key: parts[key] for key in changed})}, "data": {{{drawn}}}}}'
        return Answer(HTTPStatus.OK, body.encode(), _JSON, (("ETag", version),))


def _refused(fault: Exception) -> Page | None:
    """What AWS or the deployment said; None for a fault of ours."""
    if not isinstance(fault, ArgosyError) and not is_from_aws(fault):
        return None
    refusal = fault if isinstance(fault, ArgosyError) else from_aws(fault)
    return _said("No answer", refusal.message)


def _said(heading: str, sentence: str) -> Page:
    return Page(f"{heading} · Argosy", heading, [Figure("said", heading, picture=element("p", sentence), wide=True)])


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
