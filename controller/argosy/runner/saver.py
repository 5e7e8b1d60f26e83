"""When is the folder of checkpoints saved? At a commit, at an interval, and when its program was stopped.

A program that never commits is saved as its files are, if none of them changed in the last two seconds nor while they
were read. Nothing here makes a task fail: it then has an older checkpoint, and its log says why.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from argosy.runner.checkpoints import COMMIT, CheckpointChanged, CheckpointRecord, Checkpoints
from argosy.runner.order import RunnerFault

TICK_S = 0.25  # how soon a commit is seen
PAUSE_S = 15.0  # after a failure; S3 was tried for a minute by then
PATIENCE_S = 60.0  # before the log says that the files keep changing


class CheckpointSaver:
    """The saves of one attempt. abandoned: stops requests of the thread under way."""

    def __init__(self, checkpoints: Checkpoints, folder: Path, every_s: float, abandoned: threading.Event) -> None:
        self._checkpoints, self._commit, self._every_s = checkpoints, folder / COMMIT, every_s
        self._over, self._abandoned = threading.Event(), abandoned
        self._thread = threading.Thread(target=self._run, name="argosy-checkpoints", daemon=True)
        self._tell: Callable[[str], None] = lambda line: None
        self._changing_since = 0.0

    @contextmanager
    def running(self, tell: Callable[[str], None]) -> Iterator[None]:
        """In its block, commits are noticed and intervals kept. tell: takes lines for the log."""
        self._tell = tell
        self._thread.start()
        try:
            yield
        finally:
            self.abandon()

    def abandon(self) -> None:
        """The program succeeded, or has no more time."""
        self._abandoned.set()
        self._over.set()

    def end(self, *, was_stopped: bool, was_killed: bool) -> None:
        """The program failed or was stopped: finish the save under way, then save what it left. After a signal that it
        did not handle, a file may be half written."""
        self._over.set()
        self._thread.join()
        if self._commit.exists():
            self._saved("commit")
        elif was_stopped and not self._checkpoints.committed:
            self._saved("stop", is_settled=not was_killed)

    def join(self) -> None:
        """Wait until nothing is saved any more."""
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic() + (self._every_s or float("inf"))
        not_before = 0.0
        while not self._over.wait(TICK_S):
            now = time.monotonic()
            if now < not_before:
                continue
            if self._commit.exists():
                is_done = self._saved("commit")
            elif now >= due and not self._checkpoints.committed:
                is_done = self._saved("time", is_settled=False)
                due = now + self._every_s if is_done else due
            else:
                continue
            not_before = now + PAUSE_S if is_done is None else 0.0

    def _saved(self, cause: str, *, is_settled: bool = True) -> bool | None:
        """Whether it is saved or need not be; False: files changed; None: it could not be saved."""
        mark = self._mark() if cause == "commit" else None
        try:
            self._checkpoints.save(cause, is_settled=is_settled)
        except CheckpointChanged:
            self._note_change()
            return False
        except (RunnerFault, OSError) as fault:
            if not self._abandoned.is_set():
                self._tell(f"argosy: no checkpoint was saved: {fault}")
            return None
        self._changing_since = 0.0
        if mark is not None and mark == self._mark():  # else the program has committed again
            self._commit.unlink(missing_ok=True)
        return True

    def _mark(self) -> tuple[int, int] | None:
        with suppress(FileNotFoundError):
            about = self._commit.stat()
            return about.st_ino, about.st_mtime_ns
        return None

    def _note_change(self) -> None:
        now = time.monotonic()
        self._changing_since = self._changing_since or now
        if now - self._changing_since > PATIENCE_S:
            self._tell("argosy: no checkpoint was saved: files in $ARGOSY_CHECKPOINT keep changing")
            self._changing_since = float("inf")


def restored_line(record: CheckpointRecord) -> str:
    """The line of the log."""
    return (
        f"argosy: restored the checkpoint of attempt {record.attempt}: {len(record.files)} files, {record.size} bytes"
    )
