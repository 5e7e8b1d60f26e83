"""The rows of one part: JSON lines, CSV with a heading, or one document, by the ending of its name.

A row is one line of JSON. Rows of JSON lines stay as the program wrote them, byte for byte.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from argosy.client.results.manifest import lines_of


class NotRows(ValueError):
    """The part cannot be read as rows; the message says where: `line 3 is not JSON: ...`."""


def rows_of(key: str, body: BinaryIO) -> Iterator[bytes]:
    """Each row as one line without its end. Raises NotRows."""
    ending = PurePosixPath(key).suffix.lower()
    if ending == ".csv":
        yield from _csv_rows(body)
    elif ending == ".json":
        yield _compact(_value(body.read(), "the document"))
    else:
        yield from _json_lines(body)


def row_counts(key: str, body: BinaryIO) -> Iterator[int]:
    """1 for each row. Cheaper than reading them: JSON lines are not parsed. Raises NotRows."""
    lines = PurePosixPath(key).suffix.lower() not in (".csv", ".json")
    rows = (line for line in lines_of(body) if line.strip()) if lines else rows_of(key, body)
    yield from (1 for _ in rows)


def _json_lines(body: BinaryIO) -> Iterator[bytes]:
    for number, line in enumerate(lines_of(body), 1):
        text = line.strip()
        if text:
            _value(text, f"line {number}")
            yield text


def _value(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as fault:
        raise NotRows(f"{where} is not JSON: {fault}") from fault


def _csv_rows(body: BinaryIO) -> Iterator[bytes]:
    try:
        with io.TextIOWrapper(body, encoding="utf-8", newline="") as text:
            for row in csv.DictReader(text, strict=True):
                if None in row or None in row.values():
                    raise NotRows("a row has more or fewer values than the heading has names")
                yield _compact(row)
    except (csv.Error, UnicodeDecodeError) as fault:
        raise NotRows(f"it is not CSV: {fault}") from fault


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
