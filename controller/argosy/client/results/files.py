"""The files of a run, copied to this machine. The manifest names them: lost attempts do not count."""

from __future__ import annotations

import os
import re
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from argosy import layout
from argosy.client.errors import ArgosyError
from argosy.client.progress import TERMINAL
from argosy.client.results.manifest import NoManifest, open_manifest

PARALLEL_GETS = 16
CHUNK_BYTES = 1 << 20
SECOND_NS = 10**9
_OF_ATTEMPT = re.compile(r"attempts/(\d+)/\d+/(.+)", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class ResultFile:
    """An object of the run. path: below the run's folder, and later below the download folder. version: differs when
    other bytes are stored under the same key."""

    bucket: str
    key: str
    path: str
    size: int  # bytes; 0 if unknown
    version: str = ""

    @property
    def mark_ns(self) -> int:
        """The part below a second of its copy's time of change, by which a later download knows the copy."""
        return zlib.crc32(f"{self.bucket}/{self.key}@{self.version}".encode("utf-8", "replace")) % SECOND_NS


@dataclass(frozen=True)
class DownloadCounts:
    """copied: the number of files fetched now; size: their bytes. The other files were there already."""

    files: Sequence[ResultFile]
    copied: int
    size: int


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
            size = int(entry.get("bytes") or 0) if len(keys) == 1 else 0
            yield _file(bucket, prefix, full, size, f"attempt {entry.get('attempt')}")


def _listed(s3: Any, bucket: str, prefix: str) -> Iterator[ResultFile]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}parts/"):
        for each in page.get("Contents", ()):
            yield _file(bucket, prefix, each["Key"], int(each["Size"]), str(each.get("ETag")))


def _file(bucket: str, prefix: str, key: str, size: int, version: str) -> ResultFile:
    """Raises ArgosyError for a key that would leave the download folder: tasks choose the names below their prefix."""
    path = PurePosixPath(key.removeprefix(prefix))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ArgosyError(f"The key {key!r} is outside the run's folder: nothing was copied.")
    return ResultFile(bucket, key, str(path), size, version)


def by_task(files: Iterable[ResultFile], is_flat: bool) -> list[ResultFile]:
    """The same files in a folder for each task, `000123/NAME`, or all in one folder: `000123-NAME`, with %2F for a
    slash of the name. A task's only object is `part` with its suffix.

    No two have the same path: a second one keeps its name in S3.
    """
    laid: dict[str, ResultFile] = {}
    for each in files:
        path = _path_by_task(each.path, is_flat)
        path = path if path not in laid else _in_one_folder(each.path) if is_flat else each.path
        laid[path] = replace(each, path=path)
    return list(laid.values())


def _path_by_task(path: str, is_flat: bool) -> str:
    index, found = layout.part_index(path), _OF_ATTEMPT.fullmatch(path)
    if index is not None:
        name = "part" + path.removeprefix(layout.part_uri("", index, ""))
    elif found:
        index, name = int(found[1]), found[2]
    else:
        return _in_one_folder(path) if is_flat else path
    return f"{index:06d}-{_in_one_folder(name)}" if is_flat else f"{index:06d}/{name}"


def _in_one_folder(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def download(s3: Any, files: Sequence[ResultFile], folder: Path) -> DownloadCounts:
    """Copies the files that an earlier download did not, several at a time, each one complete or not at all."""
    from concurrent.futures import ThreadPoolExecutor

    folder.mkdir(parents=True, exist_ok=True)
    missing = [each for each in files if not _is_there(each, folder)]
    with ThreadPoolExecutor(PARALLEL_GETS) as pool:
        size = sum(pool.map(lambda each: _get(s3, each, folder), missing))
    return DownloadCounts(files, len(missing), size)


def _is_there(file: ResultFile, folder: Path) -> bool:
    try:
        seen = os.stat(folder / file.path)
    except (OSError, ValueError):  # it is absent, or no name of a file
        return False
    return file.size in (0, seen.st_size) and seen.st_mtime_ns % SECOND_NS == file.mark_ns


def _get(s3: Any, file: ResultFile, folder: Path) -> int:
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    body, count = s3.get_object(Bucket=file.bucket, Key=file.key)["Body"], 0
    with whole_file(target) as copy:
        while chunk := body.read(CHUNK_BYTES):
            count += copy.write(chunk)
        copy.flush()
        second_ns = os.fstat(copy.fileno()).st_mtime_ns // SECOND_NS * SECOND_NS
        os.utime(copy.fileno(), ns=(second_ns, second_ns + file.mark_ns))
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
