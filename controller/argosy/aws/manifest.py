"""A run's manifest: for every index, of a task or a gang, the one attempt that counts, and its objects.

The manifest of a run with many tasks or objects is written in parts (decision 20), each a piece of work that fits into
a tick: `manifest/<retries>/<begin>-<end>.json`. `manifest.json` then lists them. That of a smaller run has the entries
in itself. The entry of a task with very many objects is continued from part to part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from argosy.aws.cell import PartSize
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.layout import manifest_part_uri, manifest_uri, numbered, part_index, split_s3
from argosy.model.instances import Instance
from argosy.model.runs import ManifestBound, Run
from argosy.model.tasks import TaskStatus
from argosy.spec.shards import task_range

StoredObject = tuple[str, int]  # S3 key, bytes
Entry = Mapping[str, Any]  # the entry of one index
_COLUMNS = ("committed", "seconds", "instance", "gpu_mask", "program")
_ATTEMPT = re.compile(r"attempts/(\d+)/([1-9]\d*)/", re.ASCII)
_PARTS, _ATTEMPTS = "parts/", "attempts/"
_AFTER_ATTEMPTS = f"{_ATTEMPTS}:"  # of folders named by digits; what runners have measured comes behind them


@dataclass(frozen=True, slots=True)
class ManifestPart:
    """The tasks between two bounds, with the objects of their committed attempts by index. One that ends within a task
    has objects of this task only. after: as in `Run.manifest_after`."""

    begin: ManifestBound
    end: ManifestBound
    after: str
    objects: Mapping[int, Sequence[StoredObject]]

    @property
    def tasks(self) -> range:
        """The tasks that it has an entry of."""
        return range(self.begin.task, self.end.task + bool(self.end.objects))

    def is_whole(self, run: Run) -> bool:
        return (self.begin, self.end) == (ManifestBound(), ManifestBound(run.piece_count))


def starts_of(run: Run) -> list[tuple[str, str]]:
    """The result folders to list for the next part, and the name to start after in each."""
    task, after = run.manifest_to.task, run.manifest_after
    within_attempts = after.startswith(_ATTEMPTS)
    first_part = task + within_attempts
    parts = after if after.startswith(_PARTS) else f"{_PARTS}part-{numbered(first_part - 1)}~" if first_part else ""
    attempts = after if within_attempts else f"{_ATTEMPTS}{numbered(task)}"
    return [(_PARTS, parts.removeprefix(_PARTS)), (_ATTEMPTS, attempts.removeprefix(_ATTEMPTS))]


def part_from(run: Run, listings: Iterable[Iterable[StoredObject]], most: PartSize) -> ManifestPart:
    """The next part: whole tasks, or some of the objects of one task that has too many.

    listings: the objects of the folders that `starts_of` names, from there on, in the order of their names. Of each, at
    most `most.objects` are taken, and one more is read.
    """
    begin, folder = run.manifest_to, split_s3(run.output)[1]
    first, end = begin.task, min(begin.task + most.tasks, run.piece_count)
    objects: dict[int, list[StoredObject]] = {}
    committed = run.tasks["committed"][_rows_of(run, first, end)].tolist()
    for listing in listings:
        seen, latest, name = 0, first, ""
        for key, size in listing:
            before, name = name, key.removeprefix(folder)
            index, attempt = _whose(name)
            if index >= end or (name.startswith(_ATTEMPTS) and name > _AFTER_ATTEMPTS):
                break
            if 0 <= index < first:
                continue
            if seen == most.objects and max(index, latest) == first:
                return _cut(begin, objects.get(first, []), _rest_after(before, first, committed[0]))
            if seen == most.objects:
                end = max(index, latest)
                break
            seen, latest = seen + 1, max(latest, index)
            if index >= 0 and committed[index - first] and attempt in (0, committed[index - first]):
                objects.setdefault(index, []).append((key, size))
    whole = {index: found for index, found in objects.items() if index < end}
    return ManifestPart(begin, ManifestBound(end), "", whole)


def _cut(begin: ManifestBound, found: list[StoredObject], after: str) -> ManifestPart:
    """A part of one task. after: where the rest of its objects begins, "" = there is none."""
    end = ManifestBound(begin.task, begin.objects + len(found)) if after else ManifestBound(begin.task + 1)
    return ManifestPart(begin, end, after, {begin.task: found})


def _rest_after(name: str, task: int, committed: int) -> str:
    """The name after which the task's objects continue, when all are known up to `name`; "" = there are no more.
    Objects of other attempts are skipped."""
    if not committed:
        return ""
    part, own = f"{_PARTS}part-{numbered(task)}", f"{_ATTEMPTS}{numbered(task)}/{committed}/"
    if name.startswith(_PARTS):
        return name if name < part or name.startswith(part) else own[:-1]
    if name.startswith(own):
        return name
    return max(name, own[:-1]) if name < own else ""


def _whose(name: str) -> tuple[int, int]:
    """(index, attempt) of a name under the run's folder; attempt 0 = a part, index -1 = of no attempt."""
    if (index := part_index(name)) is not None:
        return index, 0
    found = _ATTEMPT.match(name)
    if found and found[1] == numbered(int(found[1])):  # other names would not sort like indexes
        return int(found[1]), int(found[2])
    return -1, 0


def part_body(run: Run, part: ManifestPart, instances: Mapping[str, Instance], earlier: Mapping[int, Entry]) -> bytes:
    """A part as JSON, one entry on a line. earlier: entries of the manifest that this one replaces, by index."""
    bounds = {"from": part.begin.task, "to": part.end.task}
    head = _head(run) if part.is_whole(run) else {"runId": run.id, "retries": run.retries, **bounds}
    lines = []
    for index, row in zip(part.tasks, _rows(run, part.tasks), strict=True):
        entry = _entry(run, index, row, instances, part.objects.get(index, ()))
        if index == part.end.task:
            entry["more"] = True  # of its objects, in the next part
        lines.append(json.dumps(_remembered(entry, earlier.get(index, {}))))
    return (json.dumps(head)[:-1] + ', "entries": [\n' + ",\n".join(lines) + "\n]}\n").encode()


def index_body(run: Run) -> bytes:
    """The text of `manifest.json` when the entries are in parts."""
    _, folder = split_s3(run.output)
    parts = []
    for begin, end in pairwise([ManifestBound(), *run.manifest_bounds]):
        key = split_s3(manifest_part_uri(run.output, run.retries, begin, end))[1]
        parts.append({"key": key.removeprefix(folder), "from": begin.task, "to": end.task})
    return (json.dumps({**_head(run), "parts": parts}) + "\n").encode()


def _head(run: Run) -> dict[str, Any]:
    head = {"runId": run.id, "output": run.output, "retries": run.retries, "tasks": task_counts(run)}
    if len(run.programs) > 1:
        head["programs"] = [{"version": at, "job": each.job} for at, each in enumerate(run.programs, 1)]
    return head


def task_counts(run: Run) -> dict[str, int]:
    counts = run.tasks.counts().tolist()
    named = {status.name.lower(): counts[status] for status in TaskStatus if status is not TaskStatus.VERIFYING}
    named["running"] += counts[TaskStatus.VERIFYING]
    return {"total": run.task_count, **named}


def _rows(run: Run, tasks: range) -> Iterator[tuple[Any, ...]]:
    """The columns that an entry needs, task by task. Reading numpy scalars one by one would be ten times slower."""
    part = _rows_of(run, tasks.start, tasks.stop)
    return zip(run.tasks.statuses(part).tolist(), *(run.tasks[name][part].tolist() for name in _COLUMNS), strict=True)


def _rows_of(run: Run, first: int, end: int) -> slice:
    """The rows of tasks `first` to `end`. Of a gang, that of rank 0, whose result is the gang's."""
    return slice(first * run.gang_size, end * run.gang_size, run.gang_size)


def _entry(
    run: Run, index: int, row: tuple[Any, ...], instances: Mapping[str, Instance], objects: Sequence[StoredObject]
) -> dict[str, Any]:
    status, committed, seconds, instance_id, gpu_mask, program = row
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
    if len(run.programs) > 1 and committed:
        entry["program"] = program + 1
    span = task_range(run.spec, index)
    return entry | ({"range": f"{span[0]}:{span[1]}"} if span else {})


def _remembered(entry: dict[str, Any], before: Entry) -> dict[str, Any]:
    """The entry, with the earlier manifest's data about an instance that has since been forgotten."""
    same = ("index", "attempt", "instance")
    if entry["instanceType"] or not before.get("instanceType") or any(entry[name] != before.get(name) for name in same):
        return entry
    return {**entry, "instanceType": before["instanceType"], "gpuIds": before.get("gpuIds", [])}


def _gpu_ids(mask: int, instance: Instance | None) -> list[str]:
    return [gpu for bit, gpu in enumerate(instance.gpu_ids if instance else ()) if mask >> bit & 1]


def earlier_entries(s3: Any, run: Run, part: ManifestPart) -> dict[int, Entry]:
    """The entries of a part's tasks in the manifest that a reopened run left; unreadable ones are left out.

    Instances are forgotten an hour after they ended: for a task that succeeded before, only the earlier manifest has
    the type and the GPUs that it ran on. Raises AWS_ERRORS.
    """
    if not run.retries:
        return {}
    found: dict[int, Entry] = {}
    bucket, folder = split_s3(run.output)
    lines = _lines(s3, bucket, split_s3(manifest_uri(run.output))[1])
    for key in _keys_of_parts(_parsed(next(lines, b"")), part):
        found |= _within(part, _lines(s3, bucket, folder + key))
    return found or _within(part, lines)


def _keys_of_parts(head: Entry, part: ManifestPart) -> list[str]:
    """The parts of an earlier manifest that have tasks of `part`; for a task that is continued, the last one. None if
    it is not in parts, or damaged."""
    first, end = part.tasks.start, part.tasks.stop
    try:
        return [str(each["key"]) for each in head["parts"] if each["from"] < end and each["to"] > first]
    except (KeyError, TypeError):
        return []


def _within(part: ManifestPart, lines: Iterable[bytes]) -> dict[int, Entry]:
    entries = (_parsed(line) for line in lines)
    return {index: entry for entry in entries if (index := entry.get("index", -1)) in part.tasks}


def _lines(s3: Any, bucket: str, key: str) -> Iterator[bytes]:
    """The bytes of an object, empty if there is none: the run ended before it could be closed. Raises AWS_ERRORS."""
    try:
        body = s3.get_object(Bucket=bucket, Key=key)["Body"]
    except AWS_ERRORS as error:
        if classify(error).kind is FailureKind.NOT_FOUND:
            return
        raise
    yield from body.iter_lines() if hasattr(body, "iter_lines") else body


def _parsed(line: bytes) -> Entry:
    """The entry of a line; empty for a damaged line, and for the first and last of a manifest with entries in
    itself."""
    try:
        entry = json.loads(line.strip().removesuffix(b","))
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
