"""Who may see the page? The user who started it, in the browser that opened the printed address.

Programs of other users of this machine can reach the port as well, and can make a browser do so. So besides the gate of
the room `loopback` there is a token: the opened address holds it, it counts once, and it is exchanged for a cookie. The
cookie's name carries the port, because cookies do not distinguish ports.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from argosy.loopback.server import Environ

PARAMETER = "token"  # of the first address
_ACTIONS_KEPT = 256  # tokens of forms, the newest


@dataclass
class Guard:
    """The secrets of one server. token: what the first address holds, until it was used."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _actions: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def token_for(self, action: str) -> str:
        """The secret of a form for one action on one run; the same until it is used."""
        with self._lock:
            token = self._actions.setdefault(action, secrets.token_urlsafe(32))
            while len(self._actions) > _ACTIONS_KEPT:
                self._actions.popitem(last=False)
        return token

    def spent(self, action: str, given: str) -> bool:
        """Whether that is the action's token; it counts once."""
        with self._lock:
            token = self._actions.get(action, "")
            if not token or not hmac.compare_digest(given.encode(), token.encode()):
                return False
            del self._actions[action]
        return True

    def knows(self, environ: Environ) -> bool:
        """Whether the request brings the cookie."""
        return any(hmac.compare_digest(given.encode(), self._cookie.encode()) for given in _cookies(environ))

    def exchanged(self, environ: Environ) -> str | None:
        """The cookie to set for the token in the address; None when there is none, or it was used."""
        [given] = parse_qs(str(environ["QUERY_STRING"])).get(PARAMETER, [""])[:1]
        with self._lock:
            if not self.token or not hmac.compare_digest(given.encode(), self.token.encode()):
                return None
            self.token = ""
        return f"{_name(environ)}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"


def _name(environ: Environ) -> str:
    return f"argosy-{environ['SERVER_PORT']}"


def _cookies(environ: Environ) -> Iterator[str]:
    """The values of the cookies of our name. Other programs of this machine set cookies for 127.0.0.1 as well, and not
    all of them in a form that `http.cookies` can read: it would drop ours with theirs."""
    for each in str(environ.get("HTTP_COOKIE", "")).split(";"):
        name, _, value = each.strip().partition("=")
        if name == _name(environ):
            yield value
