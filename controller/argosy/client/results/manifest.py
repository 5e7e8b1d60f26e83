"""What does a run's manifest say, entry by entry? It is read as a stream: a million entries are never all in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from argosy import layout
from argosy.client.errors import ArgosyError, error_code

CHUNK_BYTES = 1 << 20
_OPENING, _CLOSING = b'"entries": [', b"]}"


class NoManifest(ArgosyError):
    """A run has ended, but its manifest is not there (yet)."""

    def __init__(self, view: Mapping[str, Any]) -> None:
        uri = layout.manifest_uri(str(view["output"]))
        super().__init__(
            f"{view['runId']} has ended {view['status']} but has no manifest at {uri}.",
            next_step="it is written at the very end: wait a little",
        )


def lines_of(body: Any) -> Iterator[bytes]:
    """The lines of a stream that has `read(bytes)`, without their line ends; an empty last line is left out."""
    pending = b""
    while chunk := body.read(CHUNK_BYTES):
        *whole, pending = (pending + chunk).split(b"\n")
        yield from whole
    if pending:
        yield pending


def open_manifest(s3: Any, output: str) -> Any:
    """The manifest's stream, or None when there is no manifest (yet). `output` is the run's own folder."""
    bucket, key = layout.split_s3(layout.manifest_uri(output))
    try:
        return s3.get_object(Bucket=bucket, Key=key)["Body"]
    except Exception as fault:
        if error_code(fault) in ("NoSuchKey", "404"):
            return None
        raise


def entries(body: Any) -> Iterator[dict[str, Any]]:
    """The entries of a manifest in their order. Raises ArgosyError when it is cut short, malformed or out of order."""
    expected = 0
    try:
        for entry in _parsed(lines_of(body)):
            if entry["index"] != expected:
                raise _unreadable(f"it has entry {entry['index']} where entry {expected} is due")
            expected += 1
            yield entry
    except (ValueError, KeyError, TypeError) as fault:
        raise _unreadable(str(fault)) from fault


def _parsed(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The controller writes the head on the first line and each entry on its own line; JSON in any other layout is
    read whole."""
    head = next(lines, b"")
    if not head.rstrip().endswith(_OPENING):
        yield from json.loads(b"\n".join([head, *lines]))["entries"]
        return
    for line in lines:
        if line.strip() == _CLOSING:
            return
        yield json.loads(line.rstrip().rstrip(b","))
    raise ValueError("it is cut short")


def _unreadable(why: str) -> ArgosyError:
    return ArgosyError(f"The run's manifest cannot be read: {why}.")
