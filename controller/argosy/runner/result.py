"""The result of a program, and its upload."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from argosy.layout import ATTEMPT_METADATA
from argosy.model.exit_codes import NO_RESULT, WRONG_REQUEST
from argosy.runner.job import Job
from argosy.runner.objects import Objects
from argosy.runner.order import RunnerFault, RunnerOrder, printable

NO_FILE = (
    "the program succeeded but wrote no file into $ARGOSY_OUT;"
    " use `result: stdout` if it prints its result, or `result: none` if it has none"
)
UPLOADS = 4  # files at once; each holds one part of a large file in memory
_PART = re.compile(r"part-\d+(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of the result's folder; name relative to it, size in bytes."""

    path: Path
    name: str
    size: int


def left_in(folder: Path, job: Job, tell: Callable[[str], None]) -> list[FolderFile]:
    """All files, by name; tell gets a line for each link that leads nowhere. Raises RunnerFault for files that cannot
    be a result, and beyond the job's bounds."""
    found: list[FolderFile] = []
    total = 0
    for each in _files(folder, tell):
        found.append(each)
        total += each.size
        if len(found) > job.most_files:
            raise RunnerFault(WRONG_REQUEST, f"the result has more than {job.most_files:,} files; pack them into fewer")
        if total > job.most_bytes:
            raise RunnerFault(WRONG_REQUEST, f"the result has more than {job.most_bytes:,} bytes, the limit for a task")
    if not found:
        raise RunnerFault(NO_RESULT, NO_FILE)
    return sorted(found, key=lambda each: each.name)


def upload_folder(found: Sequence[FolderFile], order: RunnerOrder, objects: Objects) -> None:
    """The part, which `results --merge` reads, comes last: once it exists, everything does. Raises RunnerFault."""
    part = part_of(found, order)
    rest = [each for each in found if each is not part]
    output = order.output
    if rest and output is None:
        raise RunnerFault(WRONG_REQUEST, "ARGOSY_OUTPUT_URI does not say where the result's files belong")
    with ThreadPoolExecutor(UPLOADS, "argosy-upload") as pool:
        list(pool.map(lambda each: objects.upload(each.path, f"{output}{each.name}"), rest))
    if part is not None:
        upload_part(part.path, order, objects)


def part_of(found: Sequence[FolderFile], order: RunnerOrder) -> FolderFile | None:
    """The file `part` with the part's own suffix, or the only file if its name ends in that."""
    named = _PART.fullmatch((order.part or "").rpartition("/")[2])
    if named is None:
        return None
    suffix = named[1]
    exact = next((each for each in found if each.name == f"part{suffix}"), None)
    if exact is None and len(found) == 1 and suffix and found[0].name.endswith(suffix):
        return found[0]
    return exact


def upload_part(path: Path, order: RunnerOrder, objects: Objects) -> None:
    """The task's final object. One from an earlier attempt stays: it is equally valid, unless another version of the
    program wrote it. Raises RunnerFault."""
    if order.part is None:
        raise RunnerFault(WRONG_REQUEST, "ARGOSY_PART_URI does not say where the result belongs")
    metadata = {ATTEMPT_METADATA: order.attempt} if order.attempt else {}
    objects.upload_once(path, order.part, metadata, lambda there: _is_older(there, order))


def _is_older(there: Mapping[str, str], order: RunnerOrder) -> bool:
    """Whether a part with this metadata is of an attempt before those that count."""
    attempt = there.get(ATTEMPT_METADATA, "")
    return attempt.isdecimal() and int(attempt) < order.first_attempt


def _files(folder: Path, tell: Callable[[str], None]) -> Iterator[FolderFile]:
    waiting = [folder]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            elif entry.is_symlink() and _is_gone(entry.path):
                name = printable(os.path.relpath(entry.path, folder))
                tell(f"argosy: {name} in $ARGOSY_OUT is a link that leads nowhere: left out of the result")
            else:
                yield _file(entry, folder)


def _is_gone(path: str) -> bool:
    """Whether a link leads nowhere."""
    try:
        os.stat(path)
    except OSError as fault:
        return fault.errno == errno.ENOENT
    return False


def _file(entry: os.DirEntry[str], folder: Path) -> FolderFile:
    name = os.path.relpath(entry.path, folder)
    try:
        name.encode()
        about = entry.stat()
    except UnicodeEncodeError as fault:
        raise RunnerFault(WRONG_REQUEST, f"the result has a file whose name is not UTF-8: {name}") from fault
    except OSError as fault:
        raise RunnerFault(WRONG_REQUEST, f"the result's file {name} cannot be read: {fault.strerror}") from fault
    if not stat.S_ISREG(about.st_mode):
        raise RunnerFault(WRONG_REQUEST, f"the result has an entry that is not a file: {name}")
    return FolderFile(Path(entry.path), name, about.st_size)
