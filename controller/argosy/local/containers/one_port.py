"""One port of this machine's loopback interface for a container, and no other.

Run as a program in place of `podman run`: it creates the container with its own network, listens on that port
inside it, passes the listening socket to the embedded AWS, and then becomes `podman start --attach`. So the endpoint
is 127.0.0.1 there too, and neither other services of this machine nor its abstract sockets can be reached. A socket
keeps the network that it was made in, wherever it is passed to (network_namespaces(7)).
It is run by its path and imports only a little of the standard library, because each start of a container waits for it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

NOT_STARTED = 126  # what engines say when they cannot run a command
STOPPED = 128 + signal.SIGTERM
_BACKLOG = 128
_OTHERS = ("user", "net")  # the namespaces to enter, in this order: the first gives the right to enter the second


class BoxedStart(NamedTuple):
    """The arguments of the program. handover: descriptor of a connected Unix socket. create: `podman create ...`."""

    handover: int
    port: int
    name: str
    create: tuple[str, ...]

    def as_arguments(self) -> list[str]:
        """The command line; `-I` keeps this folder off the import path, and `-S` the installed packages."""
        told = [str(self.handover), str(self.port), self.name]
        return [sys.executable, "-IS", __file__, *told, *self.create]

    def run(self) -> None:
        """Does not return. SIGTERM ends it when the engine's command has finished: a `podman init` that is cut short
        leaves
        processes behind that it has no record of.
        """
        told: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
        engine = self.create[0]
        _done(self.create, told)
        _done([engine, "init", self.name], told)
        pid = int(_done([engine, "inspect", "--format", "{{.State.Pid}}", self.name], told))
        if _differs(pid, "net"):
            self._open_port(pid)
        os.set_inheritable(self.handover, False)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if told:
            raise SystemExit(STOPPED)
        os.execvp(engine, [engine, "start", "--attach", self.name])

    def _open_port(self, pid: int) -> None:
        """In a child, because there is no way back out of a user namespace."""
        child = os.fork()
        if child == 0:
            try:
                _enter(pid)
                listener = socket.create_server(("127.0.0.1", self.port), backlog=_BACKLOG)
                with socket.socket(fileno=self.handover) as handover:
                    socket.send_fds(handover, [b"."], [listener.fileno()])
                os._exit(0)
            except OSError as fault:
                print(f"the network of the container cannot be entered: {fault}", file=sys.stderr, flush=True)
            finally:
                os._exit(1)
        if os.waitpid(child, 0)[1]:
            raise SystemExit(NOT_STARTED)


def _done(command: Sequence[str], told: Sequence[int]) -> bytes:
    """The output of the command. Ends the program if the command fails (the engine has said why), or after `told`."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if ended.returncode or told:
        raise SystemExit(STOPPED if told else ended.returncode)
    return ended.stdout


def _enter(pid: int) -> None:
    """Raises OSError."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    for kind in filter(lambda each: _differs(pid, each), _OTHERS):
        with open(f"/proc/{pid}/ns/{kind}", "rb") as namespace:
            if library.setns(namespace.fileno(), 0):
                number = ctypes.get_errno()
                raise OSError(number, f"setns: {os.strerror(number)}")


def _differs(pid: int, kind: str) -> bool:
    """Whether a process has another namespace of this kind than ours."""
    return not os.path.samefile(f"/proc/{pid}/ns/{kind}", f"/proc/self/ns/{kind}")


if __name__ == "__main__":
    BoxedStart(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], tuple(sys.argv[4:])).run()
