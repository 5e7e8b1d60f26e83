"""A run's manifest, read entry by entry as a stream: a million entries are never all in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
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
            next_step="it is written last: try again in a few seconds",
        )


def lines_of(body: Any) -> Iterator[bytes]:
    """The lines of a stream that has `read(bytes)`, without their line ends; an empty last line is left out."""
    pending = b""
    while chunk := body.read(CHUNK_BYTES):
        *whole, pending = (pending + chunk).split(b"\n")
        yield from whole
    if pending:
        yield pending


class Manifest:
    """The content of `manifest.json`. head: `runId`, `output`, `retries` and `tasks`, if it has them. The entries of a
    large run
    are in parts next to it.
    """

    def __init__(self, body: Any, part: Callable[[str], Any]) -> None:
        """body: a stream of `manifest.json`. part: opens the part with this name, relative to the run's folder. Raises
        ArgosyError."""
        self._lines, self._part = lines_of(body), part
        self._parts: list[Any] | None = None
        self._entries: list[Any] | None = None  # in another layout than the controller's: read whole
        try:
            self.head = self._read_head()
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise _unreadable(str(fault)) from fault

    def _read_head(self) -> dict[str, Any]:
        """The controller writes it on the first line."""
        first = next(self._lines, b"").rstrip()
        inline = first.endswith(_OPENING)
        head: dict[str, Any] = json.loads(first + _CLOSING if inline else b"\n".join([first, *self._lines]))
        self._parts = head.pop("parts", None)
        if self._parts is None:
            entries = head.pop("entries")
            self._entries = None if inline else entries
        return head

    def entries(self) -> Iterator[dict[str, Any]]:
        """One for each task, in their order; to be called once. Raises ArgosyError if it is truncated, malformed or out
        of order.
        """
        expected = 0
        try:
            for entry in _joined(self._in_order()):
                if entry["index"] != expected:
                    raise _unreadable(f"it has entry {entry['index']} where entry {expected} was expected")
                expected += 1
                yield entry
        except (ValueError, KeyError, TypeError) as fault:
            raise _unreadable(str(fault)) from fault

    def _in_order(self) -> Iterator[dict[str, Any]]:
        if self._parts is not None:
            for each in self._parts:
                lines = lines_of(self._part(each["key"]))
                next(lines, None)  # the part's own head
                yield from _parsed(lines)
        else:
            yield from _parsed(self._lines) if self._entries is None else self._entries


def _joined(entries: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A task with very many objects has entries in several parts, with some of the objects each; all but the last say
    `more`.
    """
    for entry in entries:
        while entry.pop("more", False):
            rest = next(entries, {"index": None})
            if rest["index"] != entry["index"]:
                raise _unreadable(f"entry {entry['index']} is not continued")
            entry["keys"] += rest["keys"]
            entry["bytes"] += rest["bytes"]
            entry["more"] = rest.get("more", False)
        yield entry


def open_manifest(s3: Any, output: str) -> Manifest | None:
    """None if there is no manifest (yet). `output`: the run's own folder. Raises ArgosyError for an unreadable one."""
    bucket, folder = layout.split_s3(output)

    def opened(name: str) -> Any:
        return s3.get_object(Bucket=bucket, Key=folder + name)["Body"]

    try:
        body = opened(layout.manifest_uri(""))
    except Exception as fault:
        if error_code(fault) in ("NoSuchKey", "404"):
            return None
        raise
    return Manifest(body, opened)


def _parsed(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The controller writes each entry on its own line."""
    for line in lines:
        if line.strip() == _CLOSING:
            return
        yield json.loads(line.rstrip().rstrip(b","))
    raise ValueError("it is truncated")


def _unreadable(why: str) -> ArgosyError:
    return ArgosyError(f"The run's manifest cannot be read: {why}.")
