"""Processes that begin as forks of one that has made their imports.

Problem: a function's process spends 1.2 s of CPU time on imports and on botocore's service models before its
first invocation. Idea: the server, `python -m argosy.local.forks`, does so once, and forks itself for each process.

A start sends five descriptors over the server's socket: the order (what to call, in which environment), standard
input, output and error, and the status pipe. The server forks the process, which starts a new session, writes its id to
the status pipe and reads the order. When it ends, the server writes its exit status to that pipe. It is killed when the
other end of the pipe is closed. The server exits when the process that started it exits, even if that was killed. When
the server is killed, its processes are killed too.

A fork copies an entry for each page of memory: 20 ms of CPU time for 50,000 pages of 4 KiB, 7 ms for huge ones. So the
server has Linux put its memory into huge pages.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

DESCRIPTORS = 5
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]  # not that of `local.options`, whose imports take 0.4 s
HUGE_BYTES = 2 << 20
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25  # Linux; the second one since 6.1
# numpy's threads do not survive a fork, and would only compete with tasks for this machine's cores.
_SERVERS_OWN = {"PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Fork:
    """A process, used like a subprocess.Popen with three pipes. `poll` and `wait` are thread-safe."""

    def __init__(self, stdin: int, stdout: int, stderr: int, status: int) -> None:
        """Returns once it runs. Raises OSError if the server could not fork it."""
        self.stdin, self.stdout, self.stderr = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb"), os.fdopen(stderr, "rb")
        self._status = os.fdopen(status, "r")
        self._guard = threading.Lock()
        self._code: int | None = None
        self.pid = int(self._status.readline() or 0)
        if not self.pid:
            for each in (self.stdin, self.stdout, self.stderr, self._status):
                each.close()
            raise OSError("the server of forks has ended")

    def poll(self) -> int | None:
        """As Popen's."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, negative for a signal. timeout: seconds. Raises subprocess.TimeoutExpired."""
        with self._guard:
            if self._code is None:
                if not select.select([self._status], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
                with self._status:
                    said = self._status.readline()
                if not said:  # the server was killed
                    self.kill()
                self._code = os.waitstatus_to_exitcode(int(said or signal.SIGKILL))
            return self._code

    def kill(self) -> None:
        """SIGKILL, unless it is known to have ended."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _ordered(send: Callable[[Sequence[int]], None], order: Sequence[Any]) -> Fork:
    """The process that a server starts. send: hands it the descriptors. order: what `_become` reads."""
    (to_read, ordering), (stdin, writing) = os.pipe(), os.pipe()
    outputs = [os.pipe() for _ in range(3)]
    theirs = [to_read, stdin, *(write for _, write in outputs)]
    try:
        send(theirs)
    finally:
        for each in theirs:
            os.close(each)
    with os.fdopen(ordering, "wb") as pipe, suppress(BrokenPipeError):  # then there is no process id either
        pipe.write(json.dumps(order).encode())
    return Fork(writing, *(read for read, _ in outputs))


class Forks:
    """A server of forks, until `close`. Thread-safe."""

    def __init__(self, warm: str, environment: Mapping[str, str]) -> None:
        """Returns before it is ready. warm: `module.function`, which makes the imports that all its processes need, in
        this environment."""
        self._warm, self._environment = warm, environment
        self._guard = threading.Lock()
        self._begin()

    def start(
        self, called: str, words: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
    ) -> Fork:
        """A process that calls `module.function` with these words in sys.argv. folder: None for this process's own.
        Raises OSError if it cannot be forked."""
        return _ordered(self.send, [called, list(words), dict(environment), str(folder or Path.cwd())])

    def fileno(self) -> int:
        """The socket over which a program that inherits it can send starts itself."""
        return self._socket.fileno()

    def close(self, patience_s: float | None = None) -> None:
        """Wait until the server and all its processes have ended; not longer than that, if it is given."""
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._server.wait(patience_s)

    def _begin(self) -> None:
        paths = [str(_PACKAGE_ROOT), self._environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-m", "argosy.local.forks", str(theirs.fileno()), self._warm],
                env={**self._environment, **_SERVERS_OWN, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # the terminal's signals are not for it
            )

    def send(self, descriptors: Sequence[int]) -> None:
        """Have the server fork a process that has these descriptors."""
        with self._guard:
            if self._server.poll() is not None:  # it was killed
                self._socket.close()
                self._begin()
            socket.send_fds(self._socket, [b"!"], descriptors)


# --- the server -------------------------------------------------------------------------------------------------------


def serve(requests: socket.socket) -> None:
    """Fork for each request until the client closes the socket; then wait for the processes. In the main thread."""
    gc.collect()
    gc.freeze()  # so that garbage collection copies no memory in a fork
    _use_huge_pages()
    pid: int | None
    statuses: dict[int, int] = {}  # process id -> the pipe for its exit status
    ended, ending = socket.socketpair()
    ending.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ending.fileno(), warn_on_full_buffer=False)
    waiting = [requests, ended]
    while statuses or requests in waiting:
        ready = _ready(waiting, statuses.values())
        if ended.fileno() in ready:
            ended.recv(4096)
            _report(statuses)
        for pid in [each for each, pipe in statuses.items() if pipe in ready]:
            os.kill(pid, signal.SIGKILL)  # its client has ended
            os.waitpid(pid, 0)
            os.close(statuses.pop(pid))
        if requests in waiting and requests.fileno() in ready:
            request, descriptors, *_ = socket.recv_fds(requests, 1, DESCRIPTORS)
            if not request:
                waiting.remove(requests)
            elif (pid := _forked(descriptors)) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for each in (requests.detach(), ended.detach(), ending.detach(), *statuses.values()):
                    os.close(each)
                _become(*descriptors)
            elif pid:
                statuses[pid] = descriptors[-1]


def _ready(waiting: Sequence[socket.socket], pipes: Iterable[int]) -> set[int]:
    """Waits until some can be read, or the other end of a pipe is closed."""
    poller = select.poll()
    for each in waiting:
        poller.register(each, select.POLLIN)
    for pipe in pipes:
        poller.register(pipe, 0)
    return {number for number, _ in poller.poll()}


def _forked(descriptors: Sequence[int]) -> int | None:
    """As os.fork, after which the server has only the status pipe; None, and not even that, if it cannot."""
    try:
        pid = os.fork()
    except OSError:
        pid = None
    for each in descriptors[:-1] if pid else () if pid == 0 else descriptors:
        os.close(each)
    return pid


def _report(statuses: dict[int, int]) -> None:
    """Tell the clients of processes that have ended."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            pipe = statuses.pop(found[0])
            with suppress(BrokenPipeError):  # its client has ended
                os.write(pipe, b"%d\n" % found[1])
            os.close(pipe)


def _use_huge_pages() -> None:
    """Where this system has them, and as far as it likes."""
    with suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).madvise
        for line in Path("/proc/self/maps").read_text().splitlines():
            addresses, rights, _, _, _, *name = line.split()
            begin, end = (int(each, 16) for each in addresses.split("-"))
            if rights == "rw-p" and name in ([], ["[heap]"]) and end - begin >= HUGE_BYTES:
                for advice in (MADV_HUGEPAGE, MADV_COLLAPSE):
                    advise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), advice)


def _become(order: int, stdin: int, stdout: int, stderr: int, status: int) -> NoReturn:
    os.setsid()
    os.write(status, b"%d\n" % os.getpid())
    os.close(status)
    for number, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    code = 1
    try:
        with os.fdopen(order) as pipe:
            called, words, environment, folder = json.load(pipe)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path.append(folder)  # last: no file there hides a library
        sys.argv = [called, *words]
        code = _function(called)() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as at the end of every program
        traceback.print_exc()
    os._exit(code)


def _function(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(import_module(module), function)


if __name__ == "__main__":
    _function(sys.argv[2])()
    serve(socket.socket(fileno=int(sys.argv[1])))
