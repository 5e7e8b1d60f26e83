"""Tables of columns: the changes since the last commit, and the earlier values."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.attempts import AttemptTable
from argosy.model.tasks import TaskStatus, TaskTable

WRITES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 49), st.integers(0, 6)),
        st.tuples(st.just("many"), st.lists(st.integers(0, 49), min_size=1, unique=True), st.integers(0, 6)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
    ),
    max_size=20,
)


class SmallChunks(TaskTable):
    chunk_rows = 8


@settings(max_examples=60, deadline=None)
@given(WRITES)
def test_differences_are_what_a_whole_copy_of_the_last_commit_would_show(writes: Any) -> None:
    table = SmallChunks(50)
    committed = table["status"].copy()
    for kind, rows, status in writes:
        if kind == "set":
            table.set(rows, status=status)
        elif kind == "many":
            table.set_many(np.array(sorted(rows), dtype=np.int64), status=status)
        else:
            table.committed()
            committed = table["status"].copy()
    rows, old, new = table.differences()
    expected = np.flatnonzero(committed != table["status"])
    assert rows.tolist() == expected.tolist()
    assert old["status"].tolist() == committed[expected].tolist()
    assert new["status"].tolist() == table["status"][expected].tolist()
    assert {*table.dirty} >= {row // 8 for row in expected.tolist()}


def test_rows_that_a_chunk_did_not_have_at_the_last_commit_were_free_then() -> None:
    table = AttemptTable(3)
    table.set(1, status=1, run=7)
    table.grow(4)
    table.set(5, status=1, run=8)
    rows, old, new = table.differences()
    assert (rows.tolist(), new["run"].tolist()) == ([1, 5], [7, 8])
    assert old["run"].tolist() == old["status"].tolist() == [0, 0]


def test_an_empty_table_has_no_differences() -> None:
    assert not len(AttemptTable().differences().rows)
    assert not len(TaskTable(3).differences().rows)


def test_a_table_counts_what_was_written_since_the_last_commit() -> None:
    table = TaskTable(10)
    table.set(3, status=TaskStatus.RUNNING)
    table.set_many(np.array([1, 2]), status=TaskStatus.RUNNING)
    assert table.writes == 3
    table.committed()
    assert (table.writes, len(table.dirty)) == (0, 0)
