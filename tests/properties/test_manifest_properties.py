"""However a manifest is divided, its parts together name the objects of committed attempts and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from argosy.aws.cell import HomeClients, PartSize
from argosy.aws.results import Results
from argosy.client.results.manifest import open_manifest
from argosy.model.actions import CloseRun
from argosy.model.events import RunClosed
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import NOW, RUN_ID, prepared, state_with, submitted, told
from tests.fakes.aws import Clock, ScriptedClient
from tests.harness.simulation.world.s3 import S3Model

MOST_TASKS = 5
OUTPUT = f"s3://results/{RUN_ID}/"
indexes = st.integers(0, MOST_TASKS - 1).map(lambda index: f"{index:07d}")
files = st.sampled_from(["", "0", "1/2", "a", "~", "ä", " "])
parts = st.builds("parts/part-{}{}".format, indexes, st.sampled_from(["", ".jsonl", "/x", "/y", "1", "-", "ä"]))
folders = st.sampled_from(["1", "2", "10", "01", "1-", "1~", "checkpoints"])
attempts = st.builds("attempts/{}/{}/{}".format, indexes, folders, files)
of_nobody = st.sampled_from(
    [
        "attempts/readme",
        "attempts/gpu-use/0000000/1.json",
        "attempts/use/0000001/2.json",
        "attempts/1/1/x",
        "parts/a",
        "parts/part-",
        "parts/part-x",
        "parts/z",
    ]
)
names = st.lists(parts | attempts | attempts | of_nobody, unique=True, max_size=40)
sizes = st.builds(PartSize, st.integers(1, MOST_TASKS + 1), st.integers(1, 6))


def ended(committed: Sequence[int]) -> State:
    state = state_with(submitted(tasks=len(committed)), prepared())
    tasks = state.runs[RUN_ID].tasks
    for index, attempt in enumerate(committed):
        status = TaskStatus.SUCCEEDED if attempt else TaskStatus.FAILED
        tasks.set(index, status=status, attempts=max(1, attempt), committed=attempt)
    return state


def closed(s3: Any, committed: Sequence[int], size: PartSize, late: Sequence[str] = ()) -> tuple[list[Any], int]:
    """The entries that readers see, and how many parts there are. late: written between two pieces of the close."""
    state, coming = ended(committed), list(late)
    events = ScriptedClient("events", put_events={"FailedEntryCount": 0, "Entries": [{}]})
    event, closes = None, 0
    while event != RunClosed(RUN_ID):
        closes += 1
        assert closes < 200, f"it is never closed: {event}"
        event = Results(HomeClients(s3, events), Clock(), part_size=size).close(CloseRun(RUN_ID), state)
        told(state, event, now=NOW)
        if coming:
            put(s3, coming.pop())
    manifest = open_manifest(s3, OUTPUT)
    assert manifest is not None
    bodies = {key: body for (_, key), body in s3.objects.items() if "/manifest/" in key}
    for stored in bodies.values():
        assert sum(len(entry["keys"]) for entry in json.loads(stored.body)["entries"]) <= 2 * size.objects
    return list(manifest.entries()), len(bodies)


def put(s3: Any, name: str) -> None:
    s3.put_object(Bucket="results", Key=f"{RUN_ID}/{name}", Body=b"123")


def expected(left: Sequence[str], index: int, attempt: int) -> list[str]:
    """The objects that the entry of a task names: its part, then those of its committed attempt."""
    own = (rf"parts/part-{index:07d}(?!\d)", rf"attempts/{index:07d}/{attempt}/")
    found = [name for pattern in own for name in sorted(left) if re.match(pattern, name)]
    return [f"{RUN_ID}/{name}" for name in found] if attempt else []


@settings(max_examples=90)
@given(
    left=names,
    committed=st.lists(st.sampled_from([0, 1, 2, 10]), min_size=1, max_size=MOST_TASKS),
    size=sizes,
    late=st.lists(st.builds("attempts/{}/3/{}".format, indexes, files), max_size=6),
)
@example([f"attempts/0000000/{a}/{n}" for a in (1, 2) for n in range(9)], [2], PartSize(1, 3), [])
@example(["attempts/0000000/1-/x", "attempts/0000000/1-/y", "attempts/0000000/1/x"], [1], PartSize(1, 1), [])
@example(["parts/part-0000000", *(f"parts/part-00000001{n}" for n in range(9))], [1, 1], PartSize(2, 2), [])
def test_all_that_counts_is_named_once_wherever_parts_end(
    left: list[str], committed: list[int], size: PartSize, late: list[str]
) -> None:
    s3 = S3Model()
    for name in left:
        put(s3, name)
    at_once, _ = closed(s3, committed, PartSize())
    named = [expected(left, index, attempt) for index, attempt in enumerate(committed)]
    assert [entry["keys"] for entry in at_once] == named
    assert [entry["bytes"] for entry in at_once] == [3 * len(keys) for keys in named]
    in_parts, _ = closed(s3, committed, size, late)
    assert in_parts == at_once


def test_what_runners_have_measured_makes_no_part_of_a_manifest() -> None:
    """Once there were more of them than a part may name, each task got a separate part."""
    s3 = S3Model()
    for index in range(5):
        put(s3, f"parts/part-{index:07d}.jsonl")
        for attempt in range(1, 9):
            put(s3, f"attempts/use/{index:07d}/{attempt}.json")
    entries, parts = closed(s3, [1] * 5, PartSize(5, 6))
    assert [len(entry["keys"]) for entry in entries] == [1] * 5
    assert parts == 0  # it is one document
