"""A runner without a protocol is a plain init: it starts the program, passes signals on, and ends as it does."""

from __future__ import annotations

import os
import signal

import pytest

from tests.runners import RunnerUnderTest

pytestmark = pytest.mark.slow


@pytest.fixture
def forks() -> None:
    """Cases of signals and orphans use separate processes."""


@pytest.mark.parametrize("code", [0, 1, 7, 64, 255])
def test_the_programs_exit_code_is_the_runners(runner: RunnerUnderTest, code: int) -> None:
    ended = runner.run("sh", "-c", f"exit {code}")
    assert (ended.code, ended.err) == (code, b"")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_program_that_a_signal_ends_is_128_more(runner: RunnerUnderTest, number: int) -> None:
    assert runner.run("sh", "-c", f"kill -{int(number)} $$").code == 128 + number


def test_output_and_errors_stay_apart(runner: RunnerUnderTest) -> None:
    ended = runner.run("sh", "-c", "echo one; echo two >&2")
    assert (ended.out, ended.err) == (b"one\n", b"two\n")


@pytest.mark.parametrize("number", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_are_passed_on(runner: RunnerUnderTest, number: str) -> None:
    started = runner.start("sh", "-c", f"trap 'echo heard; exit 9' {number}; echo ready; while :; do sleep 0.05; done")
    started.said(b"ready")
    started.signal(signal.Signals[f"SIG{number}"])
    ended = started.end()
    assert (ended.code, ended.out) == (9, b"ready\nheard\n")


def test_a_program_that_ignores_a_signal_continues(runner: RunnerUnderTest) -> None:
    script = "trap '' TERM; echo ready; read -r line < wait; echo $line"
    fifo = runner.folder / "wait"
    os.mkfifo(fifo)
    started = runner.start("sh", "-c", script)
    started.said(b"ready")
    started.signal(signal.SIGTERM)
    fifo.write_text("on\n")
    assert started.end().out == b"ready\non\n"


def test_a_program_that_is_not_there_is_named(runner: RunnerUnderTest) -> None:
    ended = runner.run("no-such-program", "7")
    assert ended.code == 127
    assert "no-such-program" in ended.sentence


def test_a_program_that_cannot_be_executed_is_named(runner: RunnerUnderTest) -> None:
    (runner.folder / "data.txt").write_text("not a program")
    ended = runner.run("./data.txt")
    assert ended.code == 126
    assert "./data.txt" in ended.sentence


def test_the_words_that_others_put_before_the_program_are_dropped(runner: RunnerUnderTest) -> None:
    assert runner.run("--", "argosy:program", "sh", "-c", "exit 3").code == 3
    assert runner.run("--", "sh", "-c", "exit 4").code == 4


def test_without_a_program_there_is_nothing_to_do(runner: RunnerUnderTest) -> None:
    ended = runner.run("--")
    assert ended.code == 64
    assert ended.sentence


def test_the_environment_is_left_alone(runner: RunnerUnderTest) -> None:
    ended = runner.run(
        "sh", "-c", 'echo "$GIVEN.${ARGOSY_IN-unset}.${PYTHONUNBUFFERED-unset}"', changes={"GIVEN": "x y"}
    )
    assert ended.out == b"x y.unset.unset\n"


def test_it_says_which_protocol_it_supports(runner: RunnerUnderTest) -> None:
    ended = runner.run("--version")
    assert (ended.code, ended.out) == (0, b"argosy-runner protocol 1\n")
