"""Readers of outside text withstand a minute of a coverage-guided fuzzer."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
has_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris has wheels for Linux on x86-64 only"
)


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_that_the_fuzzer_begins_with_passes(name: str) -> None:
    for seed in TARGETS[name].seeds:
        TARGETS[name].one_input(seed)


@has_atheris
@pytest.mark.deep
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_of_a_minute_makes_a_reader_fail(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "tests.fuzz.run", name, "--seconds", "60"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4_000:]
    inputs = re.search(r"stat::number_of_executed_units: (\d+)", ended.stderr)
    assert inputs is not None
    with capsys.disabled():
        print(f"\n{name}: {int(inputs[1]):,} inputs, none failed")
    assert int(inputs[1]) > 1_000
