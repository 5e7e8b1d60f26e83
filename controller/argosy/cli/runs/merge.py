"""How do a run's parts become one file? In the order of their index, each once, and only if none is missing.

What counts is what the manifest names, so a file of an attempt that lost can never be among the rows. A part that has
other bytes than the manifest says, or other rows than its program did, is a missing one. Parts pass through temporary
files, several of them ahead; the file appears under its name when it is complete.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any, BinaryIO, TypeVar

from argosy.cli import figures
from argosy.cli.problems import RUN_FAILED, CliError
from argosy.cli.runs.part_rows import NotRows, row_counts, rows_of
from argosy.cli.runs.whole_files import whole
from argosy.client.errors import error_code
from argosy.layout import ROWS_METADATA

AHEAD = 16  # parts on their way at a time
MISSING_KEPT = 1_000  # the rest is counted

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """A task's objects. size: their bytes together, as the manifest has it; None when nobody has said."""

    index: int
    bucket: str
    keys: tuple[str, ...]
    size: int | None = None


@dataclass(frozen=True)
class Copy:
    """One of a part's objects on this disk. rows: as its metadata has it; None when nobody has said."""

    key: str
    path: Path
    rows: int | None


@dataclass
class Merged:
    """What became of it. missing: (task, why) of the first ones without a result; missing_count: all."""

    rows: int = 0
    parts: int = 0
    missing_count: int = 0
    missing: list[tuple[int, str]] = field(default_factory=list)

    def lacks(self, index: int, why: str) -> None:
        self.missing_count += 1
        if len(self.missing) < MISSING_KEPT:
            self.missing.append((index, why))


def planned(entries: Iterable[dict[str, Any]], bucket: str, prefix: str, merged: Merged) -> Iterator[Part]:
    """The parts that the manifest's entries name; tasks without one are noted in `merged`.

    A task that wrote its part and further files beside it is asked for its part only.
    """
    for entry in entries:
        keys = [key if key.startswith(prefix) else prefix + key for key in entry.get("keys") or ()]
        final = [key for key in keys if key.startswith(f"{prefix}parts/")]
        chosen = tuple(final or keys)
        if entry["status"] != "SUCCEEDED" or not chosen:
            merged.lacks(entry["index"], entry["status"] if entry["status"] != "SUCCEEDED" else "it left no result")
            continue
        yield Part(entry["index"], bucket, chosen, entry.get("bytes") if len(chosen) == len(keys) else None)


def write_rows(s3: Any, parts: Iterable[Part], form: str, file: IO[bytes], merged: Merged) -> None:
    """All rows of `parts` into `file` as `jsonl` or `csv`; counts in `merged`. Raises CliError for what is no row."""
    if form == "jsonl":
        for row in _rows(s3, parts, merged):
            file.write(row + b"\n")
        return
    with TemporaryFile() as spool:
        columns: dict[str, None] = {}  # in the order in which they first appear
        for row in _rows(s3, parts, merged):
            columns.update(dict.fromkeys(_fields(row)))
            spool.write(row + b"\n")
        spool.seek(0)
        _write_csv(spool, list(columns), file)


def deliver(target: str, write: Callable[[IO[bytes]], None]) -> int:
    """Call `write` with a file that becomes `target` if nothing is raised ("-": standard output); its bytes."""
    if target == "-":
        with TemporaryFile() as spool:
            write(spool)
            size = spool.tell()
            spool.seek(0)
            shutil.copyfileobj(spool, sys.stdout.buffer)
            return size
    try:
        with whole(Path(target)) as file:
            write(file)
            return file.tell()
    except OSError as fault:
        raise CliError(f"{target} cannot be written: {fault.strerror or fault}.") from fault


def _rows(s3: Any, parts: Iterable[Part], merged: Merged) -> Iterator[bytes]:
    with TemporaryDirectory(prefix="argosy-merge-") as folder, ThreadPoolExecutor(AHEAD) as pool:
        for part, copies in _in_order(pool, parts, lambda each: _fetched(s3, each, Path(folder))):
            lacking = copies if isinstance(copies, str) else _miscounted(part, copies)
            if lacking:
                merged.lacks(part.index, lacking)
            else:
                merged.parts += 1
                for row in _read_all(part, copies):
                    merged.rows += 1
                    yield row
            for copy in [] if isinstance(copies, str) else copies:
                copy.path.unlink()


def _read_all(part: Part, copies: Iterable[Copy]) -> Iterator[bytes]:
    for copy in copies:
        yield from _read(part, copy, rows_of)


def _miscounted(part: Part, copies: Iterable[Copy]) -> str:
    """Which object has not the rows that its program wrote; empty for none, and where no program has said."""
    for copy in copies:
        if copy.rows is not None:
            found = sum(_read(part, copy, row_counts))
            if found != copy.rows:
                return f"it has {figures.counted(found, 'row')}, its metadata says {copy.rows:,}"
    return ""


def _in_order(
    pool: ThreadPoolExecutor, parts: Iterable[Part], fetch: Callable[[Part], Any]
) -> Iterator[tuple[Part, Any]]:
    """(part, what `fetch` gave) in the order of `parts`, at most AHEAD fetched and not yet taken."""
    waiting: deque[tuple[Part, Future[Any]]] = deque()
    for part in parts:
        waiting.append((part, pool.submit(fetch, part)))
        if len(waiting) >= AHEAD:
            first, fetched = waiting.popleft()
            yield first, fetched.result()
    for part, fetched in waiting:
        yield part, fetched.result()


def _fetched(s3: Any, part: Part, folder: Path) -> list[Copy] | str:
    """Copies of the part's objects, or why it does not count as there."""
    copies: list[Copy] = []
    size = 0
    for number, key in enumerate(part.keys):
        try:
            answer = s3.get_object(Bucket=part.bucket, Key=key)
        except Exception as fault:
            if error_code(fault) in ("NoSuchKey", "404"):
                return f"{key} is gone"
            raise
        said = answer.get("Metadata", {}).get(ROWS_METADATA, "")
        copies.append(Copy(key, folder / f"{part.index}-{number}", int(said) if said.isdecimal() else None))
        with copies[-1].path.open("wb") as file:
            shutil.copyfileobj(answer["Body"], file)
            size += file.tell()
    if part.size is not None and size != part.size:
        return f"it has {size} bytes now, {part.size} when the run ended"
    return copies


def _read(part: Part, copy: Copy, read: Callable[[str, BinaryIO], Iterator[T]]) -> Iterator[T]:
    try:
        with copy.path.open("rb") as file:
            yield from read(copy.key, file)
    except NotRows as fault:
        raise CliError(
            f"The part of task {part.index} cannot be merged: {fault}.",
            next_step="see which files there are with `argosy results RUN --download DIR`",
            exit_code=RUN_FAILED,
            details=[copy.key],
        ) from fault


def _fields(row: bytes) -> dict[str, Any]:
    """The columns of a row; what is no JSON object becomes the one column `value`."""
    value = json.loads(row)
    return value if isinstance(value, dict) else {"value": value}


def _write_csv(spool: IO[bytes], columns: list[str], file: IO[bytes]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    if columns:
        writer.writeheader()
    for row in spool:
        writer.writerow({name: _cell(value) for name, value in _fields(row).items()})
    text.detach()


def _cell(value: Any) -> str:
    """Text as it is, nothing for null, everything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
