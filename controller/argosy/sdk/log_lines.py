"""What did one attempt of a task print?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.client.access import Access
from argosy.client.errors import InvalidInput, error_code
from argosy.client.logs.streams import LogStream, stream_of
from argosy.sdk.errors import explained


def lines_of_task(access: Access, run_id: str, index: int, attempt: int | None) -> list[str]:
    """The lines of a task's attempt, as they were printed; empty while there are none. attempt: None = the last one.

    Raises ArgosyError where there is no such task or attempt.
    """
    with explained():
        reply = access.api.task(run_id, index)
        chosen = _chosen(reply["attempts"], index, attempt)
        stream = None if chosen is None else stream_of(access, index, chosen)
        return [] if stream is None else list(_lines(access, stream))


def _chosen(attempts: list[Mapping[str, Any]], index: int, number: int | None) -> Mapping[str, Any] | None:
    if number is None:
        return attempts[-1] if attempts else None
    for each in attempts:
        if each["attempt"] == number:
            return each
    known = ", ".join(str(each["attempt"]) for each in attempts) or "none"
    raise InvalidInput(f"Task {index} has no attempt {number}; its attempts: {known}.")


def _lines(access: Access, stream: LogStream) -> Iterator[str]:
    """The same token twice means the end."""
    place = {"logGroupName": stream.group, "logStreamName": stream.name, "startFromHead": True}
    while True:
        try:
            page = access.client("logs", stream.region).get_log_events(
                **place, **({"nextToken": stream.token} if stream.token else {})
            )
        except Exception as fault:
            if error_code(fault) == "ResourceNotFoundException":
                return  # it has printed nothing yet
            raise
        yield from (str(event["message"]) for event in page["events"])
        if page["nextForwardToken"] == stream.token:
            return
        stream.token = page["nextForwardToken"]
