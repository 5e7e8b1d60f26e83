"""Which try of a run do its manifest and its marker belong to, and how does a late write do no harm? (decision 11)

A controller may be paused for any time between its commit and its write, while the run is closed by another one, tried
again by its user and closed anew. What it writes then must not replace what belongs to a later try.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.layout import RETRIES_METADATA, manifest_uri, marker_uri, split_s3
from argosy.model.runs import Run


def as_it_is(s3: Any, run: Run) -> dict[str, str]:
    """The condition of a PUT on the manifest: that nobody has written it since now. Raises AWS_ERRORS."""
    head = _head(s3, manifest_uri(run.output))
    return {"IfNoneMatch": "*"} if head is None else {"IfMatch": head["ETag"]}


def put_marker(s3: Any, run: Run, succeeded: bool) -> None:
    """Unless it is there: of this try, or of a later one. Success needs no second marker, whichever try it was. Raises
    AWS_ERRORS, also when somebody else was quicker."""
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
    """Whoever waits for the end of the run must not see that of an earlier try. Raises AWS_ERRORS."""
    _delete_failure(s3, run, before=run.retries)


def withdraw_failure(s3: Any, run: Run) -> None:
    """The run has succeeded, which is final: no try of it has failed any more. Raises AWS_ERRORS."""
    _delete(s3, marker_uri(run.output, succeeded=False))


def take_back(s3: Any, run: Run, succeeded: bool) -> None:
    """A marker of `run` that was written too late. One that tells of success always holds: such a run is never
    reopened. Raises AWS_ERRORS."""
    if not succeeded:
        _delete_failure(s3, run, before=run.retries + 1)


def _delete_failure(s3: Any, run: Run, before: int) -> None:
    """Unless it belongs to that try or a later one."""
    uri = marker_uri(run.output, succeeded=False)
    head = _head(s3, uri)
    if head is not None and _retries(head) < before:
        _delete(s3, uri)


def _retries(head: Mapping[str, Any]) -> int:
    """Markers of earlier versions of Argosy name no try."""
    named = head.get("Metadata", {}).get(RETRIES_METADATA, "")
    return int(named) if named.isdecimal() else 0


def _delete(s3: Any, uri: str) -> None:
    bucket, key = split_s3(uri)
    s3.delete_object(Bucket=bucket, Key=key)


def _head(s3: Any, uri: str) -> dict[str, Any] | None:
    """None when there is no such object. Raises AWS_ERRORS."""
    bucket, key = split_s3(uri)
    try:
        return dict(s3.head_object(Bucket=bucket, Key=key))
    except AWS_ERRORS as error:
        if classify(error).kind is FailureKind.NOT_FOUND:
            return None
        raise
