"""A job's unpacked archives: each set is unpacked once, however many attempts of this process need it.

A container has one attempt, and its folder is the attempt's own. In local mode each attempt borrows a copy, which no
other attempt uses meanwhile. The next attempt gets the same copy if the one before has left it as it was, so that a
thousand tasks copy pandas only as often as programs run at once. Sets that no attempt needs any more stay for later
ones, up to a limit.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import threading
import uuid
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.runner.archives import UNPACK
from argosy.runner.input_files import fetch_inputs
from argosy.runner.job import JobArchive
from argosy.runner.objects import CONNECTIONS, Objects
from argosy.runner.order import RunnerFault

CLONED_BYTES = 1024 * 1024  # larger files are copied on write, where the file system can
LENT_BYTES = (
    256 * 1024**2
)  # larger sets, such as PyTorch's, are not copied: attempts share one, which is checked for changes
_FICLONE = 0x40049409  # ioctl_ficlone(2)
KEPT_BYTES = 4 * 1024**3  # of sets that no attempt needs now and later ones may
_PIECE_BYTES = 1024 * 1024


Contents = dict[str, tuple[int, ...]]  # by path


@dataclass(slots=True)
class _Tree:
    """An unpacked set or a copy. user: the folder of the attempt that has the copy, or had it last."""

    folder: Path
    contents: Contents
    user: Path = Path()


class LentFolders:
    """Folders of one kind, each of which one attempt has at a time. Thread-safe."""

    def __init__(self) -> None:
        self.trees: list[_Tree] = []
        self._guard = threading.Lock()

    def take(self, user: Path) -> Path | None:
        """A free and unchanged folder, if any. Changed ones found before it are removed. user: as in `SetCache.get`."""
        with self._guard:
            for tree in [each for each in self.trees if not each.user.is_dir()]:
                if contents_of(tree.folder) == tree.contents:
                    tree.user = user
                    return tree.folder
                self.trees.remove(tree)
                shutil.rmtree(tree.folder, ignore_errors=True)
        return None

    def add(self, folder: Path, user: Path) -> Path:
        """Add a new folder, which this attempt uses."""
        with self._guard:
            self.trees.append(_Tree(folder, contents_of(folder), user))
        return folder


class SetCache:
    """Sets of archives below `folder`. Safe to use from several threads."""

    def __init__(self, folder: Path, kept_bytes: int = KEPT_BYTES, lent_bytes: int = LENT_BYTES) -> None:
        """kept_bytes: the total size above which unused sets are removed. lent_bytes: of the largest set that is
        copied."""
        self._folder, self._kept_bytes, self._lent_bytes = folder, kept_bytes, lent_bytes
        self._guard = threading.Lock()
        self._turns: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._users: dict[str, set[Path]] = {}  # by set, the one that was wanted last behind all others
        self._sizes: dict[str, int] = {}
        self._wholes: dict[str, _Tree] = {}
        self._copies: dict[str, LentFolders] = defaultdict(LentFolders)

    def get(self, archives: Sequence[JobArchive], objects: Objects, user: Path) -> Path:
        """The folder with all of these, the later over the earlier. user: the attempt's own folder; the set stays as
        long as any exists. Raises RunnerFault or OSError."""
        name = self._wanted(archives, user)
        with self._turns[name]:
            return self._whole(name, archives, objects)

    def lend(self, archives: Sequence[JobArchive], objects: Objects, user: Path) -> Path:
        """As `get`, for this attempt alone: no other sees what it writes there, now or later."""
        name = self._wanted(archives, user)
        with self._turns[name]:
            if copy := self._copies[name].take(user):
                return copy
            whole = self._whole(name, archives, objects)
            if self._sizes[name] > self._lent_bytes:
                return whole
            folder = self._folder / name / uuid.uuid4().hex
            shutil.copytree(whole, folder, symlinks=True, copy_function=_copied)
            self._let_go(name, self._sizes[name])
            return self._copies[name].add(folder, user)

    def _wanted(self, archives: Sequence[JobArchive], user: Path) -> str:
        """The name of the set, which stays as long as the attempt's folder."""
        name = hashlib.sha256("".join(f"{each.kind} {each.sha256}\n" for each in archives).encode()).hexdigest()[:32]
        with self._guard:
            self._turns[name]  # made under the guard
            self._users[name] = self._users.pop(name, set()) | {user}
        return name

    def _whole(self, name: str, archives: Sequence[JobArchive], objects: Objects) -> Path:
        """The set as it was unpacked. One that an attempt has changed is left to those that have it."""
        made = self._wholes.get(name)
        if made is None or contents_of(made.folder) != made.contents:
            folder = self._folder / name / uuid.uuid4().hex
            self._make(folder, archives, objects)
            made = self._wholes[name] = _Tree(folder, contents_of(folder))
            self._let_go(name, _bytes_below(folder))
        return made.folder

    def _let_go(self, new: str, size: int) -> None:
        """Remove unused sets, the least recently used first."""
        leaving: list[Path] = []
        with self._guard:
            self._sizes[new] = size
            for name in list(self._users):
                self._users[name] = {each for each in self._users[name] if each.is_dir()}
                if self._bytes() > self._kept_bytes and name in self._sizes and not self._users[name]:
                    del self._users[name], self._sizes[name]
                    del self._wholes[name]
                    self._copies.pop(name, None)
                    leaving.append(Path(tempfile.mkdtemp(prefix="leaving-", dir=self._folder)))
                    (self._folder / name).rename(leaving[-1] / name)
        for each in leaving:
            shutil.rmtree(each, ignore_errors=True)

    def _bytes(self) -> int:
        return sum(size * (1 + len(self._copies[name].trees)) for name, size in self._sizes.items())

    def _make(self, made: Path, archives: Sequence[JobArchive], objects: Objects) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=self._folder) as held:
            whole = [each for each in archives if not each.is_in_chunks]
            files = [Path(held) / str(number) for number in range(len(whole))]
            with ThreadPoolExecutor(CONNECTIONS, "argosy-fetch") as pool:
                list(pool.map(lambda each, file: _fetched(each, file, objects), whole, files))
            unpacked = Path(held) / "unpacked"
            unpacked.mkdir()
            fetch_inputs((each.uri for each in archives if each.is_in_chunks), unpacked, objects)
            for each, file in zip(whole, files, strict=True):
                UNPACK[each.kind](file, unpacked, each.uri)
            made.parent.mkdir(exist_ok=True)
            unpacked.rename(made)


def contents_of(folder: Path) -> Contents:
    """All that a program can change in a folder, without its bytes: no program can set the time of a change. Left out
    are the byte code that Python adds, which is checked against its source, and what only this adds."""
    found: Contents = {}
    for where, folders, files in os.walk(folder):
        is_cache = where.endswith("/__pycache__")
        for name in (*folders, *files):
            path = os.path.join(where, name)
            about = os.lstat(path)
            if not stat.S_ISDIR(about.st_mode):
                if not (is_cache and name.endswith(".pyc")):
                    found[path] = (about.st_ino, about.st_ctime_ns, about.st_size)
            elif name != "__pycache__":
                found[path] = (about.st_mode,)
    return found


def _copied(source: str, target: str) -> None:
    if os.path.getsize(source) < CLONED_BYTES or not _cloned(source, target):
        shutil.copy2(source, target)


def _cloned(source: str, target: str) -> bool:
    """Whether the file system shares the bytes until one of the two files is written (Btrfs, XFS)."""
    with open(source, "rb") as given, open(target, "wb") as made:
        try:
            fcntl.ioctl(made, _FICLONE, given.fileno())
        except OSError:
            return False
    shutil.copystat(source, target)
    return True


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
