"""Who may call the embedded AWS? Programs of this machine, and no web page.

Any page that is open in a browser can send requests to 127.0.0.1, and what may call Lambda or ECS here runs commands as
this user. A browser says on whose behalf it sends a request, in headers that no script can set (Fetch standard,
"forbidden request-header"): `Host`, which under DNS rebinding is the attacker's name, `Origin` and `Sec-Fetch-Site`.
Programs send neither of the last two. A page of another port on localhost is the same site, so `same-site` is refused
as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from argosy.local.server.protocol import Reply
from argosy.local.server.wsgi import Environ, StartResponse

ADMIN_PREFIX = "/argosy/"  # what AWS has no API for; needs no signature
_NAMES = ("127.0.0.1", "localhost")
_OWN_FETCHES = ("none", "same-origin")  # none: the user typed the address
_CORS_REPLY = "access-control-"
_SIGNED_BY_QUERY = ("X-Amz-Credential", "AWSAccessKeyId")  # of a presigned URL, in the two versions that boto3 makes
# What is shown in a browser, say an HTML file among the results, gets an origin of its own and can ask for nothing.
_FOR_BROWSERS = (("Content-Security-Policy", "sandbox"), ("X-Content-Type-Options", "nosniff"))


def refusal(environ: Environ) -> Reply | None:
    """The reply to a request that may not be served; None for one that may."""
    host = environ.get("HTTP_HOST", "")
    allowed = _hosts(str(environ["SERVER_NAME"]), str(environ["SERVER_PORT"]))
    if host.lower() not in allowed:
        return _forbidden(f"the host must be {' or '.join(allowed)}, not {host!r}")
    if environ.get("HTTP_ORIGIN", f"http://{host}") != f"http://{host}":
        return _forbidden("not for web pages of another origin")
    if environ.get("HTTP_SEC_FETCH_SITE", "none") not in _OWN_FETCHES:
        return _forbidden("not for web pages of another origin")
    if environ["REQUEST_METHOD"] == "OPTIONS":
        return _forbidden("there are no cross-origin requests, so there is nothing to ask about them")
    if not str(environ["PATH_INFO"]).startswith(ADMIN_PREFIX) and not is_signed(environ):
        return _forbidden(
            "Missing Authentication Token: requests must be signed, with any key", "MissingAuthentication"
        )
    return None


def is_signed(environ: Environ) -> bool:
    """Whether it claims to be: nothing is verified. `Basic`, which an address with a password causes, is none."""
    if environ.get("HTTP_AUTHORIZATION", "").startswith("AWS"):
        return True
    presigned: Mapping[str, Any] = parse_qs(environ["QUERY_STRING"])
    return environ["REQUEST_METHOD"] in ("GET", "HEAD", "PUT") and any(key in presigned for key in _SIGNED_BY_QUERY)


def without_cors(environ: Environ) -> Environ:
    """What is behind the gate hears nothing of origins."""
    unheard = ("HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_")
    return {key: value for key, value in environ.items() if not key.startswith(unheard)}


def for_programs(start_response: StartResponse) -> StartResponse:
    """The same with a reply that no page of another origin may read, and that is no page of this one."""

    def start(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Any:
        kept = [(name, value) for name, value in headers if not name.lower().startswith(_CORS_REPLY)]
        return start_response(status, [*kept, *_FOR_BROWSERS])

    return start


def _hosts(address: str, port: str) -> list[str]:
    """address: where the connection was accepted. No name of DNS leads a browser to take that for another's."""
    names = [*_NAMES, *({address} - {*_NAMES})]
    return [f"{name}:{port}" for name in names] + (names if port == "80" else [])


def _forbidden(message: str, code: str = "AccessDenied") -> Reply:
    body = json.dumps({"__type": f"{code}Exception", "message": message}).encode()
    return Reply(403, body, {"Content-Type": "application/json"})
