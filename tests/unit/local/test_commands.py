"""A command that a local mode forks is the one that was typed: what it prints, its signals and its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from argosy.client.forked_command import folder
from argosy.local.commands import ROOT, ReadyCommands
from argosy.local.forks import Forks
from tests.fakes.local_mode import SharedForks, forks
from tests.fakes.waiting import until

pytestmark = pytest.mark.slow
PORT = 4
PATIENCE_S = 60.0
SPEC = "version: 1\nname: one\nrun: 'true'\narray: {size: 3}\n"


class Counted(SharedForks):
    """The tests' server of forks. count: of what it was asked for here."""

    def __init__(self, server: Forks) -> None:
        self._server, self.count = server, 0  # type: ignore[assignment]

    def send(self, descriptors: Sequence[int]) -> None:
        self.count += 1
        forks().send(descriptors)


@contextmanager
def ready(counted: Counted) -> Iterator[ReadyCommands]:
    made = ReadyCommands(PORT, counted)
    until(listens, PATIENCE_S)
    counted.count = 0
    yield made
    made.close()


def listens() -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(Path(folder()) / str(PORT))) == 0


@pytest.fixture
def server() -> Iterator[Counted]:
    """With SIGINT as in a terminal: a shell's background job ignores it, and so do the commands that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    counted = Counted(forks())
    with ready(counted):
        yield counted
    signal.signal(signal.SIGINT, before)


def line(*words: str, flags: Sequence[str] = ()) -> list[str]:
    usual = ["-B"] if sys.flags.dont_write_bytecode else []
    return [sys.executable, *usual, *flags, "-c", "from argosy.cli.start import main; main()", *words]


def environment(**more: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}, **more}


def outcome(
    *words: str, said: str = "", at: Path | None = None, flags: Sequence[str] = (), **more: str
) -> tuple[object, ...]:
    done = subprocess.run(
        line(*words, flags=flags), input=said.encode(), cwd=at, env=environment(**more), capture_output=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@contextmanager
def reading(at: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command that reads its standard input."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line("validate", "-"), stdin=pipe, stdout=pipe, stderr=pipe, cwd=at, env=environment(), process_group=0
    ) as process:
        until(lambda: forked(at, process), PATIENCE_S)
        yield process
        process.kill()


def forked(at: Path, process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Processes of the command beside the one that was started."""
    return [each for each in psutil.process_iter() if each.pid != process.pid and folder_of(each) == str(at)]


def folder_of(process: psutil.Process) -> str:
    try:
        return str(process.cwd())
    except psutil.Error:
        return ""


@pytest.mark.parametrize(
    ("words", "lines"), [(("validate", "run.yaml"), 0), (("validate", "-"), 100_000), (("runs", "--limit", "none"), 0)]
)
def test_a_forked_command_says_what_the_plain_one_says(
    words: tuple[str, ...], lines: int, server: Counted, tmp_path: Path
) -> None:
    (tmp_path / "run.yaml").write_text(SPEC.replace("3", "many"))
    given = {"said": SPEC + "# a comment\n" * lines, "at": tmp_path, "COLUMNS": "50", "LANG": "C.UTF-8"}
    found = outcome(*words, **given)  # type: ignore[arg-type]
    assert server.count == 1
    assert found == outcome(*words, **given, ARGOSY_NO_WARM="1")  # type: ignore[arg-type]
    assert server.count == 1


def test_ctrl_c_reaches_the_fork_and_its_status_comes_back(server: Counted, tmp_path: Path) -> None:
    with reading(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) in (130, -signal.SIGINT)  # the latter while it starts
    assert server.count == 1


def test_a_signal_that_ends_the_fork_ends_the_command(server: Counted, tmp_path: Path) -> None:
    with reading(tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == -signal.SIGTERM


def test_a_command_that_is_stopped_stands_still_and_goes_on_later(server: Counted, tmp_path: Path) -> None:
    with reading(tmp_path) as process:
        [fork] = forked(tmp_path, process)
        process.send_signal(signal.SIGTSTP)
        until(lambda: {fork.status(), psutil.Process(process.pid).status()} == {psutil.STATUS_STOPPED}, PATIENCE_S)
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate(SPEC.encode(), PATIENCE_S)
        assert (process.returncode, said.count(b"3 tasks")) == (0, 1)


def test_a_killed_command_leaves_no_fork(server: Counted, tmp_path: Path) -> None:
    with reading(tmp_path) as process:
        process.kill()
        process.wait(PATIENCE_S)
        until(lambda: not forked(tmp_path, process), PATIENCE_S)


def test_a_command_outlives_the_local_mode_that_forked_it(tmp_path: Path) -> None:
    with ExitStack() as later:
        with ready(Counted(forks())):
            process = later.enter_context(reading(tmp_path))
        process.communicate(SPEC.encode(), PATIENCE_S)
        assert process.returncode == 0


@pytest.mark.parametrize(
    ("flags", "more"), [((), {"ARGOSY_NO_WARM": "1"}), ((), {"PYTHONPATH": "/nowhere"}), (("-s",), {})]
)
def test_a_command_with_settings_of_its_own_starts_the_plain_way(
    flags: tuple[str, ...], more: dict[str, str], server: Counted
) -> None:
    status, _, error = outcome("statsu", flags=flags, **more)
    assert (status, b"Did you mean 'status'?" in error, server.count) == (2, True, 0)


@pytest.mark.parametrize("limited", [["setpriv", "--no-new-privs"], ["prlimit", "--nofile=200"]])
def test_a_command_with_other_rights_or_limits_starts_the_plain_way(limited: list[str], server: Counted) -> None:
    done = subprocess.run(
        [*limited, *line("statsu")], env=environment(), capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert (b"Did you mean" in done.stderr, server.count) == (True, 0)


def test_a_command_whose_code_has_changed_starts_the_plain_way(server: Counted) -> None:
    module = ROOT / "cli" / "start.py"
    os.utime(module, ns=(module.stat().st_atime_ns, module.stat().st_mtime_ns))  # its time of change is now
    assert outcome("statsu")[0] == 2
    assert server.count == 0


def test_a_local_mode_that_has_ended_or_is_busy_has_commands_start_the_plain_way() -> None:
    Path(folder()).mkdir(parents=True, exist_ok=True)
    ended, busy = Path(folder()) / "1", Path(folder()) / "2"
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        first.bind(str(ended))
        second.bind(str(busy))
        second.listen()
        assert outcome("statsu")[0] == 2
    ended.unlink()
    busy.unlink()
