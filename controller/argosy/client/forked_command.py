"""A command as a fork of a process that has made its imports, beside a local mode of this user.

Problem: `argosy run` spends 0.7 s of CPU time on imports and on botocore's service models, most other commands 0.5 s.
Idea: local mode listens on a socket of this user and has a process that has done both. A command there is a fork of it
with the words, folder, environment and standard streams of the process that was typed, which sends it the terminal's
signals and ends as it ends.

Whatever could make a difference has the command start the plain way: another interpreter or version of Argosy, other
limits, groups, namespaces or settings of Python than local mode has, or an answer that does not come at once. This
module needs the standard library only, and little of it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from signal import Signals
    from typing import NoReturn

PLAIN = "ARGOSY_NO_WARM"  # in the environment: start the plain way
_ALONE = ("demo", "exec", "help", "local", "ui")  # they stay, own the terminal, or need no imports
_READ_BY_IMPORTS = ("HOME", "BOTO_DISABLE_CRT", "RUAMEL_DEBUG", "TYPER_USE_RICH")  # by the libraries; all of it
_PATIENCE_S = 0.3  # for a local mode that is busy
DESCRIPTORS = 5  # the order, the standard streams, and the pipe for process id and status


def take() -> None:
    """End this process as the command's fork ends. Returns, before anything was started, where that cannot be."""
    name = sys.argv[1] if sys.argv[1:] else ""
    if not name[:1].isalpha() or name in _ALONE or not is_usual():
        return
    for connection in _local_modes():
        with connection:
            if status := _status_of_fork(connection):
                _end_with(int(status))


def folder() -> str:
    """Of the sockets: local mode's is its port. Only this user may enter."""
    data = os.environ.get("XDG_DATA_HOME", "")
    return os.path.join(data if data.startswith("/") else os.path.expanduser("~/.local/share"), "argosy", "commands")


def is_ours(connection: socket.socket) -> bool:
    """Whether a process of this user is at the other end."""
    import socket
    import struct

    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", peer)[1] == os.geteuid())


def surroundings() -> bytes:
    """What a fork has from the process that it is a fork of, on one line. Equal ones make the same command."""
    import resource

    spaces = [os.stat("/"), *(os.stat(f"/proc/self/ns/{name}") for name in ("mnt", "net", "pid", "user", "uts"))]
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    user = os.getresuid(), os.getresgid(), sorted(os.getgroups()), [os.environ.get(name) for name in _READ_BY_IMPORTS]
    with open("/proc/self/status") as status:  # a sandbox without namespaces has a filter, or fewer rights
        rights = [line for line in status if line.startswith(("Cap", "NoNewPrivs", "Seccomp:"))]
    chance = os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0))
    python = sys.executable, sys.version, __file__, sys.warnoptions, tuple(sys.flags)
    return (
        repr((python, user, rights, chance, limits, [(each.st_dev, each.st_ino) for each in spaces])).encode() + b"\n"
    )


def is_usual() -> bool:
    """Whether a fork can be what this process is: on Linux, in UTF-8, with all streams, without settings of Python."""
    return (
        sys.platform == "linux"
        and not any(name == PLAIN or name.startswith("PYTHON") for name in os.environ)
        and all(each is not None and each.encoding == "utf-8" for each in (sys.stdin, sys.stdout, sys.stderr))
        and sys.gettrace() is sys.getprofile() is None
    )


def _local_modes() -> Iterator[socket.socket]:
    """Connections to those of this user that would start the command as this process would."""
    import socket

    try:
        names = os.listdir(folder())
    except OSError:  # no local mode has run yet
        return
    for name in names:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(_PATIENCE_S)
            connection.connect(os.path.join(folder(), name))
            if is_ours(connection):
                connection.sendall(surroundings())
                if connection.recv(1):
                    yield connection
        except OSError:  # it has ended, or is busy
            connection.close()


def _status_of_fork(connection: socket.socket) -> str:
    """The status that the command ended with, as waitpid has it. Empty if it was not started."""
    import json
    import signal
    import socket

    forwarded = [getattr(signal, f"SIG{name}") for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH")]
    ignored = [each for each in forwarded if signal.getsignal(each) is signal.SIG_IGN]
    signal.pthread_sigmask(signal.SIG_BLOCK, [*forwarded, signal.SIGTSTP])
    os.umask(umask := os.umask(0o77))
    about = {"umask": umask, "ignored": ignored, "path": sys.path, "errors": [sys.stdin.errors, sys.stdout.errors]}
    order = ["argosy.cli.fork.main", [json.dumps(about), *sys.argv], dict(os.environ), os.getcwd()]
    (to_read, ordering), (status, ending) = os.pipe(), os.pipe()
    socket.send_fds(connection, [b"!"], [to_read, 0, 1, 2, ending])
    os.close(to_read)
    os.close(ending)
    with open(status) as told:
        try:
            with open(ordering, "w") as pipe:
                json.dump(order, pipe)
        except BrokenPipeError:
            pass  # then there is no process either
        process = int(told.readline() or 0)
        if process:
            _pass_on([each for each in forwarded if each not in ignored], process)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        return (told.readline() or str(int(signal.SIGKILL))) if process else ""


def _pass_on(forwarded: list[Signals], process: int) -> None:
    """From now on, signals of this process reach the group of the command. It stops and continues with it."""
    import signal

    def stop(*_: object) -> None:
        os.killpg(process, signal.SIGSTOP)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # returns once it continues, or at once where no shell could continue it
        signal.signal(signal.SIGTSTP, stop)
        os.killpg(process, signal.SIGCONT)

    for each in forwarded:
        signal.signal(each, lambda number, _: os.killpg(process, number))
    if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
        signal.signal(signal.SIGTSTP, stop)


def _end_with(status: int) -> NoReturn:
    import signal

    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
