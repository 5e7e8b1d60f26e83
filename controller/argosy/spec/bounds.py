"""Checks that a document is small enough and made of portable JSON values, without recursion or copies."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any

from argosy.spec.faults import Fault, path_text, shown

DEPTH_LIMIT = 20
SIZE_LIMIT = 256 * 1024  # bytes of compact UTF-8 JSON, as a request is stored: in an item of at most 400 KB
INTEGER_LIMIT = 2**53 - 1  # JSON readers disagree about larger integers

_SCALARS = (str, int, float, NoneType)  # asked first: whether something is a Mapping takes longer
_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def faults(data: Any) -> list[Fault]:
    """Faults of size or depth, and values that are not JSON. After any of these a spec is not checked further."""
    found: list[Fault] = []
    size = 0
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), data)]
    while pending:
        path, value = pending.pop()
        has_members = not isinstance(value, _SCALARS) and isinstance(value, (Mapping, list))
        if has_members and len(path) >= DEPTH_LIMIT:
            return [Fault("", f"is nested deeper than {DEPTH_LIMIT} levels")]
        size += _own_size(value)
        if size > SIZE_LIMIT:
            return [Fault("", f"is larger than {SIZE_LIMIT} bytes: put long items into an S3 object (itemsFrom)")]
        message = _foreign(value)
        if message:
            found.append(Fault(path_text(path), message))
        if has_members:
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
        if not isinstance(value, _SCALARS):
            pending.extend((path + (key,), member) for key, member in reversed(list(_members(value))))


def largest(document: Mapping[str, Any]) -> tuple[str, int]:
    """Path and bytes of the largest field of a bounded JSON form; each field of `array` and similar parts counts by
    itself."""
    sizes = {name: _json_bytes(value) for name, value in document.items() if not isinstance(value, Mapping)}
    for outer, members in document.items():
        if isinstance(members, Mapping):
            sizes |= {f"{outer}.{name}": _json_bytes(value) for name, value in members.items()}
    return max(sizes.items(), key=lambda each: each[1], default=("", 0))


def _own_size(value: Any) -> int:
    """Bytes that the value adds to the compact JSON text: without its members, with the comma after it."""
    if value is None or value is True:
        return 5
    if isinstance(value, str):
        return _text_size(value) + 1
    if not isinstance(value, _SCALARS) and isinstance(value, Mapping):
        return 3 + sum(_text_size(key) + 1 for key in value if isinstance(key, str))
    if isinstance(value, int) and not isinstance(value, bool):
        # Python does not write numbers with thousands of digits. Their size is estimated; `value_faults` refuses them.
        return len(str(value)) + 1 if abs(value) <= INTEGER_LIMIT else value.bit_length() // 4 + 2
    if isinstance(value, float | bool):
        return len(json.dumps(value)) + 1
    return 3


def _text_size(text: str) -> int:
    if len(text) > SIZE_LIMIT:
        return len(text)
    return _json_bytes(text)


def _json_bytes(value: Any) -> int:
    return len(_COMPACT.encode(value).encode("utf-8", "surrogatepass"))


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from ((key, member) for key, member in value.items() if isinstance(key, str))
    elif isinstance(value, list):
        yield from enumerate(value)


def _foreign(value: Any) -> str | None:
    if isinstance(value, (*_SCALARS, list)):
        return None
    if isinstance(value, Mapping):
        bad = [key for key in value if not isinstance(key, str)]
        return f"has the name {shown(bad[0])}, which is not text: put it in quotes" if bad else None
    return f"is not a JSON value: its type is {shown(type(value).__name__)}"


def _value_fault(value: Any) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if isinstance(value, int) and abs(value) > INTEGER_LIMIT:
        return f"must be a whole number between -{INTEGER_LIMIT} and {INTEGER_LIMIT}"
    if isinstance(value, Mapping) and not all(map(_encodable, value)):
        return "has a name that is not valid Unicode text"
    if isinstance(value, str) and not _encodable(value):
        return "must be valid Unicode text"
    return None


def _encodable(text: str) -> bool:
    """Whether the text has no lone surrogates, which have no UTF-8 form."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
