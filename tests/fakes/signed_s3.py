"""An S3 on 127.0.0.1 that checks every signature with botocore's own signer, and that can fail on request.

It keeps objects in memory, knows one region per bucket, pages its listings, and holds multipart uploads until they are
completed, so that a test sees unfinished ones. Paths only: no bucket in the host's name.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

REGION = "us-east-1"
ACCESS_KEY, SECRET_KEY, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a/token+of=test"
BUCKET = "results"
PATIENCE_S = 60.0
_SCOPE = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?")
_CODES = {
    400: "InvalidRequest", 403: "AccessDenied", 404: "NoSuchKey", 409: "ConditionalRequestConflict",
    412: "PreconditionFailed", 429: "SlowDown", 500: "InternalError", 503: "SlowDown",
}  # fmt: skip


@dataclass
class Stored:
    """One object."""

    body: bytes
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass
class Trouble:
    """The treatment of the next `times` requests of this method whose key matches.

    `method` COMPLETE: the POST that ends an upload in parts, which a conflict (409) removes, as in S3.

    `what`: a status, "truncated" (half of the reply's body), "reset" (no reply), "lost" (it is done, and the reply
    never comes), or "held"."""

    method: str
    key: re.Pattern[str]
    what: int | str
    times: int
    code: str = ""  # in place of the status's usual one
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


class SignedS3:
    """The store, and a test's requests to it. `requests`: (method, bucket, key) of all accepted requests, in order."""

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, Stored]] = {BUCKET: {}}
        self.regions: dict[str, str] = {}
        self.redirect_status = 301  # the answer to the wrong region: 301 or 400
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.uses: dict[str, Stored] = {}  # what runners say of programs that took a second, apart from all else
        self.refused: list[str] = []  # why requests were not let in
        self.page = 1000
        self.port = 0
        self.scheme = "http"
        self.tokens_needed = False
        self._troubles: list[Trouble] = []
        self.guard = threading.Lock()
        self.number_of_uploads = 0

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def put(self, key: str, body: bytes, bucket: str = BUCKET, metadata: Mapping[str, str] | None = None) -> str:
        """An object that is there from the start; its address."""
        self.buckets.setdefault(bucket, {})[key] = Stored(body, dict(metadata or {}))
        return f"s3://{bucket}/{key}"

    def body(self, key: str, bucket: str = BUCKET) -> bytes:
        return self.buckets[bucket][key].body

    def names(self, prefix: str = "", bucket: str = BUCKET) -> list[str]:
        return sorted(key for key in self.buckets[bucket] if key.startswith(prefix))

    def asked(self, method: str, key: str) -> int:
        """The number of requests of this method whose key matches."""
        return sum(made[0] == method and re.fullmatch(key, made[2]) is not None for made in list(self.requests))

    def trouble(self, method: str, key: str, what: int | str, times: int = 1_000_000, code: str = "") -> Trouble:
        """From now on. The key is a regular expression."""
        made = Trouble(method, re.compile(key), what, times, code)
        self._troubles.append(made)
        return made

    def release(self) -> None:
        """All held requests continue."""
        for each in self._troubles:
            each.released.set()

    def troubled(self, methods: tuple[str, ...], key: str) -> Trouble | None:
        with self.guard:
            for each in self._troubles:
                if each.times and each.method in methods and each.key.fullmatch(key):
                    each.times -= 1
                    return each
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: SignedS3

    def _answer(self) -> None:
        store = self.store
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # the sender has given up
            return self._hang_up()
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        refusal = why_not(self.command, self.path, dict(self.headers.items()), body, store)
        if refusal:
            store.refused.append(refusal)
            return self._fault(403, "SignatureDoesNotMatch", refusal)
        region = store.regions.get(bucket, REGION)
        if signed_region(self.headers["Authorization"]) != region:
            code = "PermanentRedirect" if store.redirect_status == 301 else "AuthorizationHeaderMalformed"
            return self._fault(store.redirect_status, code, "elsewhere", {"x-amz-bucket-region": region}, region)
        store.requests += [(self.command, bucket, key)] * ("/attempts/use/" not in key)
        ends = self.command == "POST" and "uploadId" in query
        trouble = store.troubled((self.command, "COMPLETE") if ends else (self.command,), key)
        if trouble is not None:
            trouble.reached.set()
            if trouble.what == "held":
                trouble.released.wait(PATIENCE_S)
            elif trouble.what == "reset":
                return self._hang_up()
            elif isinstance(trouble.what, int):
                if ends and trouble.what == 409:
                    del store.uploads[query["uploadId"]]
                return self._fault(trouble.what, trouble.code or _CODES[trouble.what], "told to")
        self._truncate = trouble is not None and trouble.what == "truncated"
        self._lose = trouble is not None and trouble.what == "lost"
        if bucket not in store.buckets:
            return self._fault(404, "NoSuchBucket", bucket)
        with store.guard:
            reply = self._done(bucket, key, query, body)
        return self._fault(reply) if isinstance(reply, int) else self._reply(*reply)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 - the library's names

    def _done(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> Any:
        """A status that is a fault, or (status, headers, body)."""
        if not key:
            return self._listed(bucket, query)
        if "uploadId" in query or "uploads" in query:
            return self._multipart(bucket, key, query, body)
        objects = self.store.buckets[bucket]
        if self.command == "PUT":
            return self._put(self.store.uses if "/attempts/use/" in key else objects, key, body)
        if self.command == "DELETE":
            objects.pop(key, None)
            return 204, {}, b""
        if key not in objects:
            return 404
        return self._ranged(objects[key])

    def _ranged(self, found: Stored) -> Any:
        headers = {"ETag": _etag(found.body)}
        headers |= {"Last-Modified": "Mon, 23 Nov 2026 00:00:00 GMT", "Content-Type": "binary/octet-stream"}
        headers |= {f"x-amz-meta-{name}": value for name, value in found.metadata.items()}
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if span is None:
            return 200, headers, found.body
        first, last = int(span[1]), min(int(span[2] or len(found.body)), len(found.body) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(found.body)}"
        return 206, headers, found.body[first : last + 1]

    def _is_forbidden(self, there: Stored | None) -> bool:
        """Whether a condition of the write does not hold."""
        wanted = self.headers.get("If-Match")
        if wanted is not None and (there is None or wanted != _etag(there.body)):
            return True
        return self.headers.get("If-None-Match") == "*" and there is not None

    def _put(self, objects: dict[str, Stored], key: str, body: bytes) -> Any:
        if self._is_forbidden(objects.get(key)):
            return 412
        named = {name.lower(): value for name, value in self.headers.items()}
        start = "x-amz-meta-"
        metadata = {name.removeprefix(start): value for name, value in named.items() if name.startswith(start)}
        objects[key] = Stored(body, metadata)
        return 200, {"ETag": _etag(body)}, b""

    def _multipart(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> Any:
        uploads = self.store.uploads
        if "uploads" in query:
            self.store.number_of_uploads += 1
            name = f"upload-{self.store.number_of_uploads}"
            uploads[name] = {}
            self.store.buckets.setdefault("metadata of uploads", {})[name] = self._metadata()
            text = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
            return _xml("InitiateMultipartUploadResult", text)
        name = query["uploadId"]
        if name not in uploads:
            return 404
        if self.command == "PUT":
            uploads[name][int(query["partNumber"])] = body
            return 200, {"ETag": _etag(body)}, b""
        if self.command == "DELETE":
            del uploads[name]
            return 204, {}, b""
        objects = self.store.buckets[bucket]
        if self._is_forbidden(objects.get(key)):
            return 412
        numbers = [
            int(each.text or "") for each in ElementTree.fromstring(body).iter() if each.tag.endswith("PartNumber")
        ]
        whole = b"".join(uploads[name][number] for number in numbers)
        objects[key] = Stored(whole, self.store.buckets["metadata of uploads"][name].metadata)
        del uploads[name]
        return _xml("CompleteMultipartUploadResult", f"<Key>{escape(key)}</Key><ETag>&quot;whole&quot;</ETag>")

    def _metadata(self) -> Stored:
        kept: dict[str, Stored] = {}
        self._put(kept, "", b"")
        return kept.get("", Stored(b""))

    def _listed(self, bucket: str, query: dict[str, str]) -> Any:
        if self.command == "HEAD":
            return 200, {"x-amz-bucket-region": self.store.regions.get(bucket, REGION)}, b""
        after = query.get("continuation-token") or query.get("start-after") or ""
        keys = [key for key in self.store.names(query.get("prefix", ""), bucket) if key > after]
        page = keys[: min(self.store.page, int(query.get("max-keys") or self.store.page))]
        named = quote if query.get("encoding-type") == "url" else escape
        rows = "".join(
            f"<Contents><Key>{named(key)}</Key><Size>{len(self.store.body(key, bucket))}</Size></Contents>"
            for key in page
        )
        more = len(page) < len(keys)
        text = f"<Name>{bucket}</Name><KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
        if query.get("encoding-type"):
            text += "<EncodingType>url</EncodingType>"
        if more:
            text += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        return _xml("ListBucketResult", text + rows)

    def _fault(
        self,
        status: int,
        code: str | None = None,
        text: str = "",
        headers: dict[str, str] | None = None,
        region: str = "",
    ) -> None:
        place = f"<Region>{region}</Region>" if region else ""
        code = code or _CODES[status]
        body = f"<Error><Code>{code}</Code><Message>{escape(text)}</Message>{place}</Error>".encode()
        self._truncate = self._lose = False
        self._reply(status, {"Content-Type": "application/xml", **(headers or {})}, body)

    def _reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        if self._lose:
            return self._hang_up()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if self._truncate else body)
        if self._truncate:
            self.close_connection = True
        return None

    def _hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


def _etag(body: bytes) -> str:
    return '"' + hashlib.md5(body, usedforsecurity=False).hexdigest() + '"'


def _xml(root: str, text: str) -> tuple[int, dict[str, str], bytes]:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}>{text}</{root}>'.encode()
    return 200, {"Content-Type": "application/xml"}, body


def signed_region(authorization: str) -> str:
    scope = _SCOPE.match(authorization)
    return scope[3] if scope else ""


def why_not(method: str, path: str, headers: dict[str, str], body: bytes, store: SignedS3) -> str:
    """Why S3 would refuse this request; empty if it would not."""
    named = {name.lower(): value for name, value in headers.items()}
    scope = _SCOPE.match(named.get("authorization", ""))
    if scope is None:
        return "there is not a signature of version 4"
    signed = scope[4].split(";")
    missing = {"host", "x-amz-date", "x-amz-content-sha256"} - set(signed)
    missing |= {name for name in named if name.startswith("x-amz-")} - set(signed)
    if missing:
        return f"not signed: {', '.join(sorted(missing))}"
    if store.tokens_needed != (named.get("x-amz-security-token") == TOKEN):
        return "the session's token is missing, or there should be none"
    if named["x-amz-content-sha256"] not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
        return "the body has another digest"
    expected = signature(method, store.endpoint + path, {name: named[name] for name in signed}, scope[3])
    return "" if named["authorization"].endswith(f"Signature={expected}") else f"another signature: {method} {path}"


def signature(method: str, url: str, headers: dict[str, str], region: str) -> str:
    """As botocore would sign it."""
    signer = S3SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "s3", region)
    request = AWSRequest(method=method, url=url, headers=headers)
    request.context["timestamp"] = headers["x-amz-date"]
    return str(signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed in the middle of its request is no fault."""


@contextmanager
def signed_s3(certificate: Path | None = None) -> Iterator[SignedS3]:
    """Served until the end of the block. certificate: over TLS with this file, key included."""
    store = SignedS3()
    handler = type("Handler", (_Handler,), {"store": store})
    server = _Server(("127.0.0.1", 0), handler)
    store.port = server.server_port
    if certificate is not None:
        spoken = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        spoken.load_cert_chain(certificate)
        server.socket = spoken.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        store.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield store
    finally:
        store.release()
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()
