"""Rows of ended attempts come back from their bytes as they were, and an amendment is in the row that it concerns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.model import ended_attempts, packing
from argosy.model.ended_attempts import ROWS_PER_ITEM, EndedAttempt, EndedAttempts, Outcome

AT = 1_800_000_000.0
TENTHS = st.integers(0, 10**8).map(lambda tenths: AT + tenths / 10)
ROWS = st.builds(
    EndedAttempt,
    index=st.integers(0, 999_999),
    attempt=st.integers(1, 70_000),
    outcome=st.sampled_from(Outcome),
    instance=st.one_of(st.just(""), st.integers(0, 16**17 - 1).map("i-{:017x}".format)),
    cell=st.sampled_from(["", "us-east-1", "eu-west-1"]),
    task_id=st.one_of(st.just(""), st.integers(1, 16**32 - 1).map("{:032x}".format)),
    launched_at=st.one_of(st.just(0.0), TENTHS),
    started_at=st.one_of(st.just(0.0), TENTHS),
    stopped_at=st.one_of(st.just(0.0), TENTHS),
    exit_code=st.integers(-255, 255),
    reason=st.integers(0, 201),
    gpu_mask=st.integers(0, 2**32 - 1),
    pull_s=st.integers(0, 10**6).map(lambda tenths: tenths / 10),
    program=st.integers(0, 99),
    amends=st.just(False),
)


def read(rows: list[EndedAttempt]) -> EndedAttempts:
    return ended_attempts.joined(ended_attempts.from_bytes(body) for body in ended_attempts.pack(rows))


def alike(found: list[EndedAttempt], rows: list[EndedAttempt]) -> bool:
    """Times to the tenth of a second."""
    exact = [row._replace(launched_at=0.0, started_at=0.0, stopped_at=0.0) for row in rows]
    times = [at for row in rows for at in row[6:9]]
    seen = [at for row in found for at in row[6:9]]
    near = all(bool(at) == bool(then) and abs(at - then) < 0.051 for at, then in zip(seen, times, strict=True))
    return near and [row._replace(launched_at=0.0, started_at=0.0, stopped_at=0.0) for row in found] == exact


@given(st.lists(st.lists(ROWS, max_size=6), max_size=4))
def test_rows_of_several_commits_come_back_in_their_order(commits: list[list[EndedAttempt]]) -> None:
    bodies = [body for rows in commits for body in ended_attempts.pack(rows)]
    found = ended_attempts.joined(map(ended_attempts.from_bytes, bodies))
    assert alike(list(found.rows()), [row for rows in commits for row in rows])
    again = ended_attempts.from_bytes(ended_attempts.to_bytes(found))
    assert list(again.rows()) == list(found.rows())


def test_a_row_that_amends_another_changes_its_outcome_and_is_gone() -> None:
    rows = [EndedAttempt(index, 2, Outcome.SUCCEEDED, "i-1", exit_code=0, started_at=AT) for index in (1, 2, 3)]
    amending = EndedAttempt(2, 2, Outcome.FAILED, exit_code=0, reason=7, amends=True)
    parts = [ended_attempts.from_rows([*rows]), ended_attempts.from_rows([amending])]
    found = list(ended_attempts.joined(parts).rows())
    assert [(row.index, row.outcome, row.reason, row.instance) for row in found] == [
        (1, Outcome.SUCCEEDED, 0, "i-1"),
        (2, Outcome.FAILED, 7, "i-1"),
        (3, Outcome.SUCCEEDED, 0, "i-1"),
    ]


AMENDED = st.tuples(
    st.integers(0, 3), st.integers(1, 2), st.sampled_from(Outcome), st.integers(0, 9), st.booleans()
).map(lambda drawn: EndedAttempt(*drawn[:3], reason=drawn[3], amends=drawn[4]))


@given(st.lists(AMENDED, max_size=12))
def test_amendments_change_what_a_reader_who_goes_row_by_row_would_change(rows: list[EndedAttempt]) -> None:
    kept: list[EndedAttempt | None] = list(rows)
    for place, row in enumerate(rows):
        same = [at for at, each in enumerate(rows) if not each.amends and each[:2] == row[:2]]
        if row.amends and same:
            amended = rows[same[0]]._replace(outcome=row.outcome, exit_code=row.exit_code, reason=row.reason)
            kept[same[0]], kept[place] = amended, None
    assert list(read(rows).rows()) == [row for row in kept if row is not None]


def test_an_amendment_of_a_row_that_is_elsewhere_stays() -> None:
    other_attempt = EndedAttempt(2, 1, Outcome.SUCCEEDED)
    amending = EndedAttempt(2, 2, Outcome.FAILED, amends=True)
    assert read([other_attempt, amending]).columns["amends"].tolist() == [0, 1]
    assert read([amending]).columns["amends"].tolist() == [1]


def test_a_commit_with_very_many_ends_has_several_items_each_below_what_an_item_holds() -> None:
    rows = [
        EndedAttempt(row, 1, Outcome.FAILED, f"i-{row * 7919:017x}", "", f"{row * 2**96 + 1:032x}", AT + row, AT, AT)
        for row in range(1, ROWS_PER_ITEM + 2)
    ]
    bodies = ended_attempts.pack(rows)
    assert [len(ended_attempts.from_bytes(body)) for body in bodies] == [ROWS_PER_ITEM, 1]
    assert max(map(len, bodies)) < 390_000


@pytest.mark.parametrize("name", ["task-1", "x" * 32])
def test_an_id_that_no_task_of_ecs_has_is_left_out(name: str) -> None:
    assert read([EndedAttempt(0, 1, Outcome.FAILED, task_id=name)]).columns["task_high"].tolist() == [0]


def test_damaged_bytes_are_refused() -> None:
    body = ended_attempts.pack([EndedAttempt(0, 1, Outcome.FAILED)])[0]
    with pytest.raises(packing.Unreadable):
        ended_attempts.from_bytes(body[:-1] + b"x")
