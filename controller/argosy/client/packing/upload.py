"""Uploads to the deployment's bucket, addressed by digest: bytes that exist there are not sent again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from argosy.client.access import Access
from argosy.client.errors import ArgosyError, error_code, is_denied, is_from_aws
from argosy.client.packing.archive import Parcel
from argosy.layout import PROGRAMS, split_s3

AT_ONCE = 8  # uploads, each of which may have several parts
ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})

Progress = Callable[[int, int], None]  # bytes sent so far, bytes in all


def quiet(sent: int, total: int) -> None:
    """Progress that is not shown."""


def uri_of(bucket: str, folder: str, sha256: str, suffix: str) -> str:
    """The place of bytes with this digest: below the folder of users' programs."""
    return f"s3://{bucket}/{PROGRAMS}{folder}/{sha256}{suffix}"


def put(access: Access, data: bytes, suffix: str, folder: str = "data") -> str:
    """The address of these bytes, which are uploaded unless they are there.

    Raises ArgosyError, or boto3's errors.
    """
    uri = uri_of(access.deployment.bucket, folder, hashlib.sha256(data).hexdigest(), suffix)
    bucket, key = split_s3(uri)
    s3 = access.client("s3")
    if not _is_there(s3, bucket, key):
        with explained(bucket):
            s3.put_object(Bucket=bucket, Key=key, Body=data)
    return uri


def put_files(access: Access, parcels: Sequence[tuple[Parcel, str]], progress: Progress = quiet) -> int:
    """Uploads those that are missing, several at once; returns the bytes sent. parcels: each with its address.

    Raises ArgosyError, or boto3's errors.
    """
    s3 = access.client("s3")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        here = [each for each in parcels if not each[0].is_stored]
        there = list(pool.map(lambda each: _is_there(s3, *split_s3(each[1])), here))
        missing = [each for each, found in zip(here, there, strict=True) if not found]
        sent = _SentBytes(progress, total_size(parcel for parcel, _ in missing))
        try:
            list(pool.map(lambda each: _send(s3, each[0].path, each[1], sent), missing))
        except BaseException:  # Ctrl-C too
            sent.stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return sent.total


class _UploadStopped(Exception):
    """Another upload has failed, or the user has stopped it."""


class _SentBytes:
    """The number of bytes that several threads have sent. stopped: running uploads end at their next piece."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.sent, self.total, self._progress, self.stopped = 0, total, progress, False

    def add(self, count: int) -> None:
        """Raises _UploadStopped."""
        if self.stopped:
            raise _UploadStopped
        self.sent += count  # a race would only make the figure inexact for a short time
        self._progress(self.sent, self.total)


def _send(s3: Any, path: Path, uri: str, sent: _SentBytes) -> None:
    bucket, key = split_s3(uri)
    with explained(bucket):
        s3.upload_file(str(path), bucket, key, Callback=sent.add)


def _is_there(s3: Any, bucket: str, key: str) -> bool:
    try:
        with explained(bucket):
            s3.head_object(Bucket=bucket, Key=key)
    except Exception as fault:
        if error_code(fault) in ABSENT:
            return False
        raise
    return True


class explained:  # noqa: N801 - reads like a word
    """A refusal to write becomes a sentence about the missing right."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        if isinstance(fault, Exception) and _is_refusal(fault):
            raise ArgosyError(
                f"You have no permission to upload programs to s3://{self._bucket}/{PROGRAMS}: {fault}",
                next_step="ask for the deployment's managed policy argosy-submitter of this version",
            ) from fault


def _is_refusal(fault: Exception) -> bool:
    """boto3's transfers wrap the answer of S3 in an error of theirs, which has no code."""
    wrapped = isinstance(fault.__context__, Exception) and is_denied(fault.__context__)
    return error_code(fault) == "403" or is_denied(fault) or (is_from_aws(fault) and wrapped)


def total_size(parcels: Iterable[Parcel]) -> int:
    """Bytes of all of them."""
    return sum(each.size for each in parcels)
