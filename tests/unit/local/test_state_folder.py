"""Folders of the functions' logs: gone with their process, also when it was killed, unless they are worth reading."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from argosy.local.state_folder import StateFolder

KILLED = """
import os, signal
from argosy.local.state_folder import StateFolder
folder = StateFolder()
(folder.path / "log").write_text("x")
print(folder.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_goes_with_its_process_unless_it_is_kept() -> None:
    gone, kept = StateFolder(), StateFolder()
    (kept.path / "log").write_text("why")
    gone.close(keep=False)
    kept.close(keep=True)
    StateFolder().close(keep=False)
    assert not gone.path.exists()
    assert [each.name for each in kept.path.iterdir()] == ["log"]


def test_the_folder_of_a_killed_process_goes_at_the_next_start(temporary: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False)
    left = Path(done.stdout.strip())
    assert done.returncode == -signal.SIGKILL
    assert (left / "log").read_text() == "x"
    own = StateFolder()
    assert list(temporary.iterdir()) == [own.path]
    own.close(keep=False)


def test_a_folder_in_use_stays(temporary: Path) -> None:
    first, second = StateFolder(), StateFolder()
    assert sorted(temporary.iterdir()) == sorted([first.path, second.path])
    for folder in (first, second):
        folder.close(keep=False)


def test_a_strangers_folder_of_that_name_stays(temporary: Path) -> None:
    (temporary / "argosy-local-strange").mkdir()
    (temporary / "argosy-local-link").mkdir()
    (temporary / "argosy-local-link" / "in-use").symlink_to("/etc/hostname")
    StateFolder().close(keep=False)
    assert len(list(temporary.iterdir())) == 2
