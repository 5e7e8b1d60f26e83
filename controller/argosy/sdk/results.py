"""The results of a run, task by task and row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from argosy import layout
from argosy.client.access import Access
from argosy.client.errors import ArgosyError, InvalidInput
from argosy.client.progress import TERMINAL
from argosy.client.results.files import by_task, download, result_files
from argosy.client.results.manifest import NoManifest, open_manifest
from argosy.client.results.merge import MergeResult, Part, parts_of_run, write_rows
from argosy.model.wording import first_of
from argosy.sdk.errors import MissingPackage, explained

MISSING_NAMED = 5


@dataclass(frozen=True)
class TaskResult:
    """The results of one task. index: of the task. status: SUCCEEDED, FAILED or CANCELLED. keys: of its objects in S3,
    in
    `bucket`; empty if it left none.
    """

    index: int
    status: str
    bucket: str
    keys: tuple[str, ...]
    access: Access

    def read(self, key: str | None = None) -> bytes:
        """One of its objects, whole. key: one of `keys`; may be left out if the task has one object. Raises
        ArgosyError.
        """
        chosen = self._only() if key is None else key
        if chosen not in self.keys:
            raise InvalidInput(f"Task {self.index} has no result object {chosen!r}.")
        with explained():
            body: bytes = self.access.client("s3").get_object(Bucket=self.bucket, Key=chosen)["Body"].read()
        return body

    def _only(self) -> str:
        if len(self.keys) == 1:
            return self.keys[0]
        if not self.keys:
            raise InvalidInput(f"Task {self.index} is {self.status} and has no results to read.")
        raise InvalidInput(f"Task {self.index} has left {len(self.keys)} objects: name one of its keys.")


def results_of(access: Access, view: Mapping[str, Any]) -> Iterator[TaskResult]:
    """One for each task, in their order, read as a stream. Raises ArgosyError for a run that has not ended."""
    _check_ended(view)
    bucket, prefix = layout.split_s3(str(view["output"]))
    with explained():
        manifest = open_manifest(access.client("s3"), str(view["output"]))
    if manifest is None:
        raise NoManifest(view)
    for entry in manifest.entries():
        keys = tuple(key if key.startswith(prefix) else prefix + key for key in entry.get("keys") or ())
        yield TaskResult(int(entry["index"]), str(entry["status"]), bucket, keys, access)


def copied_results(access: Access, view: Mapping[str, Any], folder: Path, is_flat: bool, partial: bool) -> list[Path]:
    """The files in `folder`, which are there afterwards. Raises ArgosyError for a run that has not ended."""
    if not partial:
        _check_ended(view)
    with explained():
        s3 = access.client("s3")
        files, _ = result_files(s3, view, partial)
        return [folder / each.path for each in download(s3, by_task(files, is_flat), folder).files]


def rows_of_run(access: Access, view: Mapping[str, Any], partial: bool) -> Iterator[Any]:
    """All rows, in the order of the tasks; each is the value of its line of JSON.

    They are copied into a temporary file first, so that no row is returned if something is missing. partial: return the
    existing ones. Raises ArgosyError.
    """
    if not partial:
        _check_ended(view)
    merged = MergeResult()
    with TemporaryFile() as spool:
        with explained():
            s3 = access.client("s3")
            parts: Iterator[Part] = parts_of_run(s3, view, partial, merged)
            write_rows(s3, parts, "jsonl", spool, merged)
        if merged.missing_count and not partial:
            raise _incomplete(view, merged)
        spool.seek(0)
        for line in spool:
            yield json.loads(line)


def frame_of(rows: Iterator[Any]) -> Any:
    """A pandas DataFrame; rows that are not mappings become its one column `value`. Raises MissingPackage."""
    try:
        import pandas
    except ImportError as fault:
        raise MissingPackage("A data frame", "pandas", "frame") from fault
    return pandas.DataFrame([row if isinstance(row, dict) else {"value": row} for row in rows])


def _check_ended(view: Mapping[str, Any]) -> None:
    if view["status"] not in TERMINAL:
        sentence = f"{view['runId']} is still {view['status']}: its results are not complete."
        raise ArgosyError(sentence, next_step="wait for it with run.wait()", is_users_fault=True)


def _incomplete(view: Mapping[str, Any], merged: MergeResult) -> ArgosyError:
    lines = [f"task {index}: {why}" for index, why in merged.missing]
    named = first_of(lines, MISSING_NAMED, merged.missing_count)
    sentence = f"{view['runId']} lacks results of {merged.missing_count:,} of {view['tasks']['total']:,} tasks"
    return ArgosyError(f"{sentence} ({'; '.join(named)}).", next_step="partial=True takes the results so far")
