"""What does a run's manifest say? For every index the one attempt that counts, and its objects.

It is written line by line over the task table: a million entries are a few hundred megabytes of JSON, which go through
a temporary file instead of memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.layout import manifest_uri, part_index, split_s3
from argosy.model.instances import Instance
from argosy.model.runs import Run
from argosy.model.tasks import TaskStatus
from argosy.spec.shards import task_range

StoredObject = tuple[str, int]  # S3 key, bytes
Entry = Mapping[str, Any]  # what a manifest says of one index
_COLUMNS = ("committed", "seconds", "instance", "gpu_mask")
_ATTEMPT = re.compile(r"attempts/(\d+)/(\d+)/", re.ASCII)


def objects_that_count(run: Run, folder: str, stored: Iterable[StoredObject]) -> dict[int, list[StoredObject]]:
    """The objects of committed attempts, by index. folder: the key prefix of the run's results."""
    counting: dict[int, list[StoredObject]] = {}
    committed = run.tasks["committed"].tolist()
    for key, size in stored:
        index, attempt = _whose(key.removeprefix(folder))
        if 0 <= index < len(committed) and committed[index] and attempt in (0, committed[index]):
            counting.setdefault(index, []).append((key, size))
    return counting


def _whose(name: str) -> tuple[int, int]:
    """(index, attempt) of a name under the run's folder; attempt 0 = a part, index -1 = of no attempt."""
    if (index := part_index(name)) is not None:
        return index, 0
    if found := _ATTEMPT.match(name):
        return int(found[1]), int(found[2])
    return -1, 0


def manifest_lines(
    run: Run,
    instances: Mapping[str, Instance],
    counting: Mapping[int, list[StoredObject]],
    earlier: Iterable[Entry] = (),
) -> Iterator[str]:
    """The manifest as JSON, one entry on a line. earlier: the entries of the manifest that this one replaces."""
    before = iter(earlier)
    head = {"runId": run.id, "output": run.output, "retries": run.retries, "tasks": task_counts(run)}
    yield json.dumps(head)[:-1] + ', "entries": [\n'
    for index, row in enumerate(_rows(run)):
        comma = "," if index + 1 < run.task_count else ""
        entry = _entry(run, index, row, instances, counting.get(index, []))
        yield json.dumps(_remembered(entry, next(before, {}))) + comma + "\n"
    yield "]}\n"


def task_counts(run: Run) -> dict[str, int]:
    counts = run.tasks.counts().tolist()
    named = {status.name.lower(): counts[status] for status in TaskStatus if status is not TaskStatus.VERIFYING}
    named["running"] += counts[TaskStatus.VERIFYING]
    return {"total": run.task_count, **named}


def _rows(run: Run) -> Iterator[tuple[Any, ...]]:
    """The columns that an entry needs, task by task. Reading numpy scalars one by one would be ten times slower."""
    for start in range(0, run.task_count, run.tasks.chunk_rows):
        part = slice(start, start + run.tasks.chunk_rows)
        statuses = run.tasks.statuses(part).tolist()
        yield from zip(statuses, *(run.tasks[name][part].tolist() for name in _COLUMNS), strict=True)


def _entry(
    run: Run, index: int, row: tuple[Any, ...], instances: Mapping[str, Instance], objects: list[StoredObject]
) -> dict[str, Any]:
    status, committed, seconds, instance_id, gpu_mask = row
    instance = instances.get(instance_id.decode())
    entry: dict[str, Any] = {
        "index": index,
        "status": TaskStatus(status).name,
        "attempt": committed or None,
        "keys": [key for key, _ in objects],
        "bytes": sum(size for _, size in objects),
        "seconds": round(seconds, 3),
        "instance": instance_id.decode() or None,
        "instanceType": instance.instance_type if instance else None,
        "gpuIds": _gpu_ids(gpu_mask, instance),
    }
    span = task_range(run.spec, index)
    return entry | ({"range": f"{span[0]}:{span[1]}"} if span else {})


def _remembered(entry: dict[str, Any], before: Entry) -> dict[str, Any]:
    """The entry with what the earlier manifest says of an instance that has since been forgotten."""
    same = ("index", "attempt", "instance")
    if entry["instanceType"] or not before.get("instanceType") or any(entry[name] != before.get(name) for name in same):
        return entry
    return {**entry, "instanceType": before["instanceType"], "gpuIds": before.get("gpuIds", [])}


def _gpu_ids(mask: int, instance: Instance | None) -> list[str]:
    return [gpu for bit, gpu in enumerate(instance.gpu_ids if instance else ()) if mask >> bit & 1]


def earlier_entries(s3: Any, run: Run) -> Iterator[Entry]:
    """The entries of the manifest that a reopened run left, in the order of their indices; an unreadable one is empty.

    Instances are forgotten an hour after they ended: for a task that succeeded before, only the earlier manifest knows
    the type and the GPUs that it ran on. It is read line by line beside the new one. Raises AWS_ERRORS.
    """
    if not run.retries:
        return
    bucket, key = split_s3(manifest_uri(run.output))
    try:
        body = s3.get_object(Bucket=bucket, Key=key)["Body"]
    except AWS_ERRORS as error:
        if classify(error).kind is FailureKind.NOT_FOUND:  # the run ended before it could be closed
            return
        raise
    lines = iter(body.iter_lines() if hasattr(body, "iter_lines") else body)
    next(lines, None)  # the head of the manifest
    yield from map(_parsed, lines)


def _parsed(line: bytes) -> Entry:
    """One line's entry; empty for a damaged line and for the last one, which closes the manifest."""
    try:
        entry = json.loads(line.strip().removesuffix(b","))
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
