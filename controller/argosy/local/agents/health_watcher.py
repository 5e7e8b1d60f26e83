"""Is a container of this machine healthy? Its health command is run repeatedly, where the task runs.

For a container this uses the engine's `exec`; for a process, its environment and its folder. Each container with such a
command has a thread.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psutil

from argosy.client.entering.way_in import WayIn
from argosy.emulator.ecs.container_health import HealthWatch

SHELL = ("/bin/sh", "-c")


class HealthWatcher:
    """From `start` until `stop`."""

    def __init__(
        self, check: Mapping[str, Any], way_in: Callable[[], WayIn | None], told: Callable[[str], None]
    ) -> None:
        """check: the healthCheck of the definition. told: called with the status whenever it has changed."""
        kind, *words = check["command"]
        self._words = [*SHELL, *words] if kind == "CMD-SHELL" else words
        self._watch = HealthWatch(check, time.time())
        self._way_in, self._told = way_in, told
        self._over = threading.Event()
        self._guard = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="argosy-health", daemon=True)

    def start(self) -> None:
        """The first run comes an interval later."""
        self._thread.start()

    def stop(self) -> None:
        """The container has ended. Returns at once."""
        self._over.set()
        with self._guard:
            running = self._running
        if running is not None:
            _kill(running)

    def join(self, timeout_s: float) -> None:
        """Wait until all its processes have ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._over.wait(self._watch.interval_s):
            succeeded = self._succeeds()
            if not self._over.is_set() and self._watch.note(succeeded, time.time()):
                self._told(self._watch.status)

    def _succeeds(self) -> bool:
        """Whether the command ended in time, and with exit code 0. A command that cannot be started has failed."""
        try:
            process = self._started()
        except (OSError, psutil.Error):
            return False
        if process is None:
            return False
        try:
            return process.wait(self._watch.timeout_s) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            _kill(process)
            with self._guard:
                self._running = None

    def _started(self) -> subprocess.Popen[bytes] | None:
        """None if there is nothing to enter. Raises OSError, psutil.Error."""
        way = self._way_in()
        if way is None:
            return None
        words, surroundings = _command(way, self._words)
        with self._guard:
            if self._over.is_set():
                return None
            self._running = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                **surroundings,
            )
            return self._running


def _command(way: WayIn, words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The command to start, with its environment and folder. Raises psutil.Error."""
    if way.engine:
        return [way.engine, "exec", way.container, *words], {}
    process = psutil.Process(way.pid)
    return list(words), {"env": process.environ(), "cwd": process.cwd()}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """It and the processes that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
