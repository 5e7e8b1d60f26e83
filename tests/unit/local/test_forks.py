"""A fork is a separate process, and its server outlives neither its user nor its own death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from argosy.local.forks import Fork, Forks
from tests.fakes.waiting import is_gone, until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    made = Forks("gc.collect", {"PYTHONPATH": str(ROOT), "HOME": "/nowhere"})
    yield made
    made.close()


@contextmanager
def called(forks: Forks, name: str, *words: str, folder: Path | None = None, **environment: str) -> Iterator[Fork]:
    """A fork that calls a function of tests/fakes/forked.py; afterwards no process of it is left."""
    fork = forks.start(f"tests.fakes.forked.{name}", words, environment, folder)
    with fork.stdin, fork.stdout, fork.stderr:
        yield fork
        fork.kill()
    fork.wait(PATIENCE_S)


def test_a_fork_has_its_own_words_environment_folder_and_session(forks: Forks, tmp_path: Path) -> None:
    with called(forks, "tell", "two", "words", folder=tmp_path, TOLD="yes") as fork:
        assert fork.wait(PATIENCE_S) == 0
        assert fork.stdout.read().decode().split() == ["two", "words", "yes", "None", str(tmp_path), "True"]


def test_a_fork_reads_its_input_to_the_end_and_its_status_is_what_it_returns(forks: Forks) -> None:
    with called(forks, "copy") as fork:
        assert fork.poll() is None
        with fork.stdin:
            fork.stdin.write(b"one\ntwo\n")
        assert (fork.stdout.read(), fork.wait(PATIENCE_S), fork.poll()) == (b"one\ntwo\n", 2, 2)


@pytest.mark.parametrize(("name", "status"), [("leave", 7), ("fail", 1), ("die", -signal.SIGKILL)])
def test_the_status_is_that_of_any_process(forks: Forks, name: str, status: int) -> None:
    with called(forks, name) as fork:
        assert fork.wait(PATIENCE_S) == status


def test_an_exception_is_printed_with_its_trace(forks: Forks) -> None:
    with called(forks, "fail") as fork:
        assert b"ValueError: as asked" in fork.stderr.read()


def test_a_wait_ends_at_its_time_and_a_killed_fork_at_once(forks: Forks) -> None:
    with called(forks, "copy") as fork:
        with pytest.raises(subprocess.TimeoutExpired):
            fork.wait(0.01)
        fork.kill()
        assert fork.wait(PATIENCE_S) == -signal.SIGKILL


def test_an_order_may_be_longer_than_a_pipe_holds(forks: Forks) -> None:
    with called(forks, "tell", "x" * 300_000) as fork:
        assert len(fork.stdout.read()) > 300_000
        assert fork.wait(PATIENCE_S) == 0


def test_a_fork_holds_no_pipe_of_another_one(forks: Forks) -> None:
    with called(forks, "copy") as first, called(forks, "copy") as second:
        first.stdin.close()
        assert first.wait(PATIENCE_S) == 0
        assert first.stdout.read() == b""
        assert second.poll() is None


def test_a_file_of_the_users_folder_hides_no_library(forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "colorsys.py").write_text("raise ImportError('not this one')\n")
    with called(forks, "import_a_library", folder=tmp_path) as fork:
        assert fork.stdout.read() == b"(0.0, 0.0, 0.0)\n"


def test_packages_of_this_process_on_pythonpath_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_there.py").write_text("def begun() -> None:\n    raise SystemExit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Forks("gc.collect", {})
    fork = made.start("only_there.begun", [], {})
    with fork.stdin, fork.stdout, fork.stderr:
        assert fork.wait(PATIENCE_S) == 7
    made.close()


def server_of(fork: Fork) -> int:
    return psutil.Process(fork.pid).ppid()


def test_a_server_that_was_killed_takes_its_forks_with_it_and_is_replaced(forks: Forks) -> None:
    with called(forks, "copy") as before:
        server = server_of(before)
        os.kill(server, signal.SIGKILL)
        until(lambda: is_gone(server))
        with called(forks, "copy") as after:
            assert server_of(after) != server
        assert before.wait(PATIENCE_S) == -signal.SIGKILL
        until(lambda: is_gone(before.pid))


def test_each_of_many_forks_that_end_at_once_has_its_own_status(forks: Forks) -> None:
    made = [forks.start(f"tests.fakes.forked.{name}", [], {}) for name in ("leave", "fail", "die") * 8]
    assert [fork.wait(PATIENCE_S) for fork in made] == [7, 1, -signal.SIGKILL] * 8
    for fork in made:
        for pipe in (fork.stdin, fork.stdout, fork.stderr):
            pipe.close()


KILLED = """
from pathlib import Path
from argosy.local.forks import Forks
from tests.fakes.forked import copy
from tests.unit.local.test_forks import called, server_of

forks = Forks("gc.collect", {"PYTHONPATH": "."})
with called(forks, "copy") as fork:
    print(fork.pid, server_of(fork), flush=True)
    input()
"""


def test_neither_the_server_nor_a_fork_that_reads_its_input_outlives_a_killed_user() -> None:
    user = subprocess.Popen(
        [sys.executable, "-c", KILLED], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with user:
        assert user.stdout is not None
        left = [int(pid) for pid in user.stdout.readline().split()]
        assert len(left) == 2
        user.kill()
    until(lambda: all(map(is_gone, left)))


def test_closing_waits_for_the_forks() -> None:
    forks = Forks("gc.collect", {"PYTHONPATH": str(ROOT)})
    with called(forks, "copy") as fork:
        server = server_of(fork)
        fork.stdin.close()
        forks.close()
        assert is_gone(fork.pid)
        assert is_gone(server)
