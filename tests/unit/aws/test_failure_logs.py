"""The last lines of failed attempts, from CloudWatch Logs; what cannot be read is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.aws.failure_logs import FailureLogs
from argosy.model.events import NotCarriedOut
from argosy.model.failure_texts import FailuresRead, ReadFailures
from tests.builders import CELL, NOW
from tests.fakes.aws import Clock, ScriptedClient, cell, refusal

TASK = f"arn:aws:ecs:{CELL}:123456789012:task/argosy/f00"
ELSEWHERE = "arn:aws:ecs:eu-west-9:123456789012:task/argosy/f00"


def read(reply: Any, *arns: str, deadline: float = NOW + 60.0) -> list[Any]:
    logs = ScriptedClient("logs", get_log_events=reply)
    cells = {CELL: replace(cell(Clock()), logs=logs)}
    return [*FailureLogs(cells, "/ecs/argosy/tasks", lambda: NOW).read(ReadFailures("r", arns), deadline)]


def test_the_last_line_that_is_not_blank_is_read_without_its_secrets() -> None:
    events = {"events": [{"message": "Traceback\nKeyError: token=abc"}, {"message": " \n"}]}
    assert read(events, TASK, ELSEWHERE) == [FailuresRead("r", ("KeyError: token=<redacted>", ""))]


def test_a_log_that_aws_refuses_is_not_known() -> None:
    assert read(refusal("ResourceNotFoundException", "no such stream"), TASK) == [FailuresRead("r", ("",))]


def test_without_time_nothing_is_read() -> None:
    [event] = read({"events": []}, TASK, deadline=NOW)
    assert isinstance(event, NotCarriedOut)
