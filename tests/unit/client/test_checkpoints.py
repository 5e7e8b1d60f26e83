"""What tasks have saved, as their runners' records have it, and the sentence about it."""

from __future__ import annotations

import json

import pytest

from argosy.client.checkpoints import SavedCheckpoint, checkpoint_from, sentence
from argosy.figures.checkpoints import checkpoints

ONE = SavedCheckpoint(0, 2, at=1000.0, size=12_300_000, seconds=2.14, cause="commit")
OTHER = SavedCheckpoint(7, 1, at=900.0, size=5, seconds=0.1, cause="stop")
RECORD = {"version": 1, "at": 1000.0, "bytes": 12_300_000, "seconds": 2.14, "cause": "commit", "files": []}


def test_a_record_of_a_runner_is_read() -> None:
    assert checkpoint_from(0, 2, json.dumps(RECORD).encode()) == ONE


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"at": "soon"}', json.dumps({**RECORD, "bytes": None}).encode()])
def test_what_a_program_wrote_there_is_none(text: bytes) -> None:
    assert checkpoint_from(0, 2, text) is None


def test_the_sentence_names_the_largest_and_the_latest() -> None:
    told = sentence([ONE, OTHER], 1041.0)
    assert told == (
        "2 tasks have a checkpoint, 12.3 MB the largest; the latest is of task 0, 41 s ago, and took 2.1 s to save"
    )
    assert sentence([OTHER], 900.0).startswith("1 task has a checkpoint")


def test_the_page_has_a_row_for_each_task() -> None:
    found = checkpoints([ONE, OTHER], 1041.0)
    assert found.table is not None
    assert found.table.rows == [
        ("0", "2", "41 s", "11.7 MiB", "2.1 s", "commit"),
        ("7", "1", "2m 21s", "5 B", "0.1 s", "stop"),
    ]
