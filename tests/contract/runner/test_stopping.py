"""A runner that is stopped ends with 143 in any phase and leaves nothing half written."""

from __future__ import annotations

import signal

import pytest

from tests.runners import OUTPUT, PART, RunnerUnderTest, signal_another_thread

pytestmark = pytest.mark.slow


@pytest.fixture
def forks() -> None:
    """Signals and orphans are about processes of their own."""


STOPS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("number", STOPS)
def test_while_it_fetches(runner: RunnerUnderTest, number: int) -> None:
    runner.s3.put("x.txt", b"x")
    held = runner.s3.trouble("GET", "x.txt", "held")
    protocol = {"result": "stdout", "inputs": ["s3://results/x.txt"]}
    started = runner.start("argosy:program", "sh", "-c", "echo ran", **protocol)
    assert held.reached.wait(60)
    started.signal(number)
    ended = started.end()
    assert (ended.code, ended.out) == (143, b"")
    assert ended.sentence
    assert list(runner.roots.iterdir()) == []


def test_also_when_another_of_its_threads_receives_the_signal(runner: RunnerUnderTest) -> None:
    runner.s3.put("x.txt", b"x")
    held = runner.s3.trouble("GET", "x.txt", "held")
    started = runner.start("argosy:program", "sh", "-c", "echo ran", result="stdout", inputs=["s3://results/x.txt"])
    assert held.reached.wait(60)
    signal_another_thread(started.process.pid, signal.SIGTERM)
    assert started.end().code == 143


def test_while_it_waits_before_another_try(runner: RunnerUnderTest) -> None:
    failing = runner.s3.trouble("GET", "x.txt", 503)
    started = runner.start(
        "argosy:program", "sh", "-c", "echo ran", changes={"AWS_MAX_ATTEMPTS": "50"}, result="stdout",
        inputs=["s3://results/x.txt"],
    )  # fmt: skip
    assert failing.reached.wait(60)
    started.signal(signal.SIGTERM)
    assert started.end().code == 143


def test_while_it_sets_up(runner: RunnerUnderTest) -> None:
    job = runner.job(setup="trap 'echo told; exit 3' TERM; echo busy; while :; do sleep 0.05; done")
    started = runner.start("argosy:program", "sh", "-c", "echo ran", result="stdout", job=job)
    started.heard(b"busy")
    started.signal(signal.SIGTERM)
    ended = started.end()
    assert (ended.code, ended.out) == (143, b"")
    assert b"told\n" in ended.err


def test_while_the_program_runs_it_is_the_programs_matter(runner: RunnerUnderTest) -> None:
    script = "trap 'echo saved; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    started = runner.start("argosy:program", "sh", "-c", script, result="stdout")
    started.said(b"ready")
    started.signal(signal.SIGTERM)
    ended = started.end()
    assert (ended.code, ended.out) == (9, b"ready\nsaved\n")
    assert runner.s3.names() == []


def test_a_program_that_does_not_mind_ends_by_the_signal(runner: RunnerUnderTest) -> None:
    started = runner.start("argosy:program", "sh", "-c", "echo ready; exec sleep 60", result="none")
    started.said(b"ready")
    started.signal(signal.SIGTERM)
    assert started.end().code == 143


def test_a_program_that_ends_well_after_the_signal_has_a_result(runner: RunnerUnderTest) -> None:
    script = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    started = runner.start("argosy:program", "sh", "-c", script, result="stdout")
    started.said(b"ready")
    started.signal(signal.SIGTERM)
    assert started.end().code == 0
    assert runner.s3.body(PART) == b"ready\nsaved\n"


@pytest.mark.parametrize("number", STOPS)
def test_while_it_uploads(runner: RunnerUnderTest, number: int) -> None:
    held = runner.s3.trouble("PUT", f"{OUTPUT}a", "held")
    script = 'echo a > "$ARGOSY_OUT/a"; echo p > "$ARGOSY_OUT/part.jsonl"'
    started = runner.start("argosy:program", "sh", "-c", script, result="folder")
    assert held.reached.wait(60)
    started.signal(number)
    ended = started.end()
    assert ended.code == 143
    assert ended.sentence
    assert PART not in runner.s3.names()


def test_while_it_uploads_a_large_file(runner: RunnerUnderTest) -> None:
    held = runner.s3.trouble("PUT", f"{OUTPUT}big", "held", times=1)
    script = "truncate -s 65M $ARGOSY_OUT/big; echo p > $ARGOSY_OUT/part.jsonl"
    started = runner.start("argosy:program", "sh", "-c", script, result="folder")
    assert held.reached.wait(60)
    started.signal(signal.SIGTERM)
    runner.s3.release()
    assert started.end().code == 143
    assert runner.s3.uploads == {}
    assert runner.s3.names() == []
