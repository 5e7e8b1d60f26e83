"""S3 objects for one task: transfers to and from the disk, and the meaning of a refusal by S3 for the task.

Every request is made once by botocore and repeated here, so that a body that ends too early counts as a failed try, and
a stopped runner does not keep sleeping. botocore handles buckets in other regions.
"""

from __future__ import annotations

import random
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from argosy.model.exit_codes import TEMPORARY, WRONG_REQUEST
from argosy.runner.order import STOPPED, RunnerFault, split_address

ATTEMPTS = 10  # of each request, unless AWS_MAX_ATTEMPTS says otherwise; the waits between them are a minute in all
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 20.0
CONNECT_S, READ_S = 5, 60
MULTIPART_BYTES = 64 * 1024 * 1024  # larger files are sent in parts
PART_BYTES = 16 * 1024 * 1024
CONNECTIONS = 16
_PIECE_BYTES = 1024 * 1024
_READ = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CREDENTIAL_EXPIRATION",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION",
    "AWS_CA_BUNDLE", "SSL_CERT_FILE",
)  # fmt: skip
_PASSING = frozenset({408, 409, 429})  # and all from 500 on
# Whatever their status: credentials that are renewed in the meantime, a clock that is set, a request that came too
# slowly.
_PASSING_CODES = frozenset(
    {"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestTimeTooSkewed", "RequestTimeout", "SlowDown"}
)
_HERE = ("127.0.0.1", "localhost")  # no proxy stands before this machine
_HOPELESS = frozenset({"InvalidObjectState"})  # looks like a missing right: the object has to be restored first
T = TypeVar("T")


class AlreadyThere(Exception):
    """A conditional write came second."""


class _TemporaryError(Exception):
    """A retry may succeed."""


class _UploadConflict(Exception):
    """Something else was written there just now. According to S3's documentation, a multipart upload may then not be
    completed."""


@dataclass(frozen=True, slots=True)
class StoredInput:
    """An object below a prefix; size in bytes."""

    key: str
    size: int


_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class _Destination:
    """Where a result goes: parameters of S3's calls, and the sentence of a failure."""

    place: Mapping[str, str]
    about: Mapping[str, Any]
    condition: Mapping[str, Any]
    sentence: str

    @classmethod
    def of(
        cls,
        uri: str,
        about: Mapping[str, Any] = _NOTHING,
        condition: Mapping[str, Any] = _NOTHING,
        what: str = "the result",
    ) -> _Destination:
        bucket, key = split_address(uri, what)
        return cls({"Bucket": bucket, "Key": key}, about, condition, f"{what} {uri} could not be written")


class Objects:
    """S3 for one task. Methods raise RunnerFault, whose sentence names the address; OSError is the disk's.

    stopped: once it is set, every request under way ends with RunnerFault(STOPPED) as soon as it returns. Safe to use
    from several threads.
    """

    def __init__(self, environment: Mapping[str, str], stopped: threading.Event) -> None:
        self._environment = environment
        self._stopped = stopped
        self._attempts = _number(environment.get("AWS_MAX_ATTEMPTS"), ATTEMPTS)
        self._made: Any = None
        self._guard = threading.Lock()
        self._open: set[str] = set()  # multipart uploads that are neither completed nor aborted
        self._settled = threading.Condition(self._guard)

    def wait_for_aborts(self, timeout_s: float) -> None:
        """After `stopped`: until no multipart upload is half done."""
        with self._settled:
            self._settled.wait_for(lambda: not self._open, timeout_s)

    def read(self, uri: str, what: str) -> bytes:
        """A complete small object. what: its name in sentences."""
        bucket, key = split_address(uri, what)

        def once() -> bytes:
            body: bytes = self._client().get_object(Bucket=bucket, Key=key)["Body"].read()
            return body

        return self._tried(once, f"{what} {uri} could not be read")

    def download(self, uri: str, path: Path, what: str) -> None:
        """An object into a file."""
        bucket, key = split_address(uri, what)

        def once() -> None:
            body = self._client().get_object(Bucket=bucket, Key=key)["Body"]
            with body, path.open("wb") as file:
                for piece in body.iter_chunks(_PIECE_BYTES):
                    self._go_on()
                    file.write(piece)

        self._tried(once, f"{what} {uri} could not be read")

    def below(self, uri: str, what: str) -> Iterator[StoredInput]:
        """All objects of a prefix, page by page, in the order of their keys."""
        bucket, prefix = split_address(uri, what)
        request: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        while True:
            page = self._tried(lambda: self._client().list_objects_v2(**request), f"{what} {uri} could not be listed")
            yield from (StoredInput(each["Key"], int(each["Size"])) for each in page.get("Contents", ()))
            if not page.get("IsTruncated"):
                return
            request["ContinuationToken"] = page["NextContinuationToken"]

    def write(self, uri: str, body: bytes, what: str = "the result") -> None:
        """A small object, replacing any earlier one."""
        to = _Destination.of(uri, what=what)
        self._tried(lambda: self._client().put_object(**to.place, Body=body), to.sentence)

    def delete(self, uri: str, what: str) -> None:
        """An object that may be gone already."""
        bucket, key = split_address(uri, what)
        self._tried(lambda: self._client().delete_object(Bucket=bucket, Key=key), f"{what} {uri} could not be removed")

    def upload(self, path: Path, uri: str, what: str = "the result") -> None:
        """Write a file, replacing any earlier object."""
        self._upload(path, _Destination.of(uri, what=what))

    def upload_once(
        self,
        path: Path,
        uri: str,
        metadata: Mapping[str, str],
        is_replaced: Callable[[Mapping[str, str]], bool] = lambda there: False,
    ) -> bool:
        """A file with S3 user metadata; False if an object was there already, which then stays. is_replaced: whether an
        object with this metadata is replaced."""
        condition = {"IfNoneMatch": "*"}
        while True:
            to = _Destination.of(uri, {"Metadata": dict(metadata)}, condition)
            try:
                self._upload(path, to)
                return True
            except AlreadyThere:
                there = self._tried(partial(self._client().head_object, **to.place), to.sentence)
                if not is_replaced(there.get("Metadata") or {}):
                    return False
                condition = {"IfMatch": there["ETag"]}

    def _upload(self, path: Path, to: _Destination) -> None:
        if path.stat().st_size > MULTIPART_BYTES:
            return self._upload_parts(path, to)

        def once() -> None:
            with path.open("rb") as file:
                self._client().put_object(**to.place, **to.about, **to.condition, Body=file)

        return self._tried(once, to.sentence)

    def _upload_parts(self, path: Path, to: _Destination) -> None:
        for attempt in range(1, self._attempts + 1):
            try:
                self._parts_once(path, to)
                return
            except _UploadConflict as fault:
                if attempt == self._attempts:
                    raise RunnerFault(TEMPORARY, f"{to.sentence}: a conflict with another upload") from fault
                self._pause(attempt)

    def _parts_once(self, path: Path, to: _Destination) -> None:
        sentence = to.sentence
        started = self._tried(lambda: self._client().create_multipart_upload(**to.place, **to.about), sentence)
        upload = {**to.place, "UploadId": started["UploadId"]}
        with self._settled:
            self._open.add(started["UploadId"])
        try:
            parts = list(self._sent_parts(path, upload, sentence))
            self._complete({**upload, "MultipartUpload": {"Parts": parts}, **to.condition}, path, sentence)
        except (RunnerFault, AlreadyThere, _UploadConflict, OSError):
            self._abort(upload)
            raise
        finally:
            with self._settled:
                self._open.discard(started["UploadId"])
                self._settled.notify_all()

    def _complete(self, request: Mapping[str, Any], path: Path, sentence: str) -> None:
        """Raises _UploadConflict, too."""
        tries = 0

        def once() -> None:
            nonlocal tries
            tries += 1
            self._client().complete_multipart_upload(**request)

        try:
            self._tried(once, sentence, conflict=_UploadConflict)
        except (RunnerFault, _UploadConflict):
            if tries == 1 or not self._is_there(request, path, sentence):
                raise
            # An earlier try did it, and its answer was lost.

    def _is_there(self, request: Mapping[str, Any], path: Path, sentence: str) -> bool:
        """An object that is written only if absent counts as written, even if another writer was first."""
        place = {name: request[name] for name in ("Bucket", "Key")}
        try:
            found = self._tried(lambda: self._client().head_object(**place), sentence)
        except RunnerFault:
            return False
        return "IfNoneMatch" in request or found["ContentLength"] == path.stat().st_size

    def _sent_parts(self, path: Path, upload: Mapping[str, str], sentence: str) -> Iterator[dict[str, Any]]:
        with path.open("rb") as file:
            for number, data in enumerate(iter(lambda: file.read(PART_BYTES), b""), 1):

                def once(body: bytes = data, at: int = number) -> str:
                    self._go_on()
                    etag: str = self._client().upload_part(**upload, PartNumber=at, Body=body)["ETag"]
                    return etag

                yield {"PartNumber": number, "ETag": self._tried(once, sentence)}

    def _abort(self, upload: Mapping[str, str]) -> None:
        """Tried once, whatever the result: a bucket's lifecycle rule removes the rest."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client().abort_multipart_upload(**upload)
        except (BotoCoreError, ClientError):
            return

    def _tried(self, once: Callable[[], T], sentence: str, conflict: type[Exception] = _TemporaryError) -> T:
        """Raises RunnerFault or AlreadyThere. conflict: the meaning of the answer 409."""
        for attempt in range(1, self._attempts + 1):
            self._go_on()
            try:
                return _translated(once, sentence, conflict)
            except _TemporaryError as fault:
                if attempt == self._attempts:
                    raise RunnerFault(TEMPORARY, f"{sentence}: {fault}") from fault
                self._pause(attempt)
        raise AssertionError("there is at least one attempt")

    def _pause(self, attempts: int) -> None:
        self._stopped.wait(random.uniform(0, min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempts)))

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise RunnerFault(STOPPED, "the task was stopped before its result was complete")

    def _client(self) -> Any:
        with self._guard:
            if self._made is None:
                named = (name for name in _READ if name in self._environment)
                self._made = client_of(tuple((name, self._environment[name]) for name in named))
            return self._made


@cache
def client_of(variables: tuple[tuple[str, str], ...]) -> Any:
    """A botocore client with the credentials, region and endpoint that a task's environment names, and no others.

    Kept: making one takes as long as a small task, and local mode's tasks all name the same. It serves all threads.
    """
    import botocore.session
    from botocore.config import Config
    from botocore.credentials import ContainerProvider, CredentialResolver, EnvProvider

    environment = dict(variables)
    session = botocore.session.Session()
    providers = [EnvProvider(environment), ContainerProvider(environment)]
    session.register_component("credential_provider", CredentialResolver(providers))
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None
    config = Config(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=CONNECTIONS,
        s3={"addressing_style": "path" if endpoint else "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        proxies={} if urlsplit(endpoint or "").hostname in _HERE else None,  # None: the environment's
    )
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    return session.create_client(
        "s3", region_name=region, endpoint_url=endpoint, config=config, verify=_certificates(environment)
    )


def _certificates(environment: Mapping[str, str]) -> str | None:
    """The file with the only trusted certificates; None: botocore's. Raises RunnerFault."""
    if given := environment.get("AWS_CA_BUNDLE"):
        try:
            ssl.create_default_context(cafile=given)
        except OSError as fault:  # as ssl's own faults are
            said = fault.strerror if fault.errno else f"there is none in {given}"
            sentence = f"the certificates of AWS_CA_BUNDLE cannot be read: {said}"
            raise RunnerFault(WRONG_REQUEST, sentence) from fault
        return given
    system = environment.get("SSL_CERT_FILE", "")
    return system if Path(system).is_file() else None


def _translated(once: Callable[[], T], sentence: str, conflict: type[Exception]) -> T:
    """botocore's exceptions as ours. Raises RunnerFault, AlreadyThere, `conflict` or _TemporaryError."""
    import botocore.exceptions as faults
    from urllib3.exceptions import HTTPError

    try:
        return once()
    except faults.ClientError as fault:
        raise _meaning(fault.response, sentence, conflict) from fault
    except (faults.NoCredentialsError, faults.PartialCredentialsError) as fault:
        raise RunnerFault(WRONG_REQUEST, f"{sentence}: there are no credentials; does the task have a role?") from fault
    except (
        faults.ConnectionError,
        faults.HTTPClientError,
        faults.IncompleteReadError,
        faults.CredentialRetrievalError,
        faults.MetadataRetrievalError,
        HTTPError,
    ) as fault:
        raise _TemporaryError(str(fault)) from fault
    except (faults.BotoCoreError, ValueError) as fault:  # ValueError: an endpoint that is not an address
        raise RunnerFault(WRONG_REQUEST, f"{sentence}: {fault}") from fault


def _meaning(response: Mapping[str, Any], sentence: str, conflict: type[Exception]) -> Exception:
    status, error = int(response["ResponseMetadata"]["HTTPStatusCode"]), response["Error"]
    said = f"{error.get('Code', status)} {error.get('Message', '')}".strip()
    if status == 412:
        return AlreadyThere()
    if status == 409:
        return conflict(said)
    if status >= 500 or status in _PASSING or error.get("Code") in _PASSING_CODES:
        return _TemporaryError(said)
    if status == 403 and error.get("Code") not in _HOPELESS:
        return RunnerFault(TEMPORARY, f"{sentence}: {said}")
    return RunnerFault(WRONG_REQUEST, f"{sentence}: {said}")


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and int(text) > 0 else default
