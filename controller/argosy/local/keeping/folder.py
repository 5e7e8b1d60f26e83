"""The folder of local mode's state, and whether this process may use it.

One local mode at a time: it holds a lock that the kernel releases with its process, however that ends. Folders of
another format, and those with other people's files, are left unchanged.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argosy.client.local_key import data_folder

FORMAT = 1  # raise it when what is stored is read in another way
_FORMAT_FILE, _LOCK_FILE = "format", "in-use"
DATABASE, OBJECTS = "state.db", "objects"
_OURS = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", OBJECTS, _FORMAT_FILE)


class StateRefusedError(Exception):
    """The folder cannot be used; `step` says what the user can do about it."""

    def __init__(self, message: str, step: str) -> None:
        super().__init__(message)
        self.step = step


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """State in a folder that cannot be read or made is a StateRefusedError."""
    try:
        yield
    except OSError as fault:
        step = "choose another folder: argosy local --state DIR (--no-state keeps nothing)"
        raise StateRefusedError(f"The state in {path} cannot be used: {fault}.", step) from fault
    except (sqlite3.Error, ValueError, TypeError, KeyError) as fault:
        raise damaged(path, str(fault)) from fault


def damaged(path: Path, why: str) -> StateRefusedError:
    """The suggested commands name the folder: without it `--fresh` would forget the user's default state."""
    return StateRefusedError(
        f"The state in {path} is damaged: {why}.",
        f"`argosy local --state {shlex.quote(str(path))} --fresh` deletes it; another --state DIR leaves it unchanged",
    )


def default_folder() -> Path:
    """In the user's data folder."""
    return data_folder() / "local"


class KeptFolder:
    """A folder that is this process's until `close`. Raises StateRefusedError, OSError."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """fresh: forget its content."""
        self.path = path
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_strangers(path)
        path.chmod(0o700)  # it may have been made by its user
        self._lock = os.open(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            self._take()
            if fresh:
                _forget(path)
            _check_format(path)
            self._check_database()
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    @property
    def objects(self) -> Path:
        return self.path / OBJECTS

    def close(self) -> None:
        """Another local mode may then use it."""
        os.close(self._lock)

    def _check_database(self) -> None:
        """It is made before the folder of objects, which would be unprotected otherwise."""
        if self.objects.is_dir() and (not self.database.exists() or self.database.stat().st_size == 0):
            raise damaged(self.path, f"{DATABASE} is empty or missing")

    def _take(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            owner = os.read(self._lock, 32).decode(errors="replace").strip()
            raise StateRefusedError(
                f"Another local mode{f' (process {owner})' if owner else ''} uses the state in {self.path}.",
                "stop it, or choose another folder: argosy local --state DIR (--no-state keeps nothing)",
            ) from fault
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)


def _refuse_strangers(path: Path) -> None:
    """Whatever --fresh removes must be ours."""
    strange = sorted({each.name for each in path.iterdir()} - {*_OURS, _LOCK_FILE})
    if strange and not (path / _FORMAT_FILE).exists():
        raise StateRefusedError(
            f"{path} contains files that are not local mode's, such as {strange[0]}.",
            "choose an empty folder, or a name that does not exist yet",
        )


def _forget(path: Path) -> None:
    for name in _OURS:
        if (path / name).is_dir():
            shutil.rmtree(path / name)
        else:
            (path / name).unlink(missing_ok=True)


def _check_format(path: Path) -> None:
    file = path / _FORMAT_FILE
    if not file.exists():
        file.touch(0o600)
        file.write_text(f"{FORMAT}\n", encoding="utf-8")
        return
    found = file.read_text(encoding="utf-8", errors="replace").strip()
    if found != str(FORMAT):
        raise StateRefusedError(
            f"The state in {path} has format {found or '(none)'}, and this version of argosy reads format {FORMAT}.",
            "use the version that wrote it, choose another --state DIR, or delete it with --fresh",
        )
