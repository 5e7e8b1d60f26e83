"""How is a task's checkpoint folder saved to S3 and restored while an earlier attempt may still be alive?

    .../<index>/<attempt>/files/<sha256>   content, only this attempt's own
    .../<index>/<attempt>/<number, 6 digits>.json   a record, written last: with it a checkpoint is complete

The newest record of the highest attempt wins. An attempt that is believed lost may continue to save: it writes and
removes below its own number, and removes what is below lower ones, never what is below higher ones. So whatever it
does, the records of its successor stay whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.runner.objects import CONNECTIONS, Objects
from argosy.runner.order import CheckpointOrder, RunnerFault

COMMIT = ".commit"  # the program creates it; it is removed once the folder is saved
KEPT = 2
UPLOADS = 4  # files at once
SETTLED_S = 2.0  # a file that changed later may be half written, and may change again without another time of change
_NAME = re.compile(r"(\d+)/(?:(\d+)\.json|files/[0-9a-f]{64})")
_PIECE_BYTES = 1024 * 1024


class CheckpointChanged(Exception):
    """A file of the folder changed while it was read."""


class SeenFile(NamedTuple):
    """A file as it was found; size in bytes."""

    size: int
    mtime_ns: int
    inode: int
    mode: int


class SavedFile(NamedTuple):
    """A file of a record."""

    name: str
    sha256: str
    size: int
    mtime_ns: int
    mode: int


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A complete checkpoint: which attempt saved it, and whether its program commits its states itself."""

    attempt: int
    number: int
    committed: bool
    files: tuple[SavedFile, ...]

    @property
    def digests(self) -> set[str]:
        return {each.sha256 for each in self.files}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.files)


Progress = dict[str, SeenFile]  # the files of a folder by their names


class Checkpoints:
    """The checkpoints of one task, for one attempt. folder: what the program sees; staging: a folder beside it.

    Methods raise RunnerFault, and OSError for faults of the disk.
    """

    def __init__(self, order: CheckpointOrder, folder: Path, staging: Path, objects: Objects) -> None:
        self._order, self._folder, self._staging, self._objects = order, folder, staging, objects
        self._own: list[CheckpointRecord] = []  # the latest ones, at most KEPT
        self._sent: set[str] = set()  # digests of this attempt's objects
        self._known: dict[tuple[str, SeenFile], str] = {}  # digests of files that have not changed
        self._last: Progress = {}  # the folder as it was last saved or restored
        self._number = 0
        self._renewed_at = time.time()
        self.committed = False  # the program commits: nothing else is a checkpoint

    def restore(self) -> CheckpointRecord | None:
        """Bring the newest complete checkpoint into the folder; None if there is none.

        If another attempt removes it while it is read, it has a successor, so the list is read again.
        """
        damaged: set[str] = set()
        while True:
            found = [each for each in self._listed() if each.number is not None and each.uri not in damaged]
            if not found:
                return None
            newest = max(found, key=lambda each: (each.attempt, each.number or 0))
            try:
                return self._taken(newest)
            except RunnerFault as fault:
                if fault.code != WRONG_REQUEST:
                    raise
            except (ValueError, TypeError, KeyError):
                pass  # a program wrote it
            damaged.add(newest.uri)
            self._empty(self._folder)

    def save(self, cause: str, *, is_settled: bool = True) -> CheckpointRecord | None:
        """Save the folder unless nothing changed. is_settled: no process writes now. Raises CheckpointChanged, too."""
        self._renew(time.time(), cause)
        seen = self._scan(self._folder)
        if not seen or (seen == self._last and (cause != "commit" or self.committed)):
            return None
        if not is_settled and time.time() - max(each.mtime_ns for each in seen.values()) / 1e9 < SETTLED_S:
            raise CheckpointChanged
        began = time.time()
        staged = self._staged(seen)
        sent: list[int] = []
        with ThreadPoolExecutor(UPLOADS, "argosy-checkpoint") as pool:
            files = tuple(pool.map(lambda name: self._saved(name, seen[name], staged.get(name), sent), sorted(seen)))
        self._number += 1
        self.committed = self.committed or cause == "commit"
        record = CheckpointRecord(self._order.attempt, self._number, self.committed, files)
        about = {"cause": cause, "at": began, "seconds": round(time.time() - began, 3), "sent": sum(sent)}
        self._objects.write(f"{self._prefix}{self._number:06d}.json", _text(record, about), "the checkpoint")
        self._own, self._last = [*self._own, record][-KEPT:], seen
        self._remove_old()
        return record

    def _renew(self, now: float, cause: str) -> None:
        """Once a day, forget what is saved, so that all of it is sent again: objects expire by their age. A stop leaves
        little time, so what is due then waits for a day."""
        if now - self._renewed_at >= self._order.renewed_s * (2 if cause == "stop" else 1):
            self._renewed_at, self._last, self._known, self._sent = now, {}, {}, set()

    def use(self, objects: Objects) -> None:
        """Use these objects for all requests from now on."""
        self._objects = objects

    def clear(self) -> None:
        """The task is done: no checkpoint of this attempt or of an earlier one is needed."""
        self._own = []
        self._remove(each for each in self._listed() if self._may_remove(each))

    @property
    def _prefix(self) -> str:
        return f"{self._order.uri}{self._order.attempt}/"

    def _listed(self) -> list[_CheckpointObject]:
        bucket = self._order.uri.split("/", 3)[2]
        keys = (f"s3://{bucket}/{each.key}" for each in self._objects.below(self._order.uri, "the checkpoints"))
        named = ((uri, _NAME.fullmatch(uri.removeprefix(self._order.uri))) for uri in keys)
        return [_CheckpointObject(uri, int(name[1]), int(name[2]) if name[2] else None) for uri, name in named if name]

    def _taken(self, stored: _CheckpointObject) -> CheckpointRecord:
        """Raises ValueError, TypeError or KeyError for an invalid record."""
        told = json.loads(self._objects.read(stored.uri, "the checkpoint"))
        files = tuple(_file_of(each) for each in told["files"])
        folder = f"{self._order.uri}{stored.attempt}/files/"
        with ThreadPoolExecutor(CONNECTIONS, "argosy-checkpoint") as pool:
            list(pool.map(lambda each: self._fetch(f"{folder}{each.sha256}", each), files))
        record = CheckpointRecord(stored.attempt, stored.number or 0, bool(told["committed"]), files)
        self.committed, self._last = record.committed, self._scan(self._folder)
        return record

    def _fetch(self, uri: str, file: SavedFile) -> None:
        path = self._folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._objects.download(uri, path, "the checkpoint")
        if _digest(path) != file.sha256:
            raise RunnerFault(WRONG_REQUEST, f"the checkpoint {uri} is damaged")
        path.chmod(file.mode)
        os.utime(path, ns=(file.mtime_ns, file.mtime_ns))

    def _scan(self, folder: Path) -> Progress:
        """All files, including those behind links. Raises CheckpointChanged if one disappears meanwhile."""
        found: Progress = {}
        try:
            for path in _paths(folder):
                name = os.path.relpath(path, folder)
                about = path.stat()
                if stat.S_ISREG(about.st_mode) and name != COMMIT and _is_text(name):
                    mode = stat.S_IMODE(about.st_mode)
                    found[name] = SeenFile(about.st_size, about.st_mtime_ns, about.st_ino, mode)
        except FileNotFoundError as fault:
            raise CheckpointChanged from fault
        return found

    def _staged(self, seen: Progress) -> dict[str, Path]:
        """Links to the files that changed, all made before any file changed again: a program that replaces a file does
        not disturb its upload."""
        self._empty(self._staging)
        links: dict[str, Path] = {}
        for number, name in enumerate(seen):
            if (name, seen[name]) not in self._known:
                links[name] = _linked(self._folder / name, self._staging / str(number))
        if self._scan(self._folder) != seen:
            raise CheckpointChanged
        return links

    def _saved(self, name: str, seen: SeenFile, staged: Path | None, sent: list[int]) -> SavedFile:
        digest = self._known.get((name, seen))
        if digest is None:
            assert staged is not None
            try:
                digest = _digest(staged)
                if digest not in self._sent:
                    self._objects.upload(staged, f"{self._prefix}files/{digest}", "the checkpoint")
                    sent.append(seen.size)
                about = staged.stat()
            except FileNotFoundError as fault:  # it was not a link
                raise CheckpointChanged from fault
            if (about.st_size, about.st_mtime_ns) != seen[:2]:
                raise CheckpointChanged  # written in place; what was sent goes with the next removal
            self._sent.add(digest)
            if time.time() - seen.mtime_ns / 1e9 > SETTLED_S:
                self._known[name, seen] = digest
        return SavedFile(name, digest, seen.size, seen.mtime_ns, seen.mode)

    def _may_remove(self, each: _CheckpointObject) -> bool:
        """Never what a later attempt saved."""
        return each.attempt <= self._order.attempt

    def _remove_old(self) -> None:
        """All but the newest KEPT, of this attempt and the earlier ones."""
        digests: set[str] = set().union(*(each.digests for each in self._own))
        numbers = {each.number for each in self._own}
        listed = [each for each in self._listed() if self._may_remove(each)]
        before = sorted({each.attempt for each in listed if each.number and each.attempt < self._order.attempt})
        lower = before[-1:] if len(self._own) < KEPT else []

        def is_kept(each: _CheckpointObject) -> bool:
            if each.attempt < self._order.attempt:
                return each.attempt in lower
            return each.number in numbers if each.number else each.uri.rpartition("/")[2] in digests

        self._remove(each for each in listed if not is_kept(each))
        self._sent &= digests
        names = {each.name for record in self._own for each in record.files}
        self._known = {key: digest for key, digest in self._known.items() if digest in digests and key[0] in names}

    def _remove(self, those: Iterator[_CheckpointObject]) -> None:
        """Records are removed first, so that every remaining one names only files that exist."""
        for each in sorted(those, key=lambda each: each.number is None):
            self._objects.delete(each.uri, "the checkpoint")

    @staticmethod
    def _empty(folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)


class _CheckpointObject(NamedTuple):
    """An object of the task's checkpoints. number: of a record; None: it is content."""

    uri: str
    attempt: int
    number: int | None


def _paths(folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _paths(Path(entry.path))
        elif not entry.is_symlink() or os.path.exists(entry.path):
            yield Path(entry.path)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _linked(path: Path, to: Path) -> Path:
    """A second link to the file; if the file system has no links, the file itself."""
    try:
        os.link(os.path.realpath(path), to)
    except FileNotFoundError as fault:
        raise CheckpointChanged from fault
    except OSError:
        return path
    return to


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _text(record: CheckpointRecord, about: dict[str, Any]) -> bytes:
    files = [
        {"name": each.name, "sha256": each.sha256, "bytes": each.size, "mtimeNs": each.mtime_ns, "mode": each.mode}
        for each in record.files
    ]
    told = {"version": 1, "committed": record.committed, "bytes": record.size, **about, "files": files}
    return json.dumps(told, separators=(",", ":")).encode()


def _file_of(told: Any) -> SavedFile:
    """Raises ValueError, TypeError or KeyError."""
    name, digest = str(told["name"]), str(told["sha256"])
    if {"", ".", ".."} & set(name.split("/")) or "\0" in name or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(name)
    return SavedFile(name, digest, int(told["bytes"]), int(told["mtimeNs"]), int(told["mode"]) & 0o777)
