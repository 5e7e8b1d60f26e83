"""How is the journal stored and read?

Each commit with lines puts one item in its transaction. `CHANGES / <version, 12 digits>` holds the lines of the commit
that made this version; more items follow as `<version>#001` and so on if one is too small. Each names the version of
the item before it, so that a reader can detect a gap. Items expire after KEPT_S; DynamoDB deletes them some time later,
so readers also check the time. An item stores each reason once, since reasons can be long and repeated. A line's
sequence is `<version>.<number of the line in its commit>`, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from argosy.model.journal.lines import Line
from argosy.model.stored.documents import Documents, decode, encode

CHANGES = "CHANGES"
KEPT_S = 72 * 3600.0
ALL = 10**9
MOST_BYTES = 300_000  # of an item; DynamoDB takes 400 KB


@dataclass(frozen=True, slots=True)
class JournalItem:
    """Lines of one commit. `first`: the number of its first line."""

    version: int
    at: float  # epoch seconds of the commit
    previous: int  # the version of the previous commit with lines
    first: int
    lines: Sequence[Line]

    def is_kept(self, now: float) -> bool:
        return now < self.at + KEPT_S


class Place(NamedTuple):
    """A reader's position: the number of the last line of a version that it has read; ALL = all of them."""

    version: int
    line: int

    def to_text(self) -> str:
        return str(self.version) if self.line >= ALL else f"{self.version}.{self.line}"

    @classmethod
    def from_text(cls, text: str) -> Place | None:
        """`<version>.<line>`, lines counted from 1, or `<version>` for all of them. None for any other text."""
        version, _, number = text.partition(".")
        if not re.fullmatch(r"[0-9]{1,12}(\.[1-9][0-9]{0,8})?", text, re.ASCII):
            return None
        return cls(int(version), int(number) if number else ALL)


def key_of(version: int, part: int = 0) -> str:
    """The sort key."""
    return f"{version:012d}#{part:03d}" if part else f"{version:012d}"


def after_version(version: int) -> str:
    """A sort key that follows all items of a version and precedes all later ones."""
    return f"{version:012d}~"


def items(version: int, at: float, previous: int, lines: Sequence[Line]) -> Documents:
    """The items of the commit that makes `version`; none without lines."""
    documents: Documents = {}
    for part, body in enumerate(_bodies(at, previous, 1, lines) if lines else ()):
        documents[CHANGES, key_of(version, part)] = body
    return documents


def _bodies(at: float, previous: int, first: int, lines: Sequence[Line]) -> list[bytes]:
    reasons = list(dict.fromkeys(line["reason"] for line in lines if "reason" in line))
    places = {reason: place for place, reason in enumerate(reasons)}
    short = [{**line, "reason": places[line["reason"]]} if "reason" in line else line for line in lines]
    body = encode({"at": at, "previous": previous, "first": first, "reasons": reasons, "lines": short})
    if len(body) <= MOST_BYTES or len(lines) == 1:
        return [body]
    middle = len(lines) // 2
    return [
        *_bodies(at, previous, first, lines[:middle]),
        *_bodies(at, previous, first + middle, lines[middle:]),
    ]


def item_from(key: str, body: bytes) -> JournalItem:
    """Raises one of `damage.FAULTS` for an item that `items` did not write."""
    record = decode(body)
    reasons = dict(enumerate(record["reasons"]))
    return JournalItem(
        version=int(key.partition("#")[0]),
        at=float(record["at"]),
        previous=int(record["previous"]),
        first=int(record["first"]),
        lines=[{**line, "reason": reasons[line["reason"]]} if "reason" in line else line for line in record["lines"]],
    )
