"""The commands `argosy` and `aws`, and programs of images, as forks of one process of each test process, which
has done their imports.

Problem: `argosy` spends 0.6 s of CPU time on imports before it does anything, and tests type it a hundred times.
Idea: local mode's server of forks starts them, like the functions. A stand-in of the command, found first on PATH,
hands its words, folder, environment and standard streams to the server through a socket that it inherits, and ends with
the status of the fork. So each command is a separate process, also in a shell.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.fakes.local_mode import forks

PATIENCE_S = 300.0
NAMES = ("argosy", "aws", "program", "script")
SOCKET = "TESTS_FORKS"
STAND_IN = """#!{python} -IS
import json, os, signal, socket, sys
(order, ordering), (status, ending) = os.pipe(), os.pipe()
with socket.socket(fileno=int(os.environ.pop("{socket}"))) as server:
    socket.send_fds(server, [b"!"], [order, 0, 1, 2, ending])
os.close(order), os.close(ending)
called = ["tests.fakes.imported.{name}", sys.argv[1:], dict(os.environ), os.getcwd()]
with os.fdopen(ordering, "w") as pipe:
    json.dump(called, pipe)
with os.fdopen(status) as pipe:
    process = int(pipe.readline())
    signal.signal(signal.SIGTERM, lambda *_: os.kill(process, signal.SIGTERM))
    code = os.waitstatus_to_exitcode(int(pipe.readline() or signal.SIGKILL))
sys.exit(code if code >= 0 else 128 - code)
"""


def outcome_of(
    words: str | Sequence[str], folder: Path | None = None, said: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The process that these words start, or bash with this text, once it has ended. said: its standard input; without
    it there is none. environment: beside this process's own."""
    socket = forks().fileno()
    command = ["bash", "-ec", words] if isinstance(words, str) else words
    told = {"PATH": f"{_stand_ins()}:{Path(sys.executable).parent}:/usr/bin:/bin", SOCKET: str(socket)}
    given = {"stdin": subprocess.DEVNULL} if said is None else {"input": said}
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        command, cwd=folder, env={**os.environ, **told, **environment}, pass_fds=[socket], capture_output=True,
        text=True, timeout=PATIENCE_S, check=False, **given,
    )  # fmt: skip


@cache
def _stand_ins() -> Path:
    """The folder with the stand-ins; it goes with the test process."""
    folder = Path(tempfile.mkdtemp(prefix="argosy-tests-commands-"))
    atexit.register(shutil.rmtree, folder)
    for name in NAMES:
        (folder / name).write_text(STAND_IN.format(python=sys.executable, socket=SOCKET, name=name))
        (folder / name).chmod(0o755)
    return folder
