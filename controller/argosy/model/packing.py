"""How are a few thousand rows of columns packed into bytes?

A checksum, a mark, and one compressed piece: a line of JSON that describes the content, then the columns. Each column
ends with its last row that differs from the default; a column of defaults is left out. Most rows of most chunks are
defaults.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MARK = b"AC1\n"
LEVEL = 3  # of compression: a third of the time of the usual 6 for 8 % more bytes
Columns = Mapping[str, NDArray[Any]]


class Unreadable(ValueError):
    """Bytes that are not a chunk, or were altered."""


def pack(columns: Columns, defaults: Mapping[str, Any], rows: int) -> bytes:
    """`rows` rows of each column; trailing values that equal `defaults` are left out."""
    kept = {name: _used(column, defaults[name]) for name, column in columns.items()}
    listed = [[name, column.dtype.str, len(column)] for name, column in kept.items() if len(column)]
    head = json.dumps({"rows": rows, "columns": listed}, separators=(",", ":")).encode()
    body = MARK + zlib.compress(b"".join([head, b"\n", *(column.tobytes() for column in kept.values())]), LEVEL)
    return zlib.crc32(body).to_bytes(4, "big") + body


def unpack(stored: bytes) -> tuple[int, dict[str, NDArray[Any]]]:
    """The number of rows, and the first rows of each column; the rest are defaults. Raises Unreadable."""
    body = stored[4:]
    if zlib.crc32(body).to_bytes(4, "big") != stored[:4]:
        raise Unreadable("wrong checksum")
    try:
        return _columns(body)
    except (ValueError, KeyError, TypeError, zlib.error) as fault:
        raise Unreadable(str(fault)) from fault


def _used(column: NDArray[Any], default: Any) -> NDArray[Any]:
    """The column up to the last row that differs from the default."""
    different: NDArray[np.bool_] = column != column.dtype.type(default)
    return column[: different.tobytes().rfind(True) + 1]


def _columns(body: bytes) -> tuple[int, dict[str, NDArray[Any]]]:
    if not body.startswith(MARK):
        raise ValueError("it does not begin with the mark of a chunk")
    content = zlib.decompress(body[len(MARK) :])
    start = content.index(b"\n") + 1
    head = json.loads(content[:start])
    found = {}
    for name, dtype, length in head["columns"]:
        found[name] = np.frombuffer(content, dtype, length, start)
        start += found[name].nbytes
    if start != len(content):
        raise ValueError("there is more than its columns")
    return int(head["rows"]), found
