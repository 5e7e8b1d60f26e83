"""The try that a manifest or a marker belongs to. A late write must not replace a later try's (decision 11).

A controller may be paused for any time between its commit and its write. Meanwhile another one may close the run, its
user may retry it, and it may be closed again. The late write must then not replace the objects of the later try.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.layout import RETRIES_METADATA, manifest_uri, marker_uri, split_s3
from argosy.model.runs import Run


def as_it_is(s3: Any, run: Run) -> dict[str, str]:
    """The condition of a PUT on the manifest: it has not been written since this call. Raises AWS_ERRORS."""
    head = _head(s3, manifest_uri(run.output))
    return {"IfNoneMatch": "*"} if head is None else {"IfMatch": head["ETag"]}


def put_marker(s3: Any, run: Run, succeeded: bool) -> None:
    """Write the marker, unless this try or a later one has one. A marker of success is never replaced.

    Raises AWS_ERRORS, also when another controller was quicker.
    """
    uri = marker_uri(run.output, succeeded)
    head = _head(s3, uri)
    if head is not None and (succeeded or _retries(head) >= run.retries):
        return
    if head is not None:
        _delete(s3, uri)
    bucket, key = split_s3(uri)
    named = {RETRIES_METADATA: str(run.retries)}
    s3.put_object(Bucket=bucket, Key=key, Body=b"", Metadata=named, IfNoneMatch="*")


def remove_former_failure(s3: Any, run: Run) -> None:
    """A program that waits for the run's end must not see the failure of an earlier try. Raises AWS_ERRORS."""
    _delete_failure(s3, run, before=run.retries)


def withdraw_failure(s3: Any, run: Run) -> None:
    """The run has succeeded, which is final: a marker of failure is now wrong. Raises AWS_ERRORS."""
    _delete(s3, marker_uri(run.output, succeeded=False))


def take_back(s3: Any, run: Run, succeeded: bool) -> None:
    """Remove a marker of `run` that was written too late. A marker of success is always valid, because such a run is
    never reopened. Raises AWS_ERRORS."""
    if not succeeded:
        _delete_failure(s3, run, before=run.retries + 1)


def _delete_failure(s3: Any, run: Run, before: int) -> None:
    """Unless it belongs to try `before` or a later one."""
    uri = marker_uri(run.output, succeeded=False)
    head = _head(s3, uri)
    if head is not None and _retries(head) < before:
        _delete(s3, uri)


def _retries(head: Mapping[str, Any]) -> int:
    """The try that a marker names; 0 for a marker without one."""
    named = head.get("Metadata", {}).get(RETRIES_METADATA, "")
    return int(named) if named.isdecimal() else 0


def _delete(s3: Any, uri: str) -> None:
    bucket, key = split_s3(uri)
    s3.delete_object(Bucket=bucket, Key=key)


def _head(s3: Any, uri: str) -> dict[str, Any] | None:
    """What HeadObject answers; None for a missing object. Raises AWS_ERRORS."""
    bucket, key = split_s3(uri)
    try:
        return dict(s3.head_object(Bucket=bucket, Key=key))
    except AWS_ERRORS as error:
        if classify(error).kind is FailureKind.NOT_FOUND:
            return None
        raise
