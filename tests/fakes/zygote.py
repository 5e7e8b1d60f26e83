"""Python programs as forks of a process that has imported cloudpickle, which takes an interpreter 40 ms of CPU time."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

SOURCE = """
import cloudpickle, json, os, runpy, sys, traceback

def program(words, folder, environment, said):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number in (1, 2):
        os.dup2(said, number)
    sys.argv, sys.path[0] = words, folder
    runpy.run_path(words[0], run_name="__main__")

def status(words, folder, environment, said):
    try:
        program(words, folder, environment, os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC))
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        code = status(*json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
_IDLE: deque[subprocess.Popen[str]] = deque()


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str], said: Path) -> int:
    """The exit code of a script and its arguments. said: receives its output. Thread-safe: each caller waits for the
    script that it started."""
    process = _taken()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([words, str(folder), dict(environment), str(said)]) + "\n")
    process.stdin.flush()
    code = int(process.stdout.readline())
    _IDLE.append(process)
    return code


def _taken() -> subprocess.Popen[str]:
    with suppress(IndexError):
        return _IDLE.pop()
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", SOURCE], stdin=pipe, stdout=pipe, text=True)


@atexit.register
def _end() -> None:
    while _IDLE:
        with _IDLE.pop() as process:
            assert process.stdin is not None
            process.stdin.close()
