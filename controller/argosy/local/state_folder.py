"""The folder of the functions' logs. The next embedded AWS removes a folder whose process was killed.

A folder in use holds a file that its process has locked, and the kernel releases a lock with its process, however that
ends. A folder that is kept, because its logs are worth reading, has no such file.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "argosy-local-"
_UNFINISHED = "argosy-unfinished-"  # until it holds its lock
_LOCK = "in-use"


class StateFolder:
    """A new folder below the temporary one, this process's until `close`. Removes those of killed processes first."""

    def __init__(self) -> None:
        sweep()
        made = Path(tempfile.mkdtemp(prefix=_UNFINISHED))
        self._lock = os.open(made / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = made.rename(made.with_name(made.name.replace(_UNFINISHED, PREFIX, 1)))

    def close(self, *, keep: bool) -> None:
        """keep: the logs are worth reading."""
        (self.path / _LOCK).unlink()
        os.close(self._lock)
        if not keep:
            shutil.rmtree(self.path)


def sweep() -> None:
    """Remove the files that killed processes have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        for lock in _ownerless(folder):
            shutil.rmtree(folder, ignore_errors=True)  # another one may be sweeping too
            os.close(lock)


def _ownerless(folder: Path) -> Iterator[int]:
    """The lock of a folder that no process holds, taken."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return  # it is kept, or another user's
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)  # in use
        return
    yield lock
