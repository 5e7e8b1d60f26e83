"""Who may call the embedded AWS? Programs of this machine, and no web page (`loopback.strangers`).

A caller of Lambda or ECS here can run commands as this user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from argosy.local.server.protocol import Reply
from argosy.loopback.server import Environ, StartResponse
from argosy.loopback.strangers import stranger

ADMIN_PREFIX = "/argosy/"  # what AWS has no API for; needs no signature
_CORS_REPLY = "access-control-"
_SIGNED_BY_QUERY = ("X-Amz-Credential", "AWSAccessKeyId")  # of a presigned URL, in the two versions that boto3 makes
# A document shown in a browser, say an HTML file among the results, gets an opaque origin and can request nothing.
_FOR_BROWSERS = (("Content-Security-Policy", "sandbox"), ("X-Content-Type-Options", "nosniff"))


def refusal(environ: Environ) -> Reply | None:
    """The reply to a request that may not be served; None for one that may."""
    if (why := stranger(environ)) is not None:
        return _forbidden(why)
    if not str(environ["PATH_INFO"]).startswith(ADMIN_PREFIX) and not is_signed(environ):
        return _forbidden(
            "Missing Authentication Token: requests must be signed, with any key", "MissingAuthentication"
        )
    return None


def is_signed(environ: Environ) -> bool:
    """Whether it claims to be signed: nothing is verified. `Basic`, which an address with a password causes, does not
    count.
    """
    if environ.get("HTTP_AUTHORIZATION", "").startswith("AWS"):
        return True
    presigned: Mapping[str, Any] = parse_qs(environ["QUERY_STRING"])
    return environ["REQUEST_METHOD"] in ("GET", "HEAD", "PUT") and any(key in presigned for key in _SIGNED_BY_QUERY)


def without_cors(environ: Environ) -> Environ:
    """The services behind the gate do not see origins."""
    unheard = ("HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_")
    return {key: value for key, value in environ.items() if not key.startswith(unheard)}


def for_programs(start_response: StartResponse) -> StartResponse:
    """The same with a reply that no page of another origin may read, and that is no page of this one."""

    def start(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Any:
        kept = [(name, value) for name, value in headers if not name.lower().startswith(_CORS_REPLY)]
        return start_response(status, [*kept, *_FOR_BROWSERS])

    return start


def _forbidden(message: str, code: str = "AccessDenied") -> Reply:
    body = json.dumps({"__type": f"{code}Exception", "message": message}).encode()
    return Reply(403, body, {"Content-Type": "application/json"})
