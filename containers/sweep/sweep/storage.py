"""Where do models come from and parts go? S3 objects and, for trying out, plain files.

botocore is imported when S3 is asked for: it is half of the program's start. Expected failures are two exceptions:
Temporary (try again, exit 75) and Refused (trying again will not help).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_TEMPORARY_CODES = {"RequestTimeout", "SlowDown", "ConditionalRequestConflict", "OperationAborted"}


class Temporary(Exception):
    """S3 could not be reached or was too busy."""


class Refused(Exception):
    """The address does not exist, is not allowed, or cannot be written."""


class _AlreadyThere(Exception):
    """The answer 412 to a conditional PUT: another attempt was first, and its part is as good."""


def read(address: str) -> bytes:
    """The whole object or file. Raises Temporary or Refused."""
    if not address.startswith("s3://"):
        return _read_file(Path(address))
    with _bucket(address) as (client, place):
        data: bytes = client.get_object(**place)["Body"].read()
    return data


def write_once(address: str, data: bytes, metadata: Mapping[str, str]) -> bool:
    """Write all or nothing; False when something was there already, which then stays. Raises Temporary or Refused.

    `metadata` goes with an S3 object and has no place in a file.
    """
    if not address.startswith("s3://"):
        return _write_file_once(Path(address), data)
    try:
        with _bucket(address) as (client, place):
            client.put_object(**place, Body=data, Metadata=dict(metadata), IfNoneMatch="*")
    except _AlreadyThere:
        return False
    return True


@contextmanager
def _bucket(address: str) -> Iterator[tuple[Any, dict[str, str]]]:
    """An S3 client and the bucket and key of `address`; inside, botocore's exceptions become this module's."""
    import botocore.exceptions as faults
    import botocore.session
    from botocore.config import Config

    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not bucket or not key:
        raise Refused(f"{address} is not s3://BUCKET/KEY")
    config = Config(retries={"mode": "standard", "max_attempts": 3}, connect_timeout=5, read_timeout=30)
    try:
        client = botocore.session.get_session().create_client("s3", config=config)
        yield client, {"Bucket": bucket, "Key": key}
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
    if status >= 500 or status == 429 or code in _TEMPORARY_CODES:
        return Temporary(sentence)
    return Refused(sentence)


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error


def _write_file_once(path: Path, data: bytes) -> bool:
    """Through a link, which unlike a rename fails when the name is taken."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent) as scratch:
            scratch.write(data)
            scratch.flush()
            return _link(scratch.name, path)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error


def _link(source: str, path: Path) -> bool:
    try:
        os.link(source, path)
    except FileExistsError:
        return False
    return True
