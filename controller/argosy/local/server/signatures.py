"""Who has signed a request? Its signature is made again with the caller's secret, and compared.

Version 4, in a header or in a presigned address, and version 2 of presigned addresses of S3, which boto3 still makes
(AWS documentation, "Signature Version 4 for API requests" and "Signing and authenticating REST requests"). Of a body
that a client sends in signed chunks, the signature of the first one is checked, which covers all headers.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.message import Message
from functools import lru_cache
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

from botocore.auth import HmacV1QueryAuth
from botocore.credentials import Credentials
from botocore.utils import normalize_url_path

from argosy.loopback.server import Environ, RequestHeaders

SKEW_S = 900.0  # S3's; other services accept five minutes
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})")
_SIGNED_BY_QUERY = ("X-Amz-Credential", "AWSAccessKeyId")
_UNSIGNED = "UNSIGNED-PAYLOAD"
_STREAMED = "STREAMING-"  # chunks with their own signatures, or a checksum behind the body
_MAY_BE_PRESIGNED = ("GET", "HEAD", "PUT")
_FORM = "%Y%m%dT%H%M%SZ"
HINT = 'type `eval "$(argosy local env)"` in the shell that calls it'


class BadSignature(Exception):
    """Why a request is refused. code: AWS's, as JSON services have it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Signatures:
    """The signatures of requests to one local mode."""

    def __init__(self, secret_of: Callable[[str], str | None], now: Callable[[], float] = time.time) -> None:
        """secret_of: by access key id; None for an unknown one."""
        self._secret_of, self._now = secret_of, now

    def check(self, environ: Environ) -> None:
        """Raises BadSignature unless a known key has signed exactly this request, not long ago."""
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
        if authorization.startswith("AWS"):
            return self._check_header(environ, authorization)
        if environ["REQUEST_METHOD"] not in _MAY_BE_PRESIGNED or not any(name in query for name in _SIGNED_BY_QUERY):
            raise BadSignature(
                "MissingAuthenticationTokenException",
                f"Missing Authentication Token: requests to local mode must be signed with its key: {HINT}",
            )
        if "X-Amz-Credential" in query:
            return self._check_address(environ, query)
        return self._check_old_address(environ, query)

    def _check_header(self, environ: Environ, authorization: str) -> None:
        found = _SIGNED.fullmatch(authorization.strip())
        if found is None:
            raise BadSignature("IncompleteSignatureException", "the only signatures are those of version 4")
        credential, names, signature = found.groups()
        at = environ.get("HTTP_X_AMZ_DATE", "")
        self._check_age(at, SKEW_S)
        payload = _payload(environ, environ.get("HTTP_X_AMZ_CONTENT_SHA256", ""))
        self._compare(_canonical(environ, names, payload), at, credential, signature)

    def _check_address(self, environ: Environ, query: Mapping[str, str]) -> None:
        at, signature = query.get("X-Amz-Date", ""), query.get("X-Amz-Signature", "")
        self._check_age(at, _seconds(query.get("X-Amz-Expires", "")))
        payload = environ.get("HTTP_X_AMZ_CONTENT_SHA256", _UNSIGNED)
        if query["X-Amz-Credential"].split("/")[-2:-1] != ["s3"]:
            payload = _payload(environ, "")
        whole = _canonical(environ, query.get("X-Amz-SignedHeaders", ""), payload)
        self._compare(whole, at, query["X-Amz-Credential"], signature)

    def _check_old_address(self, environ: Environ, query: Mapping[str, str]) -> None:
        ends = query.get("Expires", "")
        if _seconds(ends) < self._now():
            raise BadSignature("AccessDeniedException", f"Request has expired: it was valid until {ends}")
        key_id, headers = query["AWSAccessKeyId"], Message()
        signer = HmacV1QueryAuth(Credentials(key_id, self._secret(key_id)))
        of_query = {name: [value] for name, value in query.items() if name.lower().startswith("x-amz-")}
        for name, values in (*_headers(environ).values.items(), *of_query.items()):
            headers[name] = ",".join(values)
        given = [str(query.get(name) or headers.get(name, "")) for name in ("content-md5", "content-type")]
        resource = signer.canonical_resource(urlsplit(environ["RAW_URI"]))
        custom = signer.canonical_custom_headers(headers)
        words = [environ["REQUEST_METHOD"], *given, ends, *filter(None, [custom]), resource]
        _must_equal(signer.sign_string("\n".join(words)), query.get("Signature", ""))

    def _compare(self, canonical: bytes, at: str, credential: str, signature: str) -> None:
        """credential: KEY/20260101/us-east-1/ec2/aws4_request."""
        key_id, _, scope = credential.partition("/")
        parts = scope.split("/")
        if len(parts) != 4 or parts[0] != at[:8] or parts[3] != "aws4_request":
            raise BadSignature("IncompleteSignatureException", f"the credential {credential} has another scope")
        secret = self._secret(key_id)
        text = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(canonical).hexdigest()])
        expected = hmac.new(_signing_key(secret, *parts[:3]), text.encode(), "sha256").hexdigest()
        _must_equal(expected, signature)

    def _secret(self, key_id: str) -> str:
        secret = self._secret_of(key_id)
        if secret is None:
            raise BadSignature("UnrecognizedClientException", f"{key_id[:32]} is not a key of this local mode: {HINT}")
        return secret

    def _check_age(self, at: str, valid_s: float) -> None:
        try:
            made = datetime.strptime(at, _FORM).replace(tzinfo=UTC).timestamp()
        except ValueError as fault:
            raise BadSignature("IncompleteSignatureException", "a date of the form X-Amz-Date is missing") from fault
        late_s = self._now() - made
        if not -SKEW_S <= late_s <= valid_s:
            here = datetime.fromtimestamp(self._now(), UTC).strftime(_FORM)
            says = f"the request was signed at {at} for {valid_s:.0f} s, and this machine's clock says {here}"
            raise BadSignature("RequestTimeTooSkewed" if valid_s == SKEW_S else "AccessDeniedException", says)


def _canonical(environ: Environ, names: str, payload: str) -> bytes:
    """The request as both sides sign it. names: of the signed headers."""
    path, _, raw_query = str(environ["RAW_URI"]).partition("?")
    if not _is_of_s3(environ):
        path = quote(normalize_url_path(path), safe="/~")
    pairs = (pair.partition("=") for pair in raw_query.split("&") if pair)
    query = sorted((_encoded(name), _encoded(value)) for name, _, value in pairs if name != "X-Amz-Signature")
    headers, signed = _headers(environ), names.split(";")
    if "host" not in signed:
        raise BadSignature("IncompleteSignatureException", "the host is not among the signed headers")
    lines = [f"{name}:{','.join(' '.join(each.split()) for each in headers.get_all(name, ['']))}" for name in signed]
    words = [environ["REQUEST_METHOD"], path, "&".join(map("=".join, query)), *lines, "", names, payload]
    return "\n".join(words).encode("latin-1")


def _encoded(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="-_.~")


def _is_of_s3(environ: Environ) -> bool:
    """Its paths are signed as they are sent."""
    signed = environ.get("HTTP_AUTHORIZATION", "") or environ["QUERY_STRING"].replace("%2F", "/")
    return "/s3/aws4_request" in signed


def _payload(environ: Environ, named: str) -> str:
    """The digest that was signed. named: by the client, which need not sign the body itself."""
    if named == _UNSIGNED or named.startswith(_STREAMED):
        return named
    body = environ["wsgi.input"].read()
    environ["wsgi.input"] = io.BytesIO(body)
    digest = hashlib.sha256(body).hexdigest()
    if named and not hmac.compare_digest(named.encode(), digest.encode()):
        raise BadSignature("InvalidSignatureException", "the body has another digest than X-Amz-Content-SHA256")
    return digest


def _headers(environ: Environ) -> RequestHeaders:
    found: RequestHeaders = environ["argosy.headers"]
    return found


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdecimal() else 0.0


def _must_equal(expected: str, signature: str) -> None:
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        says = f"The request signature does not match: it was made with another secret key, or changed since: {HINT}"
        raise BadSignature("InvalidSignatureException", says)


@lru_cache(maxsize=256)
def _signing_key(secret: str, *scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for each in (*scope, "aws4_request"):
        key = hmac.new(key, each.encode(), "sha256").digest()
    return key
