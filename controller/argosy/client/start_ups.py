"""How long did a task take from the launch of its instance to its first line?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from argosy.client.access import Access
from argosy.client.checkpoints import checkpoints_of
from argosy.client.errors import is_from_aws
from argosy.client.logs import LogStream, stream_of


def explained(access: Access, run_id: str, index: int | None) -> dict[str, Any]:
    """ExplainRun's reply. Of one task it includes `startUp`: that of its last attempt in DescribeTask's reply, with
    loadSeconds, from the start of its container to its first line; None = not known, or not over yet. `checkpoint`:
    what a next attempt resumes from; None = there is none."""
    reply: dict[str, Any] = dict(access.api.explain(run_id, index))
    if index is None:
        return reply
    attempt = next(reversed(access.api.task(run_id, index)["attempts"]), None)
    saved = checkpoints_of(access, access.api.describe(run_id), index) if attempt is not None else []
    reply["checkpoint"] = saved[0].to_json() if saved else None
    if attempt is None or not attempt.get("startUp"):
        return {**reply, "startUp": None}
    return {**reply, "startUp": {**attempt["startUp"], "loadSeconds": _load_s(access, index, attempt)}}


def _load_s(access: Access, index: int, attempt: Mapping[str, Any]) -> float | None:
    stream = stream_of(access, index, attempt)
    if stream is None or attempt["startedAt"] is None:
        return None
    started_at = datetime.fromisoformat(attempt["startedAt"]).timestamp()
    first_at = _first_at(access, stream)
    return None if first_at is None else max(0.0, first_at - started_at)


def _first_at(access: Access, stream: LogStream) -> float | None:
    """Epoch seconds; None for a log that is empty, deleted, or that the user may not read."""
    try:
        page = access.client("logs", stream.region).get_log_events(
            logGroupName=stream.group, logStreamName=stream.name, startFromHead=True, limit=1
        )
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        return None
    return page["events"][0]["timestamp"] / 1000 if page["events"] else None
