"""This user's commands as forks of a process that has made their imports: local mode's half of `forked_command`."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from argosy.client.forked_command import DESCRIPTORS, folder, is_ours, is_usual, surroundings
from argosy.local.forks import Forks

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE_S = 1.0  # for a command's next message
_LINGER_S = 0.2  # at the end, for commands that end with it


@contextmanager
def commands_ready(port: int, warm: str) -> Iterator[None]:
    """Commands start as forks, and continue when this ends. port: local mode's. warm: as for `Forks`."""
    forks = Forks(warm, os.environ) if is_usual() else None
    try:
        ready = ReadyCommands(port, forks) if forks else None
    except OSError:  # no folder, or its path is too long for a socket: commands start the plain way
        ready = None
    try:
        yield
    finally:
        if ready:
            ready.close()
        if forks:
            forks.close(_LINGER_S)


class ReadyCommands:
    """Has forks started for commands, until `close`."""

    def __init__(self, port: int, forks: Forks) -> None:
        """Raises OSError where there can be no socket."""
        self._path = Path(folder()) / str(port)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.parent.chmod(0o700)
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._own, self._code = surroundings(), _code()
        self._state = _state_of(self._code)
        self._forks = forks
        self._thread = threading.Thread(target=self._serve, name="argosy-commands", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No more are started. Those that run continue."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):  # it is not listening yet
            self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):  # the listener's end, or that of the server of forks
            first = self._forks.start("time.tzset", [], {})  # begins once the server has made its imports
            with first.stdin, first.stdout, first.stderr:
                first.wait()
            self._listener.listen()
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):  # its command starts the plain way
                    self._start(connection)

    def _start(self, connection: socket.socket) -> None:
        """Raises OSError if the command ends meanwhile, or cannot be started."""
        connection.settimeout(_PATIENCE_S)
        with connection.makefile("rb") as reading:
            is_same = is_ours(connection) and reading.readline() == self._own and _state_of(self._code) == self._state
        if is_same:
            connection.sendall(b"!")
            _, descriptors, *_ = socket.recv_fds(connection, 1, DESCRIPTORS)
            try:
                if len(descriptors) == DESCRIPTORS:
                    self._forks.send(descriptors)
            finally:
                for each in descriptors:
                    os.close(each)


def _code() -> list[str]:
    """Argosy's modules, and the folders in which packages come and go."""
    own = (os.path.join(at, name) for at, _, names in os.walk(ROOT) for name in names if name.endswith(".py"))
    return [*own, *filter(os.path.isdir, sys.path)]


def _state_of(code: Sequence[str]) -> list[int]:
    """It changes with each of them. Raises OSError if one is gone."""
    return [max(found.st_mtime_ns, found.st_ctime_ns) for found in map(os.stat, code)]
