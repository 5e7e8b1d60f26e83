"""What does it cost to close a run of 1,000,000 tasks, each with an object, a part of the manifest at a
time? And of a task with 2,000,000 objects?

Floor: a part in less than 2 s of work, without waiting for S3, and in less than 64 MiB besides the state. `make bench`
prints the figures. Before the manifest had parts, the close was one piece of 34 s that wrote 264 MB.
"""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

from argosy.aws.cell import PART_SIZE, HomeClients
from argosy.aws.results import Results
from argosy.model.actions import CloseRun
from argosy.model.events import RunClosed
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    NOW,
    RUN_ID,
    container_instance,
    fleet,
    host,
    instance_id,
    prepared,
    state_with,
    submitted,
    told,
)
from tests.fakes.aws import Clock, ScriptedClient, refusal

TASKS, OBJECTS = 1_000_000, 2_000_000


class Bucket:
    """A part for each task, as S3 lists them: a thousand at a time, from any name on. The written bytes are
    measured."""

    def __init__(self) -> None:
        self.pages = self.bytes = self.largest = 0

    def list_objects_v2(self, *, Prefix: str, **request: Any) -> dict[str, Any]:  # noqa: N803
        self.pages += 1
        if not Prefix.endswith("parts/"):
            return {}
        after = str(request.get("ContinuationToken") or request.get("StartAfter", ""))
        first = int(after.rpartition("part-")[2][:7]) + 1 if "part-" in after else 0
        there = range(first, min(first + 1000, TASKS))
        keys = [f"{Prefix}part-{index:07d}.jsonl" for index in there]
        page: dict[str, Any] = {"Contents": [{"Key": key, "Size": 100} for key in keys]}
        return page | ({"IsTruncated": True, "NextContinuationToken": keys[-1]} if there.stop < TASKS else {})

    def put_object(self, *, Body: bytes, **request: Any) -> dict[str, Any]:  # noqa: N803
        self.bytes, self.largest = self.bytes + len(Body), max(self.largest, len(Body))
        return {}

    def head_object(self, **request: Any) -> Any:
        raise refusal("404", "Not Found", 404)

    def delete_object(self, **request: Any) -> dict[str, Any]:
        return {}


class Folder(Bucket):
    """One attempt's folder of OBJECTS objects. most_pages: the most listed for one written object."""

    def __init__(self) -> None:
        super().__init__()
        self.most_pages = self._since = 0

    def list_objects_v2(self, *, Prefix: str, **request: Any) -> dict[str, Any]:  # noqa: N803
        self.pages, self._since = self.pages + 1, self._since + 1
        self.most_pages = max(self.most_pages, self._since)
        if not Prefix.endswith("attempts/"):
            return {}
        after = str(request.get("ContinuationToken") or request["StartAfter"]).rpartition("/")[2]
        first = int(after) + 1 if len(after) == 8 else 0
        there = range(first, min(first + 1000, OBJECTS))
        keys = [f"{Prefix}0000000/1/{number:08d}" for number in there]
        page: dict[str, Any] = {"Contents": [{"Key": key, "Size": 100} for key in keys]}
        return page | ({"IsTruncated": True, "NextContinuationToken": keys[-1]} if there.stop < OBJECTS else {})

    def put_object(self, *, Body: bytes, **request: Any) -> dict[str, Any]:  # noqa: N803
        self._since = 0
        return super().put_object(Body=Body, **request)


def closed(bucket: Bucket, state: State) -> tuple[list[float], int]:
    """Seconds of each part of the close, and the bytes of memory that one needs."""
    events = ScriptedClient("events", put_events={"FailedEntryCount": 0, "Entries": [{}]})
    results = Results(HomeClients(bucket, events), Clock())
    seconds: list[float] = []
    peak, event = 0, None
    while event != RunClosed(RUN_ID):
        measured = len(seconds) == 3  # tracing memory slows it down: one part is enough
        if measured:
            tracemalloc.start()
        began = time.perf_counter()
        event = results.close(CloseRun(RUN_ID), state)
        seconds.append(time.perf_counter() - began)
        if measured:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            seconds[-1] = seconds[-2]
        told(state, event, now=NOW)
    assert max(seconds) < 2
    assert peak < 64 * 2**20
    return seconds, peak


def ended(tasks: int) -> State:
    array = {"range": f"0:{10 * tasks}", "shardSize": 10}
    state = state_with(submitted(tasks=tasks, array=array), prepared(), fleet(), host(1), container_instance(1))
    values = {"status": TaskStatus.SUCCEEDED, "attempts": 1, "committed": 1, "seconds": 12.345}
    state.runs[RUN_ID].tasks.set_many(np.arange(tasks), instance=instance_id(1).encode(), **values)
    return state


@pytest.mark.benchmark
def test_closing_a_million_tasks_takes_short_pieces_and_little_memory() -> None:
    bucket = Bucket()
    seconds, peak = closed(bucket, ended(TASKS))
    print(
        f"\nclosing {TASKS:,} tasks: {len(seconds)} pieces of {PART_SIZE.tasks:,}, {sum(seconds):.1f} s of work,"
        f" the longest {max(seconds):.2f} s, {peak / 2**20:.0f} MiB; {bucket.pages:,} pages;"
        f" {bucket.bytes / 1e6:.0f} MB written, the largest object {bucket.largest / 1e6:.1f} MB"
    )


@pytest.mark.benchmark
def test_closing_a_task_of_two_million_objects_takes_short_pieces_and_little_memory() -> None:
    folder = Folder()
    seconds, peak = closed(folder, ended(1))
    print(
        f"\nclosing a task of {OBJECTS:,} objects: {len(seconds)} pieces, {sum(seconds):.1f} s of work, the longest"
        f" {max(seconds):.2f} s, {peak / 2**20:.0f} MiB; {folder.pages:,} pages, at most {folder.most_pages} for one;"
        f" {folder.bytes / 1e6:.0f} MB written, the largest object {folder.largest / 1e6:.1f} MB"
    )
