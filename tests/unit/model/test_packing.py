"""How chunks of columns are stored: short where there is little, exact, and never misread."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from argosy.model import packing
from argosy.model.attempts import AttemptKey, AttemptTable
from argosy.model.damage import CorruptChunk
from argosy.model.tasks import TaskStatus, TaskTable

DEFAULTS = {"status": 0, "exit_code": -1, "name": b""}


def columns(rows: int = 6) -> dict[str, np.ndarray]:
    return {
        "status": np.zeros(rows, dtype="u1"),
        "exit_code": np.full(rows, -1, dtype="i4"),
        "name": np.zeros(rows, dtype="S5"),
    }


def test_what_equals_the_default_is_left_out_and_comes_back() -> None:
    table = columns()
    table["status"][2] = 3
    table["name"][4] = b"abc"
    rows, read = packing.unpack(packing.pack(table, DEFAULTS, 6))
    assert rows == 6
    assert {name: values.tolist() for name, values in read.items()} == {
        "status": [0, 0, 3],
        "name": [b"", b"", b"", b"", b"abc"],
    }


def test_a_chunk_without_anything_is_a_few_bytes() -> None:
    assert len(packing.pack(columns(8192), DEFAULTS, 8192)) < 60
    assert packing.unpack(packing.pack(columns(0), DEFAULTS, 0)) == (0, {})


def with_checksum(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(4, "big") + body


def test_whatever_is_wrong_with_a_chunk_it_is_called_unreadable() -> None:
    whole = packing.pack({**columns(), "status": np.ones(6, dtype="u1")}, DEFAULTS, 6)
    longer = packing.MARK + zlib.compress(zlib.decompress(whole[8:]) + b"more")
    cut = packing.MARK + zlib.compress(zlib.decompress(whole[8:])[:-2])
    headless = packing.MARK + zlib.compress(b"no line")
    for bad in (b"", whole[:-1], with_checksum(b"PK"), *map(with_checksum, (longer, cut, headless, packing.MARK))):
        with pytest.raises(packing.Unreadable):
            packing.unpack(bad)


def test_a_column_of_another_type_is_a_corrupt_chunk() -> None:
    table = TaskTable(3)
    body = packing.pack({"status": np.array([b"x"] * 3)}, {"status": b""}, 3)
    with pytest.raises(CorruptChunk):
        table.unpack(0, body)


def test_a_chunk_replaces_what_was_there_before() -> None:
    table, other = TaskTable(4), TaskTable(4)
    table.set(3, status=TaskStatus.FAILED, exit_code=9)
    table.unpack(0, other.pack(0))
    assert table["status"].tolist() == [0] * 4
    assert table["exit_code"].tolist() == other["exit_code"].tolist()


def test_live_attempts_survive_and_few_take_little_room() -> None:
    table = AttemptTable(AttemptTable.chunk_rows)
    row = table.add(1, AttemptKey("r", 7, 2, 1), 3, "i-0123456789abcdef0", 1.8e9)
    body = table.pack(0)
    assert len(body) < 400
    again = AttemptTable(AttemptTable.chunk_rows)
    again.unpack(0, body)
    assert {name: again[name][row] for name in again.columns} == {name: table[name][row] for name in table.columns}
