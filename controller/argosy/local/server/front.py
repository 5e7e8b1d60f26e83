"""Which service does a request to the one port go to?

None unless it comes from a program of this user: not from a web page (`loopback.server.stranger`), and signed with a
key of this local mode, because a caller of Lambda or ECS here can run commands as this user. ECS is found by its target
prefix, the EC2 actions that our fleets need by name, Lambda by its path, and `/argosy/...` serves what AWS has no API
for. Requests about the deployment's own part of some services are answered here; everything else is moto's.
"""

from __future__ import annotations

import errno
import io
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Protocol
from xml.sax.saxutils import escape

from botocore import xform_name

from argosy.local.lambdas.invoke_api import LambdaApi, RestCall
from argosy.local.server.ec2_query import Ec2Wire, action_of
from argosy.local.server.protocol import JsonWire, Reply, answer
from argosy.local.server.signatures import BadSignature, Signatures
from argosy.loopback.server import Application, Environ, StartResponse, stranger

ADMIN_PREFIX = "/argosy/"  # what AWS has no API for; signed for the service `argosy`, or else a bucket of that name
HEALTH = f"{ADMIN_PREFIX}health"  # needs no signature
_CORS_REPLY = "access-control-"
# A document shown in a browser, say an HTML file among the results, gets an opaque origin and can request nothing.
_FOR_BROWSERS = (("Content-Security-Policy", "sandbox"), ("X-Content-Type-Options", "nosniff"))


def without_cors(environ: Environ) -> Environ:
    """The services behind the gate do not see origins."""
    unheard = ("HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_")
    return {key: value for key, value in environ.items() if not key.startswith(unheard)}


def for_programs(start_response: StartResponse) -> StartResponse:
    """The same with a reply that no page of another origin may read, and that is not a page of this one."""

    def start(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Any:
        kept = [(name, value) for name, value in headers if not name.lower().startswith(_CORS_REPLY)]
        return start_response(status, [*kept, *_FOR_BROWSERS])

    return start


# The codes of S3 and of services with queries, where those of services with JSON differ.
_XML_CODES = {"InvalidSignatureException": "SignatureDoesNotMatch", "UnrecognizedClientException": "InvalidAccessKeyId"}


def _forbidden(message: str, environ: Environ, code: str = "AccessDeniedException") -> Reply:
    """403 in the form that the service's clients read, as in `_unavailable`."""
    if "HTTP_X_AMZ_TARGET" in environ or _scope(environ)[1] in ("lambda", "argosy"):
        return _json(403, {"__type": code, "message": message}, {"x-amzn-ErrorType": code})
    code = _XML_CODES.get(code, code.removesuffix("Exception"))
    error = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    if _scope(environ)[1] != "s3":
        error = f"<Response><Errors>{error}</Errors></Response>"
    return Reply(403, error.encode(), {"Content-Type": "application/xml"})


QUIET_S = 60.0


def is_full(fault: BaseException) -> bool:
    """Whether a fault is one of a full disk."""
    return isinstance(fault, OSError) and fault.errno == errno.ENOSPC


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class FullDisk:
    """Reports it, repeatedly while it lasts. say: prints a line on the terminal; now: seconds."""

    def __init__(self, say: Callable[[str], None] = _print, now: Callable[[], float] = time.monotonic) -> None:
        self._say, self._now = say, now
        self._quiet_until = float("-inf")

    def reply(self, fault: OSError, environ: Environ) -> Reply:
        """503, repeatedly."""
        where = f"the disk of {fault.filename} is full" if fault.filename else "the disk is full"
        if self._now() >= self._quiet_until:
            self._quiet_until = self._now() + QUIET_S
            self._say(f"embedded AWS: {where}: free some space there, and the work continues by itself.")
        return _unavailable(f"no space left on device: {where}", environ)


def _unavailable(message: str, environ: Environ) -> Reply:
    """503, in the form that the service's clients read: JSON where requests name a target, else XML, as S3, STS and EC2
    have it. Clients of Lambda read either."""
    if "HTTP_X_AMZ_TARGET" in environ:
        return _json(503, {"__type": "ServiceUnavailable", "message": message})
    body = f"<Error><Code>ServiceUnavailable</Code><Message>{escape(message)}</Message></Error>"
    return Reply(503, body.encode(), {"Content-Type": "application/xml"})


Admin = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]  # path below /argosy/ -> what it does


class Regional(Protocol):
    """The services of our own that each Region has."""

    ecs: Any
    ec2: Any


class OwnPartService(Protocol):
    """The service that answers requests about the deployment's own part; moto has the rest of that service."""

    target: str  # what begins the service's X-Amz-Target; where it has none, the name that requests are signed for

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply | None:
        """None for a request about anything else."""


class UnknownThingError(Exception):
    """An admin request about an instance or pool that does not exist."""


class NotReadyError(Exception):
    """The deployment behind the port cannot be used, now or permanently."""


class Front:
    """The WSGI application of the embedded AWS."""

    def __init__(
        self,
        *,
        cells: Mapping[str, Regional],
        functions: LambdaApi,
        admin: Admin,
        moto: Application,
        own: Iterable[OwnPartService] = (),
        signatures: Signatures,
        start_key: str | None = None,
    ) -> None:
        """cells: by Region; a request that is signed for another one is answered by the first. own: at most one of each
        service. start_key: the id of a key; until `open`, only requests that are signed with it are served."""
        self._cells = cells
        self._functions = functions
        self._admin = admin
        self._moto, self._parts = moto, {part.target: part for part in own}
        self._signatures, self._start_key = signatures, start_key
        self._full_disk = FullDisk()
        self._ecs_wire = JsonWire("ecs")
        self._ec2_wire = Ec2Wire()

    def open(self) -> None:
        """Everything is ready: serve every caller."""
        self._start_key = None

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        start_response = for_programs(start_response)
        try:
            reply = self._refusal(environ) or self._too_early(environ) or self._own(environ)
        except Exception as fault:  # noqa: BLE001 - our own fault: the client gets an error, the log the reason
            reply = self._failed(fault, environ)
        if reply is None:
            try:
                return self._moto(without_cors(environ), start_response)
            except OSError as fault:
                if not is_full(fault):
                    raise
                reply = self._full_disk.reply(fault, environ)
        start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", list(reply.headers.items()))
        return [reply.body]

    def _refusal(self, environ: Environ) -> Reply | None:
        """The reply to a request that may not be served; None for one that may."""
        if (why := stranger(environ)) is not None:
            return _forbidden(why, environ)
        if _is_health(environ):
            return None
        try:
            self._signatures.check(environ)
        except BadSignature as fault:
            return _forbidden(str(fault), environ, fault.code)
        return None

    def _failed(self, fault: Exception, environ: Environ) -> Reply:
        if isinstance(fault, OSError) and is_full(fault):
            return self._full_disk.reply(fault, environ)
        traceback.print_exc(file=environ["wsgi.errors"])
        return Reply(500, b'{"__type": "InternalFailure", "message": "a fault of the embedded AWS; see its log"}')

    def _too_early(self, environ: Environ) -> Reply | None:
        """SDKs retry automatically, and by then the missing part exists."""
        key = self._start_key
        if key is None or _is_admin(environ) or f"={key}/" in environ.get("HTTP_AUTHORIZATION", ""):
            return None
        message = "local mode is still starting: try again in a second"
        refused = _unavailable(message, environ)
        return replace(refused, headers={**refused.headers, "Retry-After": "1"})

    def _own(self, environ: Environ) -> Reply | None:
        """The reply of one of our own services; None when the request is moto's."""
        path = str(environ["PATH_INFO"])
        if _is_admin(environ):
            return self._administer(environ, path.removeprefix(ADMIN_PREFIX))
        service = environ.get("HTTP_X_AMZ_TARGET", "").partition(".")[0] + "."
        if service == f"{self._ecs_wire.target_prefix}.":
            return answer(self._ecs_wire, self._cell(environ).ecs, _headers(environ), _body(environ))
        if self._functions.owns(path):
            return self._functions.answer(_rest_call(environ, path))
        signed_for = _scope(environ)[1]
        part = self._parts.get(service) or self._parts.get(signed_for)
        if part is not None:
            return self._part_reply(part, environ)
        return self._ec2_reply(environ) if signed_for == "ec2" else None

    def _part_reply(self, part: OwnPartService, environ: Environ) -> Reply | None:
        body = _body(environ)
        environ["wsgi.input"] = io.BytesIO(body)  # moto reads it if it is not ours
        return part.reply(_headers(environ), body)

    def _ec2_reply(self, environ: Environ) -> Reply | None:
        body = _body(environ)
        ec2 = self._cell(environ).ec2
        if hasattr(ec2, xform_name(action_of(body))):
            return answer(self._ec2_wire, ec2, _headers(environ), body)
        environ["wsgi.input"] = io.BytesIO(body)
        return None

    def _cell(self, environ: Environ) -> Regional:
        return self._cells.get(_scope(environ)[0]) or next(iter(self._cells.values()))

    def _administer(self, environ: Environ, path: str) -> Reply:
        action = self._admin.get(f"{environ['REQUEST_METHOD']} {path}")
        if action is None:
            return _json(404, {"message": f"there is {', '.join(sorted(self._admin))}"})
        try:
            request = json.loads(_body(environ) or b"{}")
            return _json(200, action(request))
        except UnknownThingError as unknown:
            return _json(404, {"message": str(unknown)})
        except NotReadyError as fault:
            return _json(503, {"status": "not ready", "message": str(fault)})
        except (KeyError, TypeError, ValueError) as fault:
            return _json(400, {"message": f"bad request: {fault!r}"})


def _json(status: int, document: Mapping[str, Any], headers: Mapping[str, str] = MappingProxyType({})) -> Reply:
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json", **headers})


def _is_health(environ: Environ) -> bool:
    asked = environ["REQUEST_METHOD"], str(environ["PATH_INFO"])
    return asked == ("GET", HEALTH) and "HTTP_AUTHORIZATION" not in environ and not environ["QUERY_STRING"]


def _is_admin(environ: Environ) -> bool:
    below = str(environ["PATH_INFO"]).startswith(ADMIN_PREFIX)
    return below and (_scope(environ)[1] == "argosy" or _is_health(environ))


def _headers(environ: Environ) -> dict[str, str]:
    return {key[5:].lower().replace("_", "-"): value for key, value in environ.items() if key.startswith("HTTP_")}


def _rest_call(environ: Environ, path: str) -> RestCall:
    return RestCall(environ["REQUEST_METHOD"], path, _headers(environ), _body(environ), environ["QUERY_STRING"])


def _body(environ: Environ) -> bytes:
    body: bytes = environ["wsgi.input"].read()
    return body


def _scope(environ: Environ) -> tuple[str, str]:
    """Region and service that a SigV4 signature was made for: Credential=KEY/20260101/us-east-1/ec2/aws4_request."""
    scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition(",")[0].split("/")
    return (scope[2], scope[3]) if len(scope) == 5 else ("", "")
