"""What did failed attempts print last? Usually the sentence that says why they failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from argosy.client.access import Access
from argosy.client.errors import is_from_aws
from argosy.client.logs.streams import LogStream, find_streams

ATTEMPTS_READ = 3  # each takes two or three calls
EVENTS_READ = 5  # the last of them may be blank
SHOWN_CHARACTERS = 300


def last_lines(
    access: Access, view: Mapping[str, Any], warn: Callable[[str], None] = lambda _: None
) -> dict[tuple[int, int], str]:
    """(task, attempt) -> its last line, for the latest failures in a run view whose program ran.

    Attempts whose log cannot be read are left out.
    """
    ran = [each for each in view.get("failures", ()) if each["exitCode"] is not None and each.get("taskArn")]
    asked = {each["taskArn"]: (each["index"], each["attempt"]) for each in ran[-ATTEMPTS_READ:]}
    tasks = [{"index": index, "attempts": attempt, "taskArn": arn} for arn, (index, attempt) in asked.items()]
    streams: dict[str, LogStream] = {}
    with _faults_of_aws_ignored():
        streams = find_streams(access, view, tasks, warn) if tasks else {}
    return {asked[arn]: text for arn, text in _texts(access, streams)}


def _texts(access: Access, streams: Mapping[str, LogStream]) -> Iterator[tuple[str, str]]:
    for arn, stream in streams.items():
        with _faults_of_aws_ignored():
            if text := _last(access, stream):
                yield arn, text


@contextmanager
def _faults_of_aws_ignored() -> Iterator[None]:
    """A log that AWS refuses or has deleted must not hide everything else about the run."""
    try:
        yield
    except Exception as fault:
        if not is_from_aws(fault):
            raise


def _last(access: Access, stream: LogStream) -> str:
    answer = access.client("logs", stream.region).get_log_events(
        logGroupName=stream.group, logStreamName=stream.name, startFromHead=False, limit=EVENTS_READ
    )
    texts = [str(event["message"]).strip() for event in answer["events"]]
    return next((text for text in reversed(texts) if text), "")[:SHOWN_CHARACTERS]
