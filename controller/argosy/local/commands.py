"""This user's commands as forks of a process that has made their imports: local mode's half of `forked_command`."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
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
        self._listener.listen()
        self._own, self._code = surroundings(), _state_of_code()
        self._forks = forks
        self._thread = threading.Thread(target=self._serve, name="argosy-commands")
        self._thread.start()

    def close(self) -> None:
        """No more are started. Those that run continue."""
        self._path.unlink(missing_ok=True)
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):  # the listener's end
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):  # its command starts the plain way
                    self._start(connection)

    def _start(self, connection: socket.socket) -> None:
        """Raises OSError if the command ends meanwhile, or cannot be started."""
        connection.settimeout(_PATIENCE_S)
        with connection.makefile("rb") as reading:
            is_same = is_ours(connection) and reading.readline() == self._own and _state_of_code() == self._code
        if is_same:
            connection.sendall(b"!")
            _, descriptors, *_ = socket.recv_fds(connection, 1, DESCRIPTORS)
            try:
                if len(descriptors) == DESCRIPTORS:
                    self._forks.send(descriptors)
            finally:
                for each in descriptors:
                    os.close(each)


def _state_of_code() -> list[int]:
    """It changes with a file of Argosy's own, and with what is installed."""
    modules = (
        file.stat().st_ctime_ns for at, _, _ in os.walk(ROOT) for file in os.scandir(at) if file.name[-3:] == ".py"
    )
    return [max(modules), *(os.stat(each).st_mtime_ns for each in sys.path if os.path.isdir(each))]
