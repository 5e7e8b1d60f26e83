"""Byte code in the functions' zips: the interpreter that writes it, its unchanged use in Lambda, and the message if
nothing can write it."""

from __future__ import annotations

import importlib.machinery
import struct
import sys
from pathlib import Path

import pytest

from stacks import byte_code

VERSION = "3.13"
MAGIC = byte_code.MAGIC_NUMBERS[VERSION]


def command(folder: Path, name: str, script: str) -> Path:
    """An executable that answers as `script` says."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH but the system's own, where no Python 3.13 is."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    byte_code.interpreter.cache_clear()
    return tmp_path / "bin"


def test_the_interpreter_of_the_path_is_taken_if_it_writes_for_the_runtime(only: Path) -> None:
    command(only, "uv", "exit 1")
    python = command(only, "python3.13", f"echo 3 13 {MAGIC}")
    assert byte_code.interpreter(VERSION) == str(python)


@pytest.mark.parametrize("script", ["exit 127", f"echo 3 12 {MAGIC}", "echo 3 13 3560"])
def test_a_stand_in_another_version_and_a_preview_are_passed_over_for_uvs_own(only: Path, script: str) -> None:
    command(only, "python3.13", script)
    fetched = command(only, "fetched", f"echo 3 13 {MAGIC}")
    command(only, "uv", f'[ "$2" = find ] && echo {fetched}')
    assert byte_code.interpreter(VERSION) == str(fetched)


def test_uv_fetches_an_interpreter_where_there_is_none(only: Path) -> None:
    fetched = command(only, "fetched", f"echo 3 13 {MAGIC}")
    there = only / "there"
    command(only, "python3.13", "exit 127")
    command(only, "uv", f'if [ "$2" = install ]; then touch {there}; else [ -e {there} ] && echo {fetched}; fi')
    assert byte_code.interpreter(VERSION) == str(fetched)


def test_without_any_interpreter_synth_says_what_that_costs_and_what_to_do(
    only: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command(only, "python3.13", "exit 127")
    command(only, "uv", "exit 1")
    assert byte_code.interpreter(VERSION) is None
    assert "Install Python 3.13 and deploy again" in capfd.readouterr().err


def test_byte_code_is_taken_without_a_look_at_its_source_and_names_the_path_in_lambda(tmp_path: Path) -> None:
    source = tmp_path / "argosy" / "module.py"
    source.parent.mkdir()
    source.write_text("def f():\n    return 1\n")
    byte_code.write_byte_code(source.parent, sys.executable, root=tmp_path)
    (written,) = source.parent.rglob("*.pyc")
    data = written.read_bytes()
    assert struct.unpack("<I", data[4:8]) == (0b01,)  # PEP 552: hash-based, and the source is not checked
    loader = importlib.machinery.SourcelessFileLoader("module", str(written))
    assert loader.get_code("module").co_filename == "/var/task/argosy/module.py"
