"""`attempts`: which attempts all filters choose, of a run or of one task."""

from __future__ import annotations

from typing import Any

import pytest

from argosy import layout
from tests.fakes.cli import NOW, OUTPUT, RUN_ID, World, run_view
from tests.fakes.histories import history


def with_attempts(count: int = 500, **changes: Any) -> World:
    _, _, [page] = history(40, count)
    half = {**page, "nextToken": "more"}
    none = {**page, "rows": 0, "columns": {name: {**each, "data": ""} for name, each in page["columns"].items()}}
    world = World(now=NOW + 7 * 86_400).answers("ListAttempts", {**half, **changes}, none)
    return world.answers("DescribeRun", run_view())


def chosen(*words: str) -> list[dict[str, Any]]:
    found = with_attempts().document("attempts", RUN_ID, *words)
    assert found["leftOut"] == 0
    return list(found["attempts"])


def test_all_filters_choose() -> None:
    everything = chosen()
    assert len(everything) == 500
    failed = [row for row in everything if row["outcome"] == "failed"]
    assert failed
    assert chosen("--outcome", "FAILED") == failed
    where = failed[0]["instance"]
    assert chosen("--outcome", "failed", "--instance", where) == [row for row in failed if row["instance"] == where]
    lost = [row for row in everything if row["outcome"] in ("failed", "interrupted")]
    assert chosen("--outcome", "failed", "--outcome", "interrupted") == lost
    ends = sorted(row["stoppedAt"] for row in everything)
    late = chosen("--since", ends[250])
    assert sorted(row["stoppedAt"] for row in late) == ends[250:]


def test_a_row_says_what_there_is_to_say() -> None:
    row = chosen("--outcome", "failed")[0]
    asked = {"index", "attempt", "program", "outcome", "exitCode", "reason", "instance", "startedAt", "stoppedAt"}
    assert set(row) == {*asked, "pullSeconds"}
    assert (row["exitCode"], row["reason"]) == (1, "Essential container in task exited")
    assert row["startedAt"] < row["stoppedAt"] < "2026-11-22"


def test_the_last_ones_are_shown_and_the_others_counted() -> None:
    everything = chosen()
    found = with_attempts().document("attempts", RUN_ID, "--limit", "7")
    assert (found["attempts"], found["leftOut"]) == (everything[-7:], 493)
    text = with_attempts(damaged=2).argosy("attempts", RUN_ID, "--limit", "7").stdout
    assert "7 attempts; 493 earlier ones: --limit 14 shows more." in text
    assert "2 pieces" in text


def task(*attempts: dict[str, Any]) -> dict[str, Any]:
    return {
        "runId": RUN_ID,
        "index": 3,
        "status": "RUNNING",
        "attempts": list(attempts),
        "attemptsLeftOut": 0,
        "damaged": 0,
    }


def test_items_that_exceed_a_reply_are_reported() -> None:
    text = with_attempts(leftOut=3).argosy("attempts", RUN_ID).stdout
    assert "3 attempts more would make the reply too large." in text
    world = World().answers("DescribeTask", {**task(attempt(7)), "attemptsLeftOut": 5})
    world.answers("DescribeRun", run_view())
    assert world.document("attempts", RUN_ID, "--task", "3")["notRead"] == 5


def attempt(number: int, **changes: Any) -> dict[str, Any]:
    whole = {"attempt": number, "outcome": "LOST", "exitCode": None, "reason": "gone", "instance": "i-0abc"}
    times = {"startedAt": "2026-11-21T06:26:43.000Z", "stoppedAt": "2026-11-21T06:27:13.000Z"}
    return {**whole, **times, **changes}


def test_of_one_task_no_other_is_read_and_what_a_next_attempt_resumes_from_is_shown() -> None:
    alive = attempt(2, outcome=None, startedAt=None, stoppedAt=None, reason=None, instance=None)
    world = World().answers("DescribeTask", task(attempt(1), alive)).answers("DescribeRun", run_view())
    record = {"at": NOW - 41.0, "bytes": 12_300_000, "seconds": 2.1, "cause": "stop"}
    for index in (2, 3):
        world.objects.put(layout.checkpoints_uri(OUTPUT, index) + "1/000001.json", record)
    told = world.document("attempts", RUN_ID, "--task", "3")
    found = told["attempts"]
    assert [(saved["index"], saved["attempt"], saved["bytes"]) for saved in told["checkpoints"]] == [(3, 1, 12_300_000)]
    assert [(row["index"], row["attempt"], row["outcome"]) for row in found] == [(3, 1, "lost"), (3, 2, "running")]
    assert found[0]["stoppedAt"] == "2026-11-21T06:27:13.000Z"
    assert [each["action"] for each in world.functions.requests] == ["DescribeTask", "DescribeRun"]
    text = world.argosy("attempts", RUN_ID, "--task", "3").stdout
    assert "30 s" in text
    assert "2 attempts." in text
    assert text.splitlines()[-1].split() == ["3", "attempt", "1", "(stop)", "41", "s", "12.3", "MB"]
    assert world.argosy("attempts", RUN_ID, "--task", "3", "--outcome", "timed_out").stdout == "0 attempts.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--outcome", "broken"), "--outcome broken is unknown; known: running, succeeded,"),
        (("--since", "x"), "'x' is not a time"),
    ],
)
def test_what_is_no_outcome_or_no_time_is_refused(words: tuple[str, ...], sentence: str) -> None:
    result = with_attempts().argosy("attempts", RUN_ID, *words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())
