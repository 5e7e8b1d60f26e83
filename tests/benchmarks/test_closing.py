"""What does it cost to close a run of 1,000,000 tasks, each with an object, a part of the manifest at a time?

Floor: a part in less than 2 s of work, without waiting for S3, and in less than 64 MiB beside the state. `make bench`
prints the figures. Before the manifest had parts, the close was one piece of 34 s that wrote 264 MB.
"""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

from argosy.aws.cell import PART_TASKS, HomeClients
from argosy.aws.results import Results
from argosy.model.actions import CloseRun
from argosy.model.events import RunClosed
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

TASKS = 1_000_000


class Bucket:
    """A part for each task, as S3 lists them: a thousand at a time, from any name on. What is written is measured."""

    def __init__(self) -> None:
        self.pages = self.bytes = self.largest = 0

    def list_objects_v2(self, *, Prefix: str, **request: Any) -> dict[str, Any]:  # noqa: N803
        self.pages += 1
        if not Prefix.endswith("parts/"):
            return {}
        after = str(request.get("ContinuationToken") or request.get("StartAfter", ""))
        first = int(after.removesuffix(".jsonl")[-7:]) + after.endswith(".jsonl")
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


@pytest.mark.benchmark
def test_closing_a_million_tasks_takes_short_pieces_and_little_memory() -> None:
    state = state_with(
        submitted(tasks=TASKS, array={"range": f"0:{10 * TASKS}", "shardSize": 10}),
        prepared(),
        fleet(),
        host(1),
        container_instance(1),
    )
    tasks = state.runs[RUN_ID].tasks
    name = instance_id(1).encode()
    rows = np.arange(TASKS)
    tasks.set_many(rows, status=TaskStatus.SUCCEEDED, attempts=1, committed=1, instance=name, seconds=12.345)
    bucket = Bucket()
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
    print(
        f"\nclosing {TASKS:,} tasks: {len(seconds)} pieces of {PART_TASKS:,}, {sum(seconds):.1f} s of work,"
        f" the longest {max(seconds):.2f} s, {peak / 2**20:.0f} MiB; {bucket.pages:,} pages;"
        f" {bucket.bytes / 1e6:.0f} MB written, the largest object {bucket.largest / 1e6:.1f} MB"
    )
    assert max(seconds) < 2
    assert peak < 64 * 2**20
