"""A program on the user's own terminal, with its output read in transit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

CHUNK = 65_536
NO_SIZE = os.terminal_size((300, 100))  # without a terminal, like the plugin
_TYPED = (signal.SIGINT, signal.SIGQUIT)  # meant for the program: it gets them too, and decides


@dataclass(frozen=True, slots=True)
class CommandLine:
    """environment, folder: None = this process's own."""

    words: Sequence[str]
    environment: Mapping[str, str] | None = None
    folder: Path | None = None


def has_terminal() -> bool:
    """Whether input and output are both terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def attached(line: CommandLine) -> int:
    """Its exit code, or 128 + N after signal N. It has our input and output. Raises OSError."""
    with _left_to_the_program():
        code = subprocess.run(list(line.words), env=line.environment, cwd=line.folder, check=False).returncode
    return 128 - code if code < 0 else code


def listened_to(line: CommandLine, hear: Callable[[bytes], None]) -> int:
    """Run the command in a new terminal and pass its output to `hear`. It reads standard input if that is a terminal.
    Otherwise it gets no input, so that a program that reads its input to the end can end. Raises OSError.
    """
    import pty
    import tty

    ours, theirs = pty.openpty()
    try:
        tty.setraw(theirs)
        with _left_to_the_program(), _same_size(ours):
            stdin = None if sys.stdin.isatty() else theirs
            with subprocess.Popen(
                list(line.words), env=line.environment, cwd=line.folder, stdin=stdin, stdout=theirs
            ) as process:
                os.close(theirs)
                theirs = -1
                try:
                    for said in _said(ours):
                        hear(said)
                except BaseException:  # the caller has stopped listening
                    process.kill()
                    raise
    finally:
        for each in (ours, theirs):
            if each >= 0:
                os.close(each)
    code = process.returncode
    return 128 - code if code < 0 else code


def _said(terminal: int) -> Iterator[bytes]:
    """Until the other end is closed, which Linux reports as an error."""
    with suppress(OSError):
        while said := os.read(terminal, CHUNK):
            yield said


@contextmanager
def _left_to_the_program() -> Iterator[None]:
    """Handlers that do nothing here, and that a program does not inherit."""
    before = {each: signal.signal(each, lambda number, frame: None) for each in _TYPED}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _same_size(terminal: int) -> Iterator[None]:
    """The terminal is as large as the user's, also after a resize."""
    import termios

    def copy(number: int = 0, frame: object = None) -> None:
        columns, lines = shutil.get_terminal_size(NO_SIZE)
        termios.tcsetwinsize(terminal, (lines, columns))

    copy()
    before = signal.signal(signal.SIGWINCH, copy)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
