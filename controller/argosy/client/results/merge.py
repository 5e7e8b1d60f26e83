"""A run's parts merged into one file, in the order of the tasks, each part once, with missing ones counted.

The manifest says which objects count, so rows of an attempt that was replaced never get in. A part whose size differs
from the manifest, or whose rows differ from its program's count, counts as missing. Parts are copied to temporary
files, several ahead of the one that is being written. The suffix of a part's name gives its format: JSON lines, CSV
with a heading, or one document. A row is one line of JSON; rows of JSON lines stay as the program wrote them.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any, BinaryIO, TypeVar

from argosy import layout
from argosy.client.errors import ArgosyError, error_code
from argosy.client.progress import TERMINAL
from argosy.client.results.manifest import NoManifest, lines_of, open_manifest


class UnreadableRows(ValueError):
    """The part cannot be read as rows; the message says where: `line 3 is not JSON: ...`."""


def rows_of(key: str, body: BinaryIO) -> Iterator[bytes]:
    """Each row as one line without its end. Raises UnreadableRows."""
    ending = PurePosixPath(key).suffix.lower()
    if ending == ".csv":
        yield from _csv_rows(body)
    elif ending == ".json":
        yield _compact(_value(body.read(), "the document"))
    else:
        yield from _json_lines(body)


def row_counts(key: str, body: BinaryIO) -> Iterator[int]:
    """1 for each row. Cheaper than reading them: JSON lines are not parsed. Raises UnreadableRows."""
    lines = PurePosixPath(key).suffix.lower() not in (".csv", ".json")
    rows: Iterator[Any] = _lines(body) if lines else rows_of(key, body)
    yield from (1 for _ in rows)


def _json_lines(body: BinaryIO) -> Iterator[bytes]:
    for number, text in _lines(body):
        _value(text, f"line {number}")
        yield text


def _lines(body: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """(number, text) of each that is not blank, without a byte order mark."""
    for number, line in enumerate(lines_of(body), 1):
        if text := (line.removeprefix(BOM_UTF8) if number == 1 else line).strip():
            yield number, text


def _value(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as fault:
        raise UnreadableRows(f"{where} is not JSON: {fault}") from fault


def _csv_rows(body: BinaryIO) -> Iterator[bytes]:
    try:
        with io.TextIOWrapper(body, encoding="utf-8-sig", newline="") as text:
            for row in csv.DictReader(text, strict=True):
                if None in row or None in row.values():
                    raise UnreadableRows("a row has more or fewer values than the heading has names")
                yield _compact(row)
    except (csv.Error, UnicodeDecodeError) as fault:
        raise UnreadableRows(f"it is not CSV: {fault}") from fault


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


PARTS_AHEAD = 16  # copied at a time
MISSING_KEPT = 1_000  # the rest is counted
NOT_YET = "not available yet"

T = TypeVar("T")


class UnreadablePart(ArgosyError):
    """A part holds something other than rows."""

    def __init__(self, part: Part, key: str, why: str) -> None:
        super().__init__(f"The part of task {part.index} cannot be merged: {why}.", details=[key])
        self.index, self.why = part.index, why


@dataclass(frozen=True)
class Part:
    """A task's objects. size: their bytes together, according to the manifest; None if unknown."""

    index: int
    bucket: str
    keys: tuple[str, ...]
    size: int | None = None


@dataclass(frozen=True)
class PartCopy:
    """One of a part's objects on this disk. rows: according to its metadata; None if its program has not said."""

    key: str
    path: Path
    rows: int | None


@dataclass
class MergeResult:
    """The result of a merge. missing: (task, why) of the first tasks without a result; missing_count: of all.
    skips_bad: a part
    that holds anything but rows counts as missing, and none of it is merged.
    """

    skips_bad: bool = False
    rows: int = 0
    parts: int = 0
    missing_count: int = 0
    missing: list[tuple[int, str]] = field(default_factory=list)

    def lacks(self, index: int, why: str) -> None:
        self.missing_count += 1
        if len(self.missing) < MISSING_KEPT:
            self.missing.append((index, why))


def pieces_of(view: Mapping[str, Any]) -> int:
    """How many results the run has: one for each task, or for each gang."""
    return int(view["tasks"]["total"]) // int(view.get("gangSize") or 1)


def parts_of_run(s3: Any, view: Mapping[str, Any], partial: bool, merged: MergeResult) -> Iterator[Part]:
    """The parts that the manifest names or, with `partial` and no manifest, the existing ones; notes missing ones.

    A run that was reopened by a retry still has the manifest of its earlier end, which no longer counts. Raises
    NoManifest, and ArgosyError for a manifest that is not this run's.
    """
    output, total = str(view["output"]), pieces_of(view)
    bucket, prefix = layout.split_s3(output)
    manifest = open_manifest(s3, output) if view["status"] in TERMINAL else None
    if manifest is None and not partial:
        raise NoManifest(view)
    if manifest is None:
        yield from _parts_there_are(s3, bucket, prefix, total, merged)
        return
    seen = 0
    for entry in manifest.entries():
        seen += 1
        yield from _part_of(entry, bucket, prefix, merged)
    if seen != total:
        raise ArgosyError(f"The manifest names {seen} tasks, the run has {total}.")


def _part_of(entry: Mapping[str, Any], bucket: str, prefix: str, merged: MergeResult) -> Iterator[Part]:
    """The part that an entry names, if any. If a task wrote its part and further files, only the part counts."""
    keys = [key if key.startswith(prefix) else prefix + key for key in entry.get("keys") or ()]
    final = [key for key in keys if key.startswith(f"{prefix}parts/")]
    chosen = tuple(final or keys)
    if entry["status"] != "SUCCEEDED" or not chosen:
        merged.lacks(entry["index"], entry["status"] if entry["status"] != "SUCCEEDED" else "it left no result")
        return
    yield Part(entry["index"], bucket, chosen, entry.get("bytes") if len(chosen) == len(keys) else None)


def _parts_there_are(s3: Any, bucket: str, prefix: str, total: int, merged: MergeResult) -> Iterator[Part]:
    """Finished parts only. S3 lists them by name, and their names sort like their indexes."""
    due = 0
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}parts/"):
        for each in page.get("Contents", ()):
            index = layout.part_index(each["Key"].removeprefix(prefix))
            if index is None or index < due:
                continue
            for missing in range(due, index):
                merged.lacks(missing, NOT_YET)
            due = index + 1
            yield Part(index, bucket, (each["Key"],), int(each["Size"]))
    for missing in range(due, total):
        merged.lacks(missing, NOT_YET)


def write_rows(s3: Any, parts: Iterable[Part], form: str, file: IO[bytes], merged: MergeResult) -> None:
    """All rows of `parts` into `file` as `jsonl` or `csv`; counts in `merged`. Raises UnreadablePart."""
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


def _rows(s3: Any, parts: Iterable[Part], merged: MergeResult) -> Iterator[bytes]:
    with TemporaryDirectory(prefix="argosy-merge-") as folder, ThreadPoolExecutor(PARTS_AHEAD) as pool:
        for part, copies in _in_order(pool, parts, lambda each: _fetched(s3, each, Path(folder))):
            lacking = copies if isinstance(copies, str) else _lacking(part, copies, merged)
            if lacking:
                merged.lacks(part.index, lacking)
            else:
                merged.parts += 1
                for row in _read_all(part, copies):
                    merged.rows += 1
                    yield row
            for copy in [] if isinstance(copies, str) else copies:
                copy.path.unlink()


def _lacking(part: Part, copies: Iterable[PartCopy], merged: MergeResult) -> str:
    """Why the part counts as missing; empty if it does not. If bad parts are skipped it is read twice, so that no row
    of a bad
    one gets into the file.
    """
    try:
        if lacking := _miscounted(part, copies):
            return lacking
        for _ in _read_all(part, copies) if merged.skips_bad else ():
            pass
    except UnreadablePart as fault:
        if not merged.skips_bad:
            raise
        return f"it holds something else: {fault.why}"
    return ""


def _read_all(part: Part, copies: Iterable[PartCopy]) -> Iterator[bytes]:
    for copy in copies:
        yield from _read(part, copy, rows_of)


def _miscounted(part: Part, copies: Iterable[PartCopy]) -> str:
    """The object that lacks rows of its program; empty if all rows are there, or if no program has counted them."""
    for copy in copies:
        if copy.rows is not None:
            found = sum(_read(part, copy, row_counts))
            if found != copy.rows:
                return f"it has {found:,} row{'' if found == 1 else 's'}, its metadata says {copy.rows:,}"
    return ""


def _in_order(
    pool: ThreadPoolExecutor, parts: Iterable[Part], fetch: Callable[[Part], Any]
) -> Iterator[tuple[Part, Any]]:
    """(part, what `fetch` gave) in the order of `parts`, at most PARTS_AHEAD fetched and not yet taken."""
    waiting: deque[tuple[Part, Future[Any]]] = deque()
    for part in parts:
        waiting.append((part, pool.submit(fetch, part)))
        if len(waiting) >= PARTS_AHEAD:
            first, fetched = waiting.popleft()
            yield first, fetched.result()
    for part, fetched in waiting:
        yield part, fetched.result()


def _fetched(s3: Any, part: Part, folder: Path) -> list[PartCopy] | str:
    """Copies of the part's objects, or why it counts as missing."""
    copies: list[PartCopy] = []
    size = 0
    for number, key in enumerate(part.keys):
        try:
            answer = s3.get_object(Bucket=part.bucket, Key=key)
        except Exception as fault:
            if error_code(fault) in ("NoSuchKey", "404"):
                return f"{key} is gone"
            raise
        said = answer.get("Metadata", {}).get(layout.ROWS_METADATA, "")
        copies.append(PartCopy(key, folder / f"{part.index}-{number}", int(said) if said.isdecimal() else None))
        with copies[-1].path.open("wb") as file:
            shutil.copyfileobj(answer["Body"], file)
            size += file.tell()
    if part.size is not None and size != part.size:
        return f"it has {size} bytes now, {part.size} when the run ended"
    return copies


def _read(part: Part, copy: PartCopy, read: Callable[[str, BinaryIO], Iterator[T]]) -> Iterator[T]:
    try:
        with copy.path.open("rb") as file:
            yield from read(copy.key, file)
    except UnreadableRows as fault:
        raise UnreadablePart(part, copy.key, str(fault)) from fault


def _fields(row: bytes) -> dict[str, Any]:
    """The columns of a row; anything but a JSON object becomes the one column `value`."""
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
    """Text unchanged, nothing for null, everything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
