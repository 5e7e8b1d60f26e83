"""Forked runners: `python -m tests.runner_server FD` imports botocore once, which takes a runner of its own 0.4 s.

A request comes over the socket FD: the words, the environment and the folder as JSON, with three descriptors for the
output, the errors and the status. A forked process writes the runner's process id into the status, waits for it, and
writes how it ended.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
REQUEST_BYTES_MAX = 1 << 17


class ForkedRunner:
    """Looks like a subprocess.Popen."""

    def __init__(self, out: int, err: int, status: int) -> None:
        self.stdout, self.stderr = BufferedReader(os.fdopen(out, "rb", 0)), BufferedReader(os.fdopen(err, "rb", 0))
        self._status = os.fdopen(status, "r")
        self.pid = int(self._status.readline())
        self._code: int | None = None

    def wait(self, timeout: float) -> int:
        """The exit code, negative for a signal. Raises subprocess.TimeoutExpired."""
        if self._code is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired("a forked runner", timeout)
            with self._status:
                self._code = os.waitstatus_to_exitcode(int(self._status.readline()))
        return self._code

    def kill(self) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)


class RunnerServer:
    """The server, for those who test runners."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.runner_server", str(theirs.fileno())]
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])

    def start(self, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> ForkedRunner:
        request = json.dumps([list(words), dict(environment), str(folder)]).encode()
        ends = [os.pipe() for _ in range(3)]
        socket.send_fds(self._socket, [request], [writing for _, writing in ends])
        for _, writing in ends:
            os.close(writing)
        return ForkedRunner(*(reading for reading, _ in ends))

    def close(self) -> None:
        self._socket.close()
        self._process.wait(60)


# --- the server itself ------------------------------------------------------------------------------------------------


def serve(requests: socket.socket) -> None:
    watching: set[int] = set()
    while True:
        request, descriptors, *_ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 3)
        watching -= {pid for pid in watching if os.waitpid(pid, 0 if not request else os.WNOHANG)[0]}
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            requests.close()
            watch(json.loads(request), *descriptors)
        watching.add(pid)
        for each in descriptors:
            os.close(each)


def watch(request: Any, out: int, err: int, status: int) -> NoReturn:
    """Also counts the runner's processor time among that of the server."""
    pid = os.fork()
    if pid == 0:
        os.close(status)
        be_runner(*request, out, err)
    os.close(out)
    os.close(err)
    os.write(status, b"%d\n" % pid)
    os.write(status, b"%d\n" % os.waitpid(pid, 0)[1])
    os._exit(0)


def be_runner(words: list[str], environment: dict[str, str], folder: str, out: int, err: int) -> NoReturn:
    from argosy.runner.__main__ import main

    for descriptor, number in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = words
    try:
        os._exit(main())
    except BaseException:  # noqa: BLE001 - as at the end of every program
        traceback.print_exc()
        os._exit(1)


def warm() -> None:
    """Loads what a runner loads: its modules, botocore's and its descriptions of S3."""
    import argosy.runner.__main__  # noqa: F401
    from argosy.runner.objects import client_of
    from tests import botocore_models

    botocore_models.keep()
    client_of(()).close()
    client_of.cache_clear()


if __name__ == "__main__":
    warm()
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
