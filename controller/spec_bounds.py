"""Is what was handed in bounded, and made of JSON values that all readers agree on? Never recurses, never expands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from controller.spec_faults import Fault, path_text, shown

DEPTH_LIMIT = 20
SIZE_LIMIT = 256 * 1024  # characters of compact JSON: an asynchronous Lambda payload, and room in a 400 KB item
INTEGER_LIMIT = 2**53 - 1  # beyond it JSON readers no longer agree


def faults(data: Any) -> list[Fault]:
    """Size, depth, and things that are not JSON: with any of them nothing else is looked at."""
    found: list[Fault] = []
    size = 0
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), data)]
    while pending:
        path, value = pending.pop()
        if len(path) >= DEPTH_LIMIT and isinstance(value, (Mapping, list)):
            return [Fault("", f"is nested deeper than {DEPTH_LIMIT} levels")]
        size += _own_size(value)
        if size > SIZE_LIMIT:
            return [Fault("", f"is larger than {SIZE_LIMIT} characters: put long items into an S3 object (itemsFrom)")]
        message = _foreign(value)
        if message:
            found.append(Fault(path_text(path), message))
        pending.extend((path + (key,), member) for key, member in reversed(list(_members(value))))
    return found


def value_faults(data: Any) -> Iterator[Fault]:
    """Numbers and texts that JSON readers disagree about. `data` has passed `faults`."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), data)]
    while pending:
        path, value = pending.pop()
        message = _value_fault(value)
        if message:
            yield Fault(path_text(path), message)
        pending.extend((path + (key,), member) for key, member in reversed(list(_members(value))))


def _own_size(value: Any) -> int:
    """Characters the value adds to the JSON text at least, without its members."""
    if isinstance(value, str):
        return len(value) + 3
    if isinstance(value, Mapping):
        return 2 + sum(len(key) + 3 for key in value if isinstance(key, str))
    return 2


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from ((key, member) for key, member in value.items() if isinstance(key, str))
    elif isinstance(value, list):
        yield from enumerate(value)


def _foreign(value: Any) -> str | None:
    if isinstance(value, Mapping):
        bad = [key for key in value if not isinstance(key, str)]
        return f"has the name {shown(bad[0])}, which is not text: put it in quotes" if bad else None
    if value is None or isinstance(value, (str, bool, int, float, list)):
        return None
    return f"is no JSON value but a {shown(type(value).__name__)}"


def _value_fault(value: Any) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if isinstance(value, int) and abs(value) > INTEGER_LIMIT:
        return f"must be a whole number between -{INTEGER_LIMIT} and {INTEGER_LIMIT}"
    if isinstance(value, Mapping) and not all(map(_encodable, value)):
        return "has a name that is no valid Unicode text"
    if isinstance(value, str) and not _encodable(value):
        return "must be valid Unicode text"
    return None


def _encodable(text: str) -> bool:
    """Whether it is free of lone surrogates, which have no UTF-8 form."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
