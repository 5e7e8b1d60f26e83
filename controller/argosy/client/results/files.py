"""The files of a run, copied to this machine. The manifest names them: lost attempts do not count."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from argosy import layout
from argosy.client.errors import ArgosyError
from argosy.client.progress import TERMINAL
from argosy.client.results.manifest import NoManifest, open_manifest

PARALLEL_GETS = 16
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class ResultFile:
    """An object of the run. path: below the run's folder, and later below the download folder."""

    bucket: str
    key: str
    path: str
    size: int  # bytes; 0 if unknown


def result_files(s3: Any, view: Mapping[str, Any], partial: bool) -> tuple[list[ResultFile], dict[str, Any] | None]:
    """The files of the committed attempts, and the manifest. With `partial` and no manifest: the existing parts.

    A run that was reopened by a retry still has the manifest of its earlier try, which no longer counts. Raises
    NoManifest, and ArgosyError for a key outside the run's folder.
    """
    output = str(view["output"])
    bucket, prefix = layout.split_s3(output)
    if partial and view["status"] not in TERMINAL:
        return list(_listed(s3, bucket, prefix)), None
    manifest = open_manifest(s3, output)
    if manifest is not None:
        whole = {**manifest.head, "entries": list(manifest.entries())}
        return list(_committed(whole, bucket, prefix)), whole
    if not partial:
        raise NoManifest(view)
    return list(_listed(s3, bucket, prefix)), None


def _committed(manifest: Mapping[str, Any], bucket: str, prefix: str) -> Iterator[ResultFile]:
    for entry in manifest["entries"]:
        keys = entry.get("keys") or ()
        for key in keys:
            full = key if key.startswith(prefix) else prefix + key
            yield _file(bucket, prefix, full, int(entry.get("bytes") or 0) if len(keys) == 1 else 0)


def _listed(s3: Any, bucket: str, prefix: str) -> Iterator[ResultFile]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}parts/"):
        for each in page.get("Contents", ()):
            yield _file(bucket, prefix, each["Key"], int(each["Size"]))


def _file(bucket: str, prefix: str, key: str, size: int) -> ResultFile:
    """Raises ArgosyError for a key that would leave the download folder: tasks choose the names below their prefix."""
    path = PurePosixPath(key.removeprefix(prefix))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ArgosyError(f"The key {key!r} is outside the run's folder: nothing was copied.")
    return ResultFile(bucket, key, str(path), size)


def download(s3: Any, files: Sequence[ResultFile], folder: Path) -> int:
    """Copies all files, several at a time, each one complete or not at all; returns the bytes."""
    from concurrent.futures import ThreadPoolExecutor

    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(PARALLEL_GETS) as pool:
        return sum(pool.map(lambda each: _get(s3, each, folder), files))


def _get(s3: Any, file: ResultFile, folder: Path) -> int:
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    body, count = s3.get_object(Bucket=file.bucket, Key=file.key)["Body"], 0
    with whole_file(target) as copy:
        while chunk := body.read(CHUNK_BYTES):
            count += copy.write(chunk)
    return count


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that becomes `path` at the end, and is removed if anything is raised. Raises OSError.

    It has a private name until then, so that two programs may write the same file at once.
    Opened by name and not by tempfile, whose files are readable by their owner only.
    """
    unfinished = path.with_name(f".argosy-{secrets.token_hex(8)}.unfinished")
    with unfinished.open("xb") as file:
        try:
            yield file
            file.flush()
            os.replace(unfinished, path)
        except BaseException:
            unfinished.unlink()
            raise
