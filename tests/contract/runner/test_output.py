"""A program's output passes through unchanged, whatever its amount and content."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import Any

import pytest

from tests.runners import PART, RunnerUnderTest

pytestmark = pytest.mark.slow


MIB = 1024 * 1024
ODD = b"\x1b[2J\x1b]0;TITLE\x07 \xff\xfe \x00 no newline at the end"


@pytest.mark.parametrize("result", ["stdout", "none"])
def test_bytes_are_neither_read_nor_changed(runner: RunnerUnderTest, result: str) -> None:
    script = f"import sys; sys.stdout.buffer.write({ODD!r}); sys.stderr.buffer.write({ODD!r})"
    ended = runner.python(script, result=result)
    assert (ended.code, ended.out, ended.err) == (0, ODD, ODD)
    if result == "stdout":
        assert runner.s3.body(PART) == ODD


def test_output_is_seen_while_the_program_runs(runner: RunnerUnderTest) -> None:
    os.mkfifo(runner.folder / "wait")
    started = runner.start("argosy:program", "sh", "-c", f"echo early; cat {runner.folder}/wait", result="stdout")
    started.said(b"early")
    (runner.folder / "wait").write_text("late\n")
    assert started.end().out == b"early\nlate\n"


def test_a_process_that_stays_behind_does_not_hold_up_the_end(runner: RunnerUnderTest) -> None:
    began = time.monotonic()
    ended = runner.shell("sleep 60 2>/dev/null & echo $! > pid; echo main", result="stdout")
    assert (ended.code, ended.out) == (0, b"main\n")
    assert time.monotonic() - began < 40
    os.kill(int((runner.folder / "pid").read_text()), signal.SIGKILL)


def peak_mib(runner: RunnerUnderTest, size: int) -> float:
    """The runner's own, by the kernel's count."""
    runner.roots.mkdir(exist_ok=True)
    script = f"import sys\nfor _ in range({size}): sys.stdout.buffer.write(b'x' * 1048575 + b'\\n')"
    words = ["argosy:program", "python3", "-c", script]
    environment = runner.environment() | runner.protocol("stdout")
    process = subprocess.Popen([*runner.command, *words], env=environment, cwd=runner.folder, stdout=subprocess.PIPE)
    read = [0]
    thread = threading.Thread(target=drain, args=(process.stdout, read))
    thread.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    thread.join()
    assert process.returncode == 0
    assert read[0] == size * MIB
    return usage.ru_maxrss / 1024


def drain(pipe: Any, read: list[int]) -> None:
    with pipe:
        while piece := pipe.read(MIB):
            read[0] += len(piece)


def test_a_hundred_megabytes_of_output_need_no_memory(runner: RunnerUnderTest) -> None:
    little = peak_mib(runner, 1)
    runner.s3.buckets["results"].clear()
    assert peak_mib(runner, 100) < little + 60
    assert len(runner.s3.body(PART)) == 100 * MIB
