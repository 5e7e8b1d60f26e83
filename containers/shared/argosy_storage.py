"""Where do inputs come from and results go? S3 objects and, for trying out, plain files.

botocore is imported on the first use of S3, because that takes half of a small program's start. Expected failures are
two exceptions: Temporary (try again, exit 75) and Refused (trying again will not help, exit 64).

Every image's Dockerfile copies this module in; the link to it in an image's folder is for a program that runs there
without a container.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_TEMPORARY_CODES = {"RequestTimeout", "SlowDown", "ConditionalRequestConflict", "OperationAborted"}
_RENEWED_CODES = {"ExpiredToken", "RequestTimeTooSkewed", "InvalidToken", "ExpiredTokenException"}
_RIGHTS = (
    "besides the results bucket it reads those that the deployment's setting inputBuckets names"
    " and writes to those of outputBuckets"
)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Temporary(Exception):
    """S3 could not be reached or was too busy, or the disk is full: elsewhere or later it may work."""


class Refused(Exception):
    """The address does not exist, is not allowed, or cannot be written."""


class Missing(Refused):
    """There is nothing at the address."""


class _AlreadyThere(Exception):
    """The answer 412 to a conditional PUT: another attempt was first, and its part is as good."""


def is_s3(address: str) -> bool:
    return address.startswith("s3://")


def read(address: str) -> bytes:
    """The whole object or file. Raises Temporary or Refused."""
    if not is_s3(address):
        with file_errors(address):
            return Path(address).read_bytes()
    with _bucket(address) as (client, place):
        data: bytes = client.get_object(**place)["Body"].read()
    return data


def lines(address: str) -> Iterator[str]:
    """The lines of a text, read only as far as needed. Raises Temporary or Refused."""
    if not is_s3(address):
        with file_errors(address), Path(address).open(encoding="utf-8", errors="replace") as file:
            yield from (line.rstrip("\n") for line in file)
        return
    with _bucket(address) as (client, place):
        for line in client.get_object(**place)["Body"].iter_lines():
            yield line.decode("utf-8", "replace")


def names_below(folder: str) -> Iterator[str]:
    """The addresses of all files below a folder or S3 prefix, in the order of their names' bytes.

    S3 lists in this order, page by page, as far as asked for. Raises Temporary or Refused.
    """
    if not is_s3(folder):
        with file_errors(folder):
            found = [os.path.join(path, name) for path, _, names in os.walk(folder, onerror=_raise) for name in names]
        yield from sorted(found, key=os.fsencode)
        return
    with _bucket(folder, key_needed=False) as (client, place):
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=place["Bucket"], Prefix=place["Key"])
        for page in pages:
            yield from (f"s3://{place['Bucket']}/{each['Key']}" for each in page.get("Contents", ()))


def write(address: str, data: bytes) -> None:
    """Write all or nothing, over an existing file. Raises Temporary or Refused."""
    if not is_s3(address):
        _write_file(Path(address), data, once=False)
        return
    with _bucket(address) as (client, place):
        client.put_object(**place, Body=data)


def write_once(address: str, data: bytes, metadata: Mapping[str, str]) -> bool:
    """Write all or nothing; False when something was there already, which then stays. Raises Temporary or Refused.

    `metadata` goes with an S3 object and has no place in a file.
    """
    if not is_s3(address):
        return _write_file(Path(address), data, once=True)
    try:
        with _bucket(address) as (client, place):
            client.put_object(**place, Body=data, Metadata=dict(metadata), IfNoneMatch="*")
    except _AlreadyThere:
        return False
    return True


@cache
def _client() -> Any:
    """One for all threads: botocore's clients may be shared."""
    import botocore.session
    from botocore.config import Config

    config = Config(
        retries={"mode": "standard", "max_attempts": 3}, connect_timeout=5, read_timeout=30, max_pool_connections=32
    )
    return botocore.session.get_session().create_client("s3", config=config)


@contextmanager
def _bucket(address: str, *, key_needed: bool = True) -> Iterator[tuple[Any, dict[str, str]]]:
    """An S3 client and the bucket and key of `address`; inside, botocore's exceptions become this module's."""
    import botocore.exceptions as faults

    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not bucket or (key_needed and not key):
        raise Refused(f"{address} is not s3://BUCKET/KEY")
    try:
        yield _client(), {"Bucket": bucket, "Key": key}
    except faults.ClientError as error:
        raise _meaning(address, error.response) from error
    except (
        faults.ConnectionError,
        faults.HTTPClientError,
        faults.CredentialRetrievalError,
        faults.MetadataRetrievalError,
    ) as error:
        raise Temporary(f"{address}: {error}") from error
    except (faults.BotoCoreError, ValueError) as error:  # ValueError: an endpoint that is no address
        raise Refused(f"{address}: {error}") from error


def _meaning(address: str, response: Mapping[str, Any]) -> Exception:
    code, status = response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]
    sentence = f"{address}: {code} {response['Error'].get('Message', '')}".strip()
    if status == 412:
        return _AlreadyThere(sentence)
    if status >= 500 or status == 429 or code in _TEMPORARY_CODES | _RENEWED_CODES:
        return Temporary(sentence)
    if status == 403:
        return Refused(f"{address}: permission denied: the task's role may not do this ({code}); {_RIGHTS}")
    return Missing(sentence) if status == 404 else Refused(sentence)


@contextmanager
def file_errors(address: str | Path) -> Iterator[None]:
    """Inside, what the operating system refuses becomes this module's exceptions."""
    try:
        yield
    except FileNotFoundError as error:
        raise Missing(f"{address}: {error.strerror}") from error
    except OSError as error:
        kind = Temporary if error.errno in _FULL else Refused
        raise kind(f"{address}: {error.strerror or error}") from error


def _raise(fault: OSError) -> None:
    raise fault


def _write_file(path: Path, data: bytes, *, once: bool) -> bool:
    """Through a scratch file next to it; a link, unlike a rename, fails when the name is taken."""
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            if not once:
                os.replace(scratch, path)
                return True
            return _linked(scratch, path)
        finally:
            Path(scratch).unlink(missing_ok=True)


def _linked(scratch: str, path: Path) -> bool:
    try:
        os.link(scratch, path)
    except FileExistsError:
        return False
    return True
