"""What did failed attempts print last? Usually the sentence that says why; nothing where a log cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from argosy.cli.problems import is_from_aws
from argosy.cli.runs.log_streams import Stream, find_streams
from argosy.cli.session import Session

TASKS_ASKED = 3  # a log is two or three calls
EVENTS_ASKED = 5  # the last of them may be blank
SHOWN_CHARACTERS = 300


def last_lines(session: Session, view: Mapping[str, Any]) -> dict[tuple[int, int], str]:
    """(task, attempt) -> its last line, for the latest failures of a run view that ran at all."""
    ran = [each for each in view.get("failures", ()) if each["exitCode"] is not None and each.get("taskArn")]
    asked = {each["taskArn"]: (each["index"], each["attempt"]) for each in ran[-TASKS_ASKED:]}
    tasks = [{"index": index, "attempts": attempt, "taskArn": arn} for arn, (index, attempt) in asked.items()]
    return {asked[arn]: text for arn, text in _found(session, view, tasks)}


def _found(session: Session, view: Mapping[str, Any], tasks: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    streams: dict[str, Stream] = {}
    with _a_line_less():
        streams = find_streams(session, view, tasks) if tasks else {}
    for arn, stream in streams.items():
        with _a_line_less():
            if text := _last(session, stream):
                yield arn, text


@contextmanager
def _a_line_less() -> Iterator[None]:
    """What AWS refuses, or has forgotten, is no reason to show nothing of the run."""
    try:
        yield
    except Exception as fault:
        if not is_from_aws(fault):
            raise


def _last(session: Session, stream: Stream) -> str:
    answer = session.client("logs", stream.region).get_log_events(
        logGroupName=stream.group, logStreamName=stream.name, startFromHead=False, limit=EVENTS_ASKED
    )
    texts = [str(event["message"]).strip() for event in answer["events"]]
    return next((text for text in reversed(texts) if text), "")[:SHOWN_CHARACTERS]
