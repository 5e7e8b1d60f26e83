"""A container's program as a process tree, with a memory limit, a grace period and log lines.

RLIMIT_AS would fail programs that only reserve address space (numpy, TensorFlow), so the resident memory of the whole
tree is watched, and the tree is killed at the limit, as the kernel does in a container.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from argosy.client.entering.way_in import WayIn
from argosy.local.containers.followers import ProgramFollower
from argosy.local.containers.output import PipeLines, follow
from argosy.local.gpus import Gpu
from argosy.runner.copying import Sink
from argosy.runner.process_trees import TREES, WATCH_S

MARK = "ARGOSY_LOCAL_CONTAINER"  # a variable whose value each container of this machine has for itself
ROUNDS = 100  # at most, of looking for processes that others start while they are ended
SHORT_S = 1.0  # of a program: within it process ids are not used twice
FEW = 64  # processes that are looked at one by one
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program ended: `exit_code` as Docker gives it (128 + signal)."""

    exit_code: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Isolation:
    """The needs of a container engine beyond the program. tmpfs: (path, MiB). gpus: this machine's, pinned to it."""

    image: str
    entry_point: str | None = None
    cpu_units: int | None = None
    user: str | None = None
    read_only: bool = False
    tmpfs: tuple[tuple[str, int], ...] = ()
    shared_memory_mib: int | None = None  # of /dev/shm; None: the engine's own 64
    gpus: tuple[Gpu, ...] = ()
    mps_pipes: Path | None = None  # the folder through which it shares a GPU
    published: tuple[tuple[int, int, str], ...] = ()  # (port of this machine, port in the container, protocol)


@dataclass(frozen=True, slots=True)
class Program:
    """The command to run, and its limits. isolation: None for a process of this machine."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    memory_mib: int | None  # of the whole process tree; None = no limit
    stop_timeout_s: float = 30.0  # from SIGTERM to SIGKILL
    isolation: Isolation | None = None
    descriptors: tuple[int, ...] = ()  # open files that it inherits
    has_runner: bool = False  # the runner starts it, and works before and afterwards as its environment says
    bare: bool = False  # its image's folder holds nothing for it: without an archive it gets an empty one
    copy_stdout_to: Path | None = None  # as well as the log


class ContainerProcess:
    """One running program in its own session, so that its whole process tree can be ended."""

    def __init__(
        self,
        program: Program,
        on_line: Callable[[str], None],
        on_end: Callable[[Exit], None],
        followers: ProgramFollower | None = None,
    ) -> None:
        """Starts at once; `on_line` and `on_end` are called from other threads. Raises OSError if it cannot start (e.g.
        FileNotFoundError). followers: provide those threads and register the program; None: it has its own thread.
        """
        self._program = program
        self._on_line = on_line
        self._on_end = on_end
        self._out_of_memory = False
        self._held_mib = 0  # then
        self._began = self._looked_at = time.monotonic()  # at its memory
        self._over = threading.Event()
        self.output_fault: OSError | None = None  # why standard output could not be kept, once it has ended
        copied = program.copy_stdout_to is not None
        self._process = subprocess.Popen(
            list(program.arguments),
            env=dict(program.environment),
            cwd=program.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if copied else subprocess.STDOUT,
            start_new_session=True,
            pass_fds=program.descriptors,
        )
        self._followers = followers
        self._threads: list[threading.Thread] = []
        self._followed: Future[None] | None = None
        if followers is None:
            self._threads.append(threading.Thread(target=self._follow, name=f"argosy-task-{self._process.pid}"))
            self._threads[0].start()
        else:
            self._followed = followers.follow(self.pid, self._follow)

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        return self._process.pid

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended it that it did not handle."""
        return (self._process.returncode or 0) < 0

    def stop(self) -> None:
        """SIGTERM now, SIGKILL after the grace period. Returns at once."""
        self._signal(signal.SIGTERM)
        timer = threading.Thread(target=self._kill_later, name=f"argosy-stop-{self.pid}")
        timer.start()
        self._threads.append(timer)  # others may be joining them

    def kill(self) -> None:
        """SIGKILL the whole tree."""
        self._signal(signal.SIGKILL)

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended and all its callbacks have returned."""
        if self._followed is not None:
            wait([self._followed], timeout_s)
        for thread in list(self._threads):
            thread.join(timeout_s)

    def way_in(self) -> WayIn | None:
        """See Container."""
        return None if self._over.is_set() else WayIn(pid=self.pid)

    def patience_ms(self) -> int | None:
        """See PipeOwner: its memory is read."""
        return None if self._program.memory_mib is None else round(WATCH_S * 1000)

    def sweep_up(self) -> None:
        """The container ends with its main program: kill its other processes, which also closes the pipe. The program
        is still a zombie, so that its group id is not reused yet."""
        self._signal(signal.SIGKILL)
        if mark := self._program.environment.get(MARK):
            _STRAYS.end(mark, self.pid if time.monotonic() - self._began < SHORT_S else None)
        if self._followers is not None:
            self._followers.forget(self.pid)
        self._process.wait()
        self._over.set()

    def look(self) -> None:
        """Kill the tree if it holds more memory than it may."""
        limit_mib, now = self._program.memory_mib, time.monotonic()
        if limit_mib is None or self._over.is_set() or self._out_of_memory or now - self._looked_at < WATCH_S * 0.9:
            return
        self._looked_at = now
        held = TREES.resident_bytes(self.pid)
        if held > limit_mib * 1024 * 1024:
            self._held_mib = -(-held // 1024**2)
            self._out_of_memory = True
            self.kill()

    def _kill_later(self) -> None:
        if not self._over.wait(self._program.stop_timeout_s):
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS: the latter for a zombie
            return  # it has ended by itself

    def _follow(self) -> None:
        self._read()
        if self._out_of_memory:
            self._on_line(
                f"argosy: killed: it used {self._held_mib:,} MiB, and the limit is {self._program.memory_mib:,} MiB"
            )
        code = self._process.returncode
        reason = OUT_OF_MEMORY if self._out_of_memory else None
        self._on_end(Exit(128 - code if code < 0 else code, reason))

    def _read(self) -> None:
        with ExitStack() as open_ones:
            sink = None
            if self._program.copy_stdout_to is not None:
                file = open_ones.enter_context(self._program.copy_stdout_to.open("wb", buffering=0))
                sink = Sink(file.fileno())
            given = ((self._process.stdout, sink), (self._process.stderr, None))
            pipes = [(open_ones.enter_context(pipe), to) for pipe, to in given if pipe is not None]
            exit_of = open_ones.enter_context(_exit_of(self._process))
            follow([PipeLines(pipe.fileno(), self._on_line, to) for pipe, to in pipes], self, exit_of)
            self.output_fault = sink.fault if sink is not None else None


@contextmanager
def _exit_of(process: subprocess.Popen[bytes]) -> Iterator[int]:
    """A descriptor that can be read when the process has ended; it stays a zombie where that can be waited for."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # macOS, kernels before 5.3, and some sandboxes
        descriptor = _exit_by_thread(process)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _exit_by_thread(process: subprocess.Popen[bytes]) -> int:
    """The same, where the kernel has no such descriptors."""
    readable, writable = os.pipe()

    def await_exit() -> None:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13
            process.wait()
        os.close(writable)

    threading.Thread(target=await_exit, name=f"argosy-wait-{process.pid}").start()
    return readable


class StrayProcesses:
    """Processes that have left their program's session: they are known by a variable that each process inherits.

    Only processes that are new since the last look are asked for it. Those of other users cannot be, nor one that has
    cleared its environment as well.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._marks: dict[int, str] = {}  # by process

    def end(self, mark: str, first: int | None = None) -> None:
        """SIGKILL all with this mark, and what they start meanwhile. first: their oldest process, if it began within
        SHORT_S."""
        for _ in range(ROUNDS):
            found = [pid for pid, its in self._marks_since(first).items() if its == mark and _is_alive(pid)]
            if not found:
                return
            for pid in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def _marks_since(self, first: int | None) -> dict[int, str]:
        last = None if first is None else _last_process()
        if first is None or last is None or not 0 <= last - first <= FEW:
            with self._guard:
                return dict(self._now())
        return {pid: _mark_of(pid) for pid in range(first + 1, last + 1) if psutil.pid_exists(pid)}

    def _now(self) -> dict[int, str]:
        now = set(psutil.pids())
        for pid in self._marks.keys() - now:
            del self._marks[pid]
        self._marks |= {pid: _mark_of(pid) for pid in now - self._marks.keys()}
        return self._marks


def _last_process() -> int | None:
    """The id that was given last, as Linux says it: each one is larger than the one before, until they begin again."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[4])
    except (OSError, ValueError, IndexError):
        return None


def _mark_of(pid: int) -> str:
    try:
        return psutil.Process(pid).environ().get(MARK, "")
    except (psutil.Error, OSError):  # it has ended, or is another user's
        return ""


def _is_alive(pid: int) -> bool:
    """A zombie has ended already."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


_STRAYS = StrayProcesses()
