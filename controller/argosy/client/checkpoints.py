"""What have the tasks of a run saved? The runners write the records (`runner.checkpoints`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy import layout
from argosy.client.access import Access
from argosy.client.errors import is_from_aws

MOST_READ = 20  # records
_NAME = re.compile(rf"{layout.CHECKPOINTS}[^/]+/(\d{{7,}})/(\d+)/(\d{{6,}})\.json")


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """The newest one of a task. at: epoch seconds; size: of all files, in bytes; seconds: how long its upload took."""

    index: int
    attempt: int
    at: float
    size: int
    seconds: float
    cause: str  # commit, time or stop

    def to_json(self) -> dict[str, Any]:
        return {
            "index": self.index, "attempt": self.attempt, "at": self.at, "bytes": self.size, "seconds": self.seconds,
            "cause": self.cause,
        }  # fmt: skip


def checkpoints_of(access: Access, view: Mapping[str, Any], task: int | None = None) -> list[SavedCheckpoint]:
    """Of the tasks that saved last, or of one task, by their tasks; tasks that succeeded have none. None if S3
    refuses."""
    if view.get("environment") or view["status"] == "SUCCEEDED":
        return []
    bucket, prefix = layout.split_s3(layout.checkpoints_uri(view["output"], task))
    s3 = access.client("s3")
    try:
        first: dict[str, Any] = next(
            iter(s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)), {}
        )
        newest: dict[int, tuple[int, int, str]] = {}
        for key in (each["Key"] for each in first.get("Contents", ())):
            if name := _NAME.fullmatch(key):
                task, attempt, number = map(int, name.groups())
                newest[task] = max(newest.get(task, (0, 0, "")), (attempt, number, key))
        chosen = sorted(newest.items())[:MOST_READ]
        bodies = [
            (task, attempt, s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for task, (attempt, _, key) in chosen
        ]
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        return []
    found = (checkpoint_from(task, attempt, body) for task, attempt, body in bodies)
    return [each for each in found if each is not None]


def checkpoint_from(index: int, attempt: int, record: bytes) -> SavedCheckpoint | None:
    """None if a program has written something else there."""
    try:
        told = json.loads(record)
        figures = float(told["at"]), int(told["bytes"]), float(told["seconds"])
        return SavedCheckpoint(index, attempt, *figures, str(told["cause"]))
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def resumption(saved: Mapping[str, Any], now: float) -> str:
    """`a next attempt resumes from what attempt 2 saved 41 s ago: 12.3 MB`. saved: as `to_json` has it."""
    age = f"{max(0.0, now - saved['at']):,.0f} s ago"
    return f"a next attempt resumes from what attempt {saved['attempt']} saved {age}: {saved['bytes'] / 1e6:,.1f} MB"


def sentence(saved: Sequence[SavedCheckpoint], now: float) -> str:
    """`3 tasks have a checkpoint, 12.3 MB the largest; the latest is of task 0, 41 s ago, and took 2.1 s to save`."""
    latest, largest = max(saved, key=lambda each: each.at), max(each.size for each in saved)
    tasks = "1 task has a checkpoint" if len(saved) == 1 else f"{len(saved)} tasks have a checkpoint"
    age = f"{max(0.0, now - latest.at):,.0f} s ago"
    return (
        f"{tasks}, {largest / 1e6:,.1f} MB the largest; the latest is of task {latest.index}, {age}, and took "
        f"{latest.seconds:,.1f} s to save"
    )
