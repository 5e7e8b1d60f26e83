"""The followers of tasks' programs, and their end if this process is killed.

Threads follow programs: the thread of an ended program follows the next one, so that no other thread has to be woken
(with programs of milliseconds, that would take longer than they do). They are not separate processes, which would
outlive this one.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from argosy.local.containers import cleanup_process

MOST_PROGRAMS = 10_000  # that run at once


class ProgramFollower(Protocol):
    """The data that followers need about one program."""

    def follow(self, group: int, work: Callable[[], None]) -> Future[None]:
        """Do this, for a program that has begun as the leader of this process group."""

    def forget(self, group: int) -> None:
        """All of the group has been killed; its id may be used again from now on."""


class Followers:
    """Of all programs of one embedded AWS, until `close`. Safe to use from several threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MOST_PROGRAMS, "argosy-task")
        self._guard = threading.Lock()
        self._cleanup = subprocess.Popen(
            [sys.executable, "-I", "-S", cleanup_process.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # the terminal's signals are not for it
            text=True,
        )

    def follow(self, group: int, work: Callable[[], None]) -> Future[None]:
        """Do this on a thread, for a program that has begun as the leader of this process group."""
        self.begun(group)
        return self._threads.submit(work)

    def begun(self, group: int) -> None:
        """A program leads this process group; its starter follows it."""
        self._tell(cleanup_process.BEGUN, str(group))

    def forget(self, group: int) -> None:
        """All of the group has been killed; its id may be used again from now on."""
        self._tell(cleanup_process.ENDED, str(group))

    def shares(self, pipes: Path) -> None:
        """The folder of the pipes of an MPS daemon, which is to end with local mode."""
        self._tell(cleanup_process.SHARED, str(pipes))

    def label(self, engine: str, label: str) -> None:
        """Containers of this engine with this label are ours."""
        self._tell(cleanup_process.LABELLED, engine, label)

    def close(self) -> None:
        """No program is left."""
        self._threads.shutdown()
        self._tell(cleanup_process.WELL)
        with suppress(BrokenPipeError), self._cleanup:
            """It ends with its input."""

    def _tell(self, *words: str) -> None:
        assert self._cleanup.stdin is not None
        with self._guard, suppress(BrokenPipeError):  # it was killed: then nothing cleans up after local mode
            self._cleanup.stdin.write(" ".join(words) + "\n")
            self._cleanup.stdin.flush()
