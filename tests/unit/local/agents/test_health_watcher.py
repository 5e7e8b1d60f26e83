"""A health command is really run: with the environment and in the folder of the task's process."""

from __future__ import annotations

import os
import queue
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.client.entering.way_in import WayIn
from argosy.local.agents.health_watcher import HealthWatcher
from tests.fakes.waiting import until

QUICK = {"interval": 0.05, "timeout": 5, "retries": 2}


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    told = {"PATH": "/usr/bin:/bin", "COLOUR": "green"}
    with subprocess.Popen(["sleep", "3600"], env=told, cwd=tmp_path) as process:
        yield process
        process.kill()


def watched(pid: int, **check: Any) -> tuple[HealthWatcher, queue.Queue[str]]:
    said: queue.Queue[str] = queue.Queue()
    watcher = HealthWatcher({**QUICK, **check}, lambda: WayIn(pid=pid) if pid else None, said.put)
    watcher.start()
    return watcher, said


def test_it_follows_what_the_command_says_in_the_tasks_own_surroundings(
    program: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    watcher, said = watched(program.pid, command=["CMD-SHELL", 'test "$COLOUR" = green && test -e well'])
    assert said.get(timeout=30) == "UNHEALTHY"
    (tmp_path / "well").touch()
    assert said.get(timeout=30) == "HEALTHY"
    (tmp_path / "well").unlink()
    assert said.get(timeout=30) == "UNHEALTHY"
    watcher.stop()
    watcher.join(120)
    assert said.empty()


@pytest.mark.parametrize("command", [["CMD", "/no/such/program"], ["CMD", "sleep", "3600"], ["CMD", "false"]])
def test_a_command_that_fails_hangs_or_is_not_there_has_failed(
    program: subprocess.Popen[bytes], command: list[str]
) -> None:
    watcher, said = watched(program.pid, command=command, timeout=0.2)
    assert said.get(timeout=30) == "UNHEALTHY"
    watcher.stop()
    watcher.join(120)


@pytest.mark.parametrize("pid", [0, 2**22 - 1])
def test_where_there_is_nothing_to_get_into_it_has_failed(pid: int) -> None:
    watcher, said = watched(pid, command=["CMD", "true"])
    assert said.get(timeout=30) == "UNHEALTHY"
    watcher.stop()
    watcher.join(120)


def test_a_command_that_still_runs_when_the_container_ends_is_killed(
    program: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    watcher, said = watched(program.pid, command=["CMD-SHELL", "echo $$ > pid; exec sleep 3600"], timeout=3600)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    watcher.stop()
    watcher.join(120)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert said.empty()
