"""The parts of a task's start, the last of which is in its log: from RUNNING to its first line."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy import layout
from tests.fakes.cli import NOW, OUTPUT, RUN_ID, World, run_view

REPLY: dict[str, Any] = {
    **dict.fromkeys(("cluster", "coming", "market", "purchase", "lastOrder", "standing", "task")),
    "runId": RUN_ID,
    "status": "RUNNING",
    "pending": 0,
    "verdict": "done",
    "sentence": "no task waits",
}
ATTEMPT: dict[str, Any] = {
    "startedAt": "2026-11-21T06:26:43.000Z",
    "startUp": {"bootSeconds": 93.0, "pullSeconds": 81.0, "startSeconds": 2.0, "usd": 0.0213},
    "logGroup": "mine",
    "logStream": "a/b/c",
    "region": "us-east-1",
}


class Logs:
    """GetLogEvents of one stream."""

    def __init__(self, *at_ms: int, refusal: str = "") -> None:
        self._events = [{"timestamp": at, "message": "hello"} for at in at_ms]
        self._refusal = refusal

    def get_log_events(self, **request: Any) -> dict[str, Any]:
        if self._refusal:
            raise ClientError({"Error": {"Code": self._refusal, "Message": "no"}}, "GetLogEvents")
        assert request["startFromHead"]
        return {"events": self._events[: request["limit"]]}


def explained(logs: Logs, attempt: dict[str, Any] = ATTEMPT) -> str:
    world = World().answers("ExplainRun", REPLY).answers("DescribeTask", {"attempts": [attempt]})
    world.answers("DescribeRun", run_view())
    record = {"at": NOW - 41.0, "bytes": 12_300_000, "seconds": 2.1, "cause": "stop"}
    world.objects.put(layout.checkpoints_uri(OUTPUT, 3) + "2/000001.json", record)
    world.others["logs"] = logs
    return world.argosy("explain", RUN_ID, "3").stdout


def test_the_time_to_the_first_line_is_the_programs_load() -> None:
    text = explained(Logs(1_795_242_417_500))
    assert "its last attempt started up: boot 1m 33s, pull 1m 21s, start 2.0 s, load 14 s; pull and start cost" in text
    assert "$0.021 of its instance" in text
    assert "a next attempt resumes from what attempt 2 saved 41 s ago: 12.3 MB" in text


@pytest.mark.parametrize("logs", [Logs(), Logs(refusal="AccessDeniedException")], ids=["no line yet", "no right"])
def test_a_log_without_a_line_that_can_be_read_leaves_the_load_out(logs: Logs) -> None:
    text = explained(logs)
    assert "start 2.0 s; pull" in text
    assert "load" not in text


def test_an_attempt_that_has_not_started_shows_only_its_boot() -> None:
    parts = {"bootSeconds": 93.0, "pullSeconds": None, "startSeconds": None, "usd": None}
    text = explained(Logs(), {**ATTEMPT, "startedAt": None, "startUp": parts})
    assert "its last attempt started up: boot 1m 33s\n" in text
