"""What does an exit code say when ECS reports only that a container ended?"""

from __future__ import annotations

import re
import signal

SAYS_NOTHING = "Essential container in task exited"  # ECS's stoppedReason for every ordinary end
OUT_OF_MEMORY = "OutOfMemoryError"  # the beginning of the reason of a container that ran out of memory
ENDED_BADLY = "the program ended with an error"
KILLED = 128  # plus the number of the signal
SIGKILLED = KILLED + signal.SIGKILL
_LAST_SIGNAL = 64
_GIVEN_UP = re.compile(r"given up after \d+ losses: ")
_SHELL = {126: "the program is not executable", 127: "there is no such program"}  # POSIX, of the shell and of env
# Of the runner that fetches a user's program and uploads its result (docs/maintainers/decisions/0030).
WRONG_REQUEST, NO_RESULT, TEMPORARY = 64, 65, 75
_RUNNER = {
    WRONG_REQUEST: "the task's request is invalid: see the last line of its log",
    NO_RESULT: "the program succeeded but wrote no result",
    TEMPORARY: "S3 could not be reached or refused the call: see the last line of the log",
}
_MEANING = {
    signal.SIGABRT: "it aborted, as after a failed assertion",
    signal.SIGALRM: "a timer that it set",
    signal.SIGBUS: "an invalid memory address",
    signal.SIGFPE: "an arithmetic fault",
    signal.SIGHUP: "its terminal closed",
    signal.SIGILL: "an instruction that this processor does not have",
    signal.SIGINT: "interrupted, as by Ctrl-C",
    signal.SIGKILL: "killed from outside, often because memory ran out",
    signal.SIGPIPE: "the reader of its output had closed the pipe",
    signal.SIGSEGV: "a segmentation fault",
    signal.SIGTERM: "it was asked to stop",
    signal.SIGXCPU: "it reached its limit of CPU time",
}


def signal_name(exit_code: int) -> str:
    """`SIGSEGV` for 139; empty if the code means no signal."""
    if not KILLED < exit_code <= KILLED + _LAST_SIGNAL:
        return ""
    try:
        return signal.Signals(exit_code - KILLED).name
    except ValueError:
        return f"signal {exit_code - KILLED}"


def words(exit_code: int, has_runner: bool = False) -> str:
    """`SIGSEGV: a segmentation fault` for 139; codes that programs choose share one sentence. has_runner: the runner
    may have chosen it."""
    name = signal_name(exit_code)
    if has_runner and exit_code in _RUNNER:
        return _RUNNER[exit_code]
    if not name:
        return _SHELL.get(exit_code, ENDED_BADLY)
    meaning = _MEANING.get(exit_code - KILLED)  # type: ignore[call-overload]  # signals are numbers
    return f"{name}: {meaning}" if meaning else f"killed by {name}"


def explained(reason: str | None, exit_code: int | None, has_runner: bool = False) -> str:
    """The reason of an end. If there is none: the meaning of the exit code, or that there is no exit code."""
    if reason and reason != SAYS_NOTHING:
        return reason
    return "it left no exit code" if exit_code is None else words(exit_code, has_runner)


def bare(reason: str) -> str:
    """The reason of the last loss of a task that was given up after several losses."""
    return _GIVEN_UP.sub("", reason, count=1)
