"""The recorded segments of a given time, and their content.

A chain of segments begins with the state that a controller loaded. Its name consists of the time of that load, the
version loaded and the controller's id, so names sort by time; a part's number follows.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from argosy.layout import JOURNAL
from argosy.recording.recorder import FORMAT

LONGEST_S = 3600.0  # of a chain: an invocation of the controller ends after 15 minutes
_NAME = re.compile(r"(?P<chain>\d{4}-\d\d-\d\d/\d{6}\.\d{6}-\d{12,}-\w+)-(?P<part>\d{4,})\.jsonl\.gz")


class NotRecorded(Exception):
    """There is no complete record of that time. The message is a sentence."""


class SegmentStore(Protocol):
    """The place of recorded segments."""

    def names(self, folder: str) -> list[str]:
        """The files of a folder, sorted. A missing folder has none."""

    def get(self, name: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Chain:
    """Segments that continue one load, in order."""

    name: str
    names: Sequence[str]  # of its files

    @property
    def loaded_at(self) -> float:
        """Epoch seconds."""
        return datetime.strptime(self.name[:24], "%Y-%m-%d/%H%M%S.%f").replace(tzinfo=UTC).timestamp()

    def lines(self, shelf: SegmentStore) -> Iterator[tuple[dict[str, Any], list[Any]]]:
        """The head of a segment with each of its lines. Raises NotRecorded if one is missing or torn."""
        for number, name in enumerate(self.names):
            lines = _lines(shelf.get(name), name)
            head = next(lines, None)
            if not isinstance(head, dict) or head.get("format") != FORMAT:
                found = head.get("format") if isinstance(head, dict) else None
                raise NotRecorded(f"the segment {name} has the format {found}; this version reads {FORMAT}")
            if head["part"] != number:
                raise NotRecorded(f"a segment is missing: part {number} of {self.name}")
            yield from ((head, line) for line in lines)


def chains_before(shelf: SegmentStore, at: float) -> list[Chain]:
    """Those that began at `at` or within the hour before, the latest first."""
    names: list[str] = []
    for day in sorted({_day(at - LONGEST_S), _day(at)}):
        names += shelf.names(f"{JOURNAL}{day}/")
    return [chain for chain in reversed(chains_of(names)) if chain.loaded_at <= at]


def chains_of(names: Iterable[str]) -> list[Chain]:
    """In order of time. Files of other names are not segments."""
    parts: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if match := _NAME.fullmatch(name.removeprefix(JOURNAL)):
            parts.setdefault(match["chain"], []).append((int(match["part"]), name))
    return [Chain(name, [file for _, file in sorted(found)]) for name, found in sorted(parts.items())]


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _lines(body: bytes, name: str) -> Iterator[Any]:
    unpack = zlib.decompressobj(wbits=31)
    try:
        text = unpack.decompress(body)
        if not unpack.eof:
            raise NotRecorded(f"the segment {name} is incomplete")
        for line in text.split(b"\n")[:-1]:
            yield json.loads(line)
    except (zlib.error, ValueError) as fault:
        raise NotRecorded(f"the segment {name} cannot be read: {fault}") from fault
