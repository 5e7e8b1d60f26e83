"""A container's program really runs, and its whole tree ends when it must."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest

from argosy.local.containers import cleanup_process
from argosy.local.containers.followers import Followers
from argosy.local.containers.process import MARK, OUT_OF_MEMORY, ContainerProcess, Exit, Program
from tests.fakes.waiting import is_gone, until


class Started:
    """A running Python program, its lines and its end."""

    def __init__(
        self, code: str, folder: Path, memory_mib: int | None = None, stop_timeout_s: float = 30.0, mark: str = ""
    ) -> None:
        self.lines: queue.Queue[str] = queue.Queue()
        self.ends: queue.Queue[Exit] = queue.Queue()
        environment = {"PATH": os.environ["PATH"]} | ({MARK: mark} if mark else {})
        program = Program([sys.executable, "-u", "-c", code], environment, folder, memory_mib, stop_timeout_s)
        self.process = ContainerProcess(program, self.lines.put, self.ends.put)

    def line(self) -> str:
        return self.lines.get(timeout=30)

    def end(self) -> Exit:
        ended = self.ends.get(timeout=30)
        self.process.join(120)
        return ended


def test_exit_code_and_lines_of_both_streams_are_reported(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    started = Started("import sys; print('one\\ntwo'); print('three', end='', file=sys.stderr); sys.exit(7)", tmp_path)
    assert started.end() == Exit(7)
    assert [started.line() for _ in range(3)] == ["one", "two", "three"]
    assert set(threading.enumerate()) == before


def test_it_runs_in_its_folder_with_its_environment_only(tmp_path: Path) -> None:
    started = Started("import os; print(os.getcwd(), sorted(os.environ))", tmp_path)
    assert started.end() == Exit(0)
    line = started.line()
    assert line.startswith(str(tmp_path))
    assert "AWS_" not in line


def test_a_signal_is_128_and_its_number(tmp_path: Path) -> None:
    started = Started("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", tmp_path)
    assert started.end().exit_code == 139


def test_stop_asks_first(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "print('ready'); time.sleep(3600)"
    )
    started = Started(code, tmp_path)
    assert started.line() == "ready"
    started.process.stop()
    assert started.end() == Exit(143)


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready'); time.sleep(3600)"
    started = Started(code, tmp_path, stop_timeout_s=0.2)
    assert started.line() == "ready"
    started.process.stop()
    assert started.end() == Exit(137)


def test_stopping_what_has_ended_is_harmless(tmp_path: Path) -> None:
    started = Started("pass", tmp_path)
    started.end()
    started.process.stop()
    started.process.kill()
    started.process.join(120)


def test_a_tree_that_takes_too_much_memory_is_killed_for_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'x = bytearray(300 << 20); x[::4096] = b\"x\" * len(x[::4096]);"
        " import time; time.sleep(3600)'])"
    )
    started = Started(code, tmp_path, memory_mib=150)
    assert started.end() == Exit(137, OUT_OF_MEMORY)
    assert re.fullmatch(r"argosy: killed: it used \d{3,4} MiB, and the limit is 150 MiB", started.line())


def test_address_space_that_is_only_reserved_does_not_count(tmp_path: Path) -> None:
    code = "import mmap, time; m = mmap.mmap(-1, 4 << 30); print('mapped'); time.sleep(0.5)"
    assert Started(code, tmp_path, memory_mib=300).end() == Exit(0)


def test_what_the_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    code = "import subprocess\nprint(subprocess.Popen(['sleep', '3600']).pid)"
    started = Started(code, tmp_path)
    assert started.end() == Exit(0)
    child = int(started.line())
    until(lambda: is_gone(child))


DAEMON = """
import os, time
if os.fork():
    os.wait()
    os._exit(0)
os.setsid()
if child := os.fork():
    os.write(1, b"%d\\n" % child)
    os._exit(0)
os.setsid()
os.closerange(0, 3)
time.sleep(600)
"""


def test_a_daemon_ends_with_the_program_that_started_it_and_no_others(tmp_path: Path) -> None:
    """It has left the group, the session and its parents: `nohup setsid` does, and so do servers."""
    (tmp_path / "daemon.py").write_text(DAEMON)
    start = "import subprocess, sys; subprocess.run([sys.executable, '-u', 'daemon.py'], check=True)"
    kept = Started(f"{start}; import time; time.sleep(600)", tmp_path, mark="kept")
    try:
        theirs = int(kept.line())
        ended = Started(start, tmp_path, mark="ended")
        pid = int(ended.line())
        assert ended.end() == Exit(0)
        assert until(lambda: is_gone(pid))
        assert not is_gone(theirs)
    finally:
        kept.process.kill()
        kept.end()
    assert until(lambda: is_gone(theirs))


def test_a_daemon_that_keeps_the_pipe_open_does_not_hold_up_the_end(tmp_path: Path) -> None:
    code = "import subprocess\nprint(subprocess.Popen(['sleep', '3600'], start_new_session=True).pid)"
    started = Started(code, tmp_path)
    try:
        assert started.end() == Exit(0)
    finally:
        os.kill(int(started.line()), 9)


def test_a_line_without_end_is_cut_and_bytes_that_are_no_text_are_marked(tmp_path: Path) -> None:
    started = Started("import os\nfor _ in range(40): os.write(1, b'\\xff' * 10_000)", tmp_path)
    started.end()
    lines = [started.lines.get_nowait() for _ in range(started.lines.qsize())]
    assert "".join(lines) == "\ufffd" * 400_000
    assert len(lines) > 1


def test_a_program_that_does_not_exist_is_an_os_error(tmp_path: Path) -> None:
    program = Program(["/no/such/program"], {}, tmp_path, None)
    with pytest.raises(FileNotFoundError):
        ContainerProcess(program, print, print)


def test_the_end_of_a_program_is_seen_where_the_kernel_has_no_descriptors_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    started = Started("print('still here'); raise SystemExit(3)", tmp_path)
    assert started.end() == Exit(3)
    assert started.line() == "still here"


def test_a_program_runs_and_ends_with_what_macos_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has neither of these there before 3.13, and killing a group that is a zombie is not permitted."""

    def kill(group: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.delattr(os, "waitid")
    monkeypatch.setattr(os, "killpg", kill)
    started = Started("import os; print(os.getpid()); raise SystemExit(3)", tmp_path)
    assert started.end() == Exit(3)
    assert int(started.line()) > 0


def test_a_program_that_closes_its_output_is_followed_to_its_end(tmp_path: Path) -> None:
    started = Started("import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(4)", tmp_path)
    assert started.end() == Exit(4)


def test_programs_one_after_the_other_share_a_thread(tmp_path: Path) -> None:
    names: list[str] = []
    program = Program(["true"], {"PATH": os.environ["PATH"]}, tmp_path, None)
    followers = Followers()
    for _ in range(3):
        process = ContainerProcess(
            program, print, lambda ended: names.append(threading.current_thread().name), followers
        )
        process.join(120)
    followers.close()
    assert len(names) == 3
    assert all(name.startswith("argosy-task") for name in names)


FOLLOWS = """
import os, signal, sys
from pathlib import Path
from argosy.local.containers.followers import Followers
from argosy.local.containers.process import ContainerProcess, Program
followers = Followers()
loop = "trap '' HUP TERM; sleep 3600 & echo $!; wait"
program = Program(["sh", "-c", loop], {"PATH": os.environ["PATH"]}, Path("/"), None)
done = Program(["true"], {"PATH": os.environ["PATH"]}, Path("/"), None)
ContainerProcess(done, print, lambda ended: None, followers).join(120)
process = ContainerProcess(program, lambda line: print(process.pid, line, flush=True), print, followers)
process.join(3600)
"""


def test_programs_of_a_local_mode_that_is_killed_are_killed_with_all_they_started() -> None:
    with subprocess.Popen([sys.executable, "-c", FOLLOWS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        process.kill()
    assert len(pids) == 2
    for pid in pids:
        until(partial(is_gone, pid))


def test_what_has_ended_is_not_mourned_and_an_orderly_end_leaves_nothing_to_do() -> None:
    lines = ["+ 1", "+ 2", "- 1", "label podman argosy.local.port=1"]
    assert cleanup_process.watch([*lines, "mps /tmp/a b/pipes"]) == (
        {2},
        [("podman", "argosy.local.port=1")],
        ["/tmp/a b/pipes"],
    )
    assert cleanup_process.watch([*lines, "well"]) == (set(), [], [])


def test_containers_of_a_local_mode_that_is_killed_are_removed(tmp_path: Path) -> None:
    engine, log = tmp_path / "engine", tmp_path / "log"
    engine.write_text(f'#!/bin/sh\necho "$@" >> {log}\n[ "$1" = ps ] && echo one two\n')
    engine.chmod(0o700)
    gone = subprocess.Popen(["true"])
    gone.wait()
    cleanup_process.clean([gone.pid], [(str(engine), "mine=1")], [])
    assert log.read_text().splitlines() == ["ps --all --quiet --filter label=mine=1", "rm --force one two"]


def test_followers_continue_without_the_process_that_waits_for_their_end() -> None:
    followers = Followers()
    for child in psutil.Process().children():
        if cleanup_process.__file__ in child.cmdline():
            child.kill()
            child.wait()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(followers.forget, range(100)))
    followers.close()
