"""How does a container's program run as a process tree, with a memory limit, a grace period and log lines?

RLIMIT_AS would fail programs that only reserve address space (numpy, TensorFlow), so the resident memory of the whole
tree is watched, and the tree is killed at the limit, as the kernel does in a container.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

WATCH_S = 0.1  # how often resident memory is looked at
QUIET_MS = 300
MAX_LINE_BYTES = 262_144  # longer lines are cut here
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: `exit_code` as Docker gives it (128 + signal)."""

    exit_code: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a container engine needs to know beyond the program. tmpfs: (path, MiB). Ordinals: of the pinned GPUs."""

    image: str
    entry_point: str | None = None
    cpu_units: int | None = None
    user: str | None = None
    read_only: bool = False
    tmpfs: tuple[tuple[str, int], ...] = ()
    shared_memory_mib: int | None = None  # of /dev/shm; None: the engine's own 64
    gpu_ordinals: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What to run and within which bounds. isolation: None for a process of this machine."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    memory_mib: int | None  # of the whole process tree; None = no limit
    stop_timeout_s: float = 30.0  # from SIGTERM to SIGKILL
    isolation: Isolation | None = None
    descriptors: tuple[int, ...] = ()  # open files that it inherits


class ContainerProcess:
    """One running program in its own session, so that its whole process tree can be ended."""

    def __init__(self, program: Program, on_line: Callable[[str], None], on_end: Callable[[Ended], None]) -> None:
        """Starts at once; `on_line` and `on_end` are called from other threads. Raises OSError if it cannot
        start (e.g. FileNotFoundError)."""
        self._program = program
        self._on_line = on_line
        self._on_end = on_end
        self._out_of_memory = False
        self._over = threading.Event()
        self._process = subprocess.Popen(
            list(program.arguments),
            env=dict(program.environment),
            cwd=program.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=program.descriptors,
        )
        self._threads = [threading.Thread(target=self._follow, name=f"argosy-task-{self._process.pid}")]
        if program.memory_mib is not None:
            self._threads.append(threading.Thread(target=self._watch, name=f"argosy-memory-{self._process.pid}"))
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        return self._process.pid

    def stop(self) -> None:
        """SIGTERM now, SIGKILL after the grace period. Returns at once."""
        self._signal(signal.SIGTERM)
        timer = threading.Thread(target=self._kill_later, name=f"argosy-stop-{self.pid}")
        self._threads.append(timer)
        timer.start()

    def kill(self) -> None:
        """SIGKILL the whole tree."""
        self._signal(signal.SIGKILL)

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended and all its callbacks have returned."""
        for thread in self._threads:
            thread.join(timeout_s)

    def _kill_later(self) -> None:
        if not self._over.wait(self._program.stop_timeout_s):
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return  # it has ended by itself

    def _follow(self) -> None:
        exited = threading.Thread(target=self._sweep_up, name=f"argosy-wait-{self.pid}")
        exited.start()
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            for line in self._lines(pipe.fileno()):
                self._on_line(line.decode("utf-8", "replace").rstrip("\r"))
        exited.join()
        code = self._process.returncode
        reason = OUT_OF_MEMORY if self._out_of_memory else None
        self._on_end(Ended(128 - code if code < 0 else code, reason))

    def _lines(self, descriptor: int) -> Iterator[bytes]:
        """Lines until the pipe ends, or is quiet after the program's end: a daemon left behind may hold it open."""
        poller = select.poll()
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
        pending = b""
        while True:
            if not poller.poll(QUIET_MS):
                if self._over.is_set():
                    break
                continue
            data = os.read(descriptor, 65_536)
            if not data:
                break
            *whole, pending = (pending + data).split(b"\n")
            yield from whole
            if len(pending) > MAX_LINE_BYTES:
                yield pending
                pending = b""
        if pending:
            yield pending

    def _sweep_up(self) -> None:
        """The container ends with its main program: kill its other processes, which also closes the pipe."""
        # WNOWAIT leaves the zombie, so that its group id is not reused yet.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._over.set()

    def _watch(self) -> None:
        assert self._program.memory_mib is not None
        limit = self._program.memory_mib * 1024 * 1024
        while not self._over.wait(WATCH_S):
            if _resident_bytes(self.pid) > limit:
                self._out_of_memory = True
                self.kill()
                return


def _resident_bytes(pid: int) -> int:
    total = 0
    try:
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            total += process.memory_info().rss
    except psutil.Error:
        return total  # one of the processes ended meanwhile
    return total
