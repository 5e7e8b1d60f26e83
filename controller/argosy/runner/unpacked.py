"""A job's unpacked archives: each set is in a folder once, however many attempts of this process need it.

A container has one attempt, and its folder is the attempt's own. Local mode's processes share one folder: a thousand
tasks unpack pandas once. Sets that no attempt needs any more stay for later ones, up to a limit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.runner.archives import UNPACK
from argosy.runner.job import JobArchive
from argosy.runner.objects import CONNECTIONS, Objects
from argosy.runner.order import RunnerFault

LINKED_BYTES = 1024 * 1024  # larger files of a program are shared, read-only, instead of copied
KEPT_BYTES = 4 * 1024**3  # of sets that no attempt needs and others may
_PIECE_BYTES = 1024 * 1024


class Unpacked:
    """Sets of archives below `folder`. Safe to use from several threads."""

    def __init__(self, folder: Path, kept_bytes: int = KEPT_BYTES) -> None:
        """kept_bytes: the total size above which unused sets are removed."""
        self._folder, self._kept_bytes = folder, kept_bytes
        self._guard = threading.Lock()
        self._turns: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._users: dict[str, set[Path]] = {}  # by set, the one that was wanted last behind all others
        self._sizes: dict[str, int] = {}

    def get(self, archives: Sequence[JobArchive], objects: Objects, user: Path) -> Path:
        """The folder with all of these, the later over the earlier. user: the attempt's own folder; the set stays as
        long as any exists. Raises RunnerFault or OSError."""
        name = hashlib.sha256("".join(f"{each.kind} {each.sha256}\n" for each in archives).encode()).hexdigest()[:32]
        with self._guard:
            turn = self._turns[name]
            self._users[name] = self._users.pop(name, set()) | {user}
        with turn:
            made = self._folder / name
            if not made.is_dir():
                self._make(made, archives, objects)
                self._let_go(name, _bytes_below(made))
        return made

    def _let_go(self, new: str, size: int) -> None:
        """Remove unused sets, the least recently used first."""
        leaving: list[Path] = []
        with self._guard:
            self._sizes[new] = size
            for name in list(self._users):
                self._users[name] = {each for each in self._users[name] if each.is_dir()}
                if sum(self._sizes.values()) > self._kept_bytes and name in self._sizes and not self._users[name]:
                    del self._users[name], self._sizes[name]
                    leaving.append(Path(tempfile.mkdtemp(prefix="leaving-", dir=self._folder)))
                    (self._folder / name).rename(leaving[-1] / name)
        for each in leaving:
            shutil.rmtree(each, ignore_errors=True)

    def _make(self, made: Path, archives: Sequence[JobArchive], objects: Objects) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=self._folder) as held:
            files = [Path(held) / str(number) for number in range(len(archives))]
            with ThreadPoolExecutor(CONNECTIONS, "argosy-fetch") as pool:
                list(pool.map(lambda each, file: _fetched(each, file, objects), archives, files))
            unpacked = Path(held) / "unpacked"
            unpacked.mkdir()
            for each, file in zip(archives, files, strict=True):
                UNPACK[each.kind](file, unpacked, each.uri)
            unpacked.rename(made)


def copy_of(folder: Path, target: Path) -> None:
    """A separate tree for a program that may write in its folder. Large files are shared, and so read-only."""
    shutil.copytree(folder, target, symlinks=True, copy_function=_copied)


def _copied(source: str, target: str) -> None:
    about = os.stat(source)
    if about.st_size < LINKED_BYTES:
        shutil.copy2(source, target)
        return
    os.chmod(source, about.st_mode & 0o555)
    os.link(source, target)


def _bytes_below(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def _fetched(archive: JobArchive, file: Path, objects: Objects) -> None:
    objects.download(archive.uri, file, "the archive")
    size = file.stat().st_size
    if size != archive.size:
        raise RunnerFault(WRONG_REQUEST, f"the archive {archive.uri} has {size} bytes, and the job says {archive.size}")
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        for piece in iter(lambda: opened.read(_PIECE_BYTES), b""):
            digest.update(piece)
    if digest.hexdigest() != archive.sha256:
        raise RunnerFault(WRONG_REQUEST, f"the archive {archive.uri} has another digest than the job says")
