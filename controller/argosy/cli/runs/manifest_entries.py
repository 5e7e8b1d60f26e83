"""What does a run's manifest say, entry by entry? Read as it comes: a million entries never lie in memory at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from argosy import layout
from argosy.cli.problems import AWS_FAULT, CliError
from argosy.client.errors import error_code

CHUNK_BYTES = 1 << 20
_OPENING, _CLOSING = b'"entries": [', b"]}"


def lines_of(body: Any) -> Iterator[bytes]:
    """The lines of a stream that has `read(bytes)`, without their ends; an empty last line is none."""
    pending = b""
    while chunk := body.read(CHUNK_BYTES):
        *whole, pending = (pending + chunk).split(b"\n")
        yield from whole
    if pending:
        yield pending


def open_manifest(s3: Any, output: str) -> Any:
    """The manifest's stream, or None when there is none (yet). `output` is the run's own folder."""
    bucket, key = layout.split_s3(layout.manifest_uri(output))
    try:
        return s3.get_object(Bucket=bucket, Key=key)["Body"]
    except Exception as fault:
        if error_code(fault) in ("NoSuchKey", "404"):
            return None
        raise


def entries(body: Any) -> Iterator[dict[str, Any]]:
    """The entries of a manifest in their order. Raises CliError when it is cut short, malformed or out of order."""
    expected = 0
    try:
        for entry in _parsed(lines_of(body)):
            if entry["index"] != expected:
                raise _unreadable(f"where entry {expected} is due stands entry {entry['index']}")
            expected += 1
            yield entry
    except (ValueError, KeyError, TypeError) as fault:
        raise _unreadable(str(fault)) from fault


def _parsed(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The controller writes the head on the first line and one entry on each other; JSON laid out otherwise is read
    whole."""
    head = next(lines, b"")
    if not head.rstrip().endswith(_OPENING):
        yield from json.loads(b"\n".join([head, *lines]))["entries"]
        return
    for line in lines:
        if line.strip() == _CLOSING:
            return
        yield json.loads(line.rstrip().rstrip(b","))
    raise ValueError("it ends before its end")


def _unreadable(why: str) -> CliError:
    return CliError(f"The run's manifest cannot be read: {why}.", exit_code=AWS_FAULT)
