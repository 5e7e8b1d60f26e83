"""Does a request come from this machine's user or programs, or on behalf of a web page?

Any page that is open in a browser can send requests to 127.0.0.1. A browser says on whose behalf it sends a request, in
headers that no script can set (Fetch standard, "forbidden request-header"): `Host`, which under DNS rebinding is the
attacker's name, `Origin` and `Sec-Fetch-Site`. Programs send neither of the last two. A page of another port on
localhost is the same site, so `same-site` is refused as well.
"""

from __future__ import annotations

from argosy.loopback.server import Environ

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
        return "there are no cross-origin requests, so there is nothing to ask about them"
    return None


def _hosts(address: str, port: str) -> list[str]:
    """address: where the connection was accepted. No name of DNS leads a browser to take that for another's."""
    names = [*_NAMES, *({address} - {*_NAMES})]
    return [f"{name}:{port}" for name in names] + (names if port == "80" else [])
