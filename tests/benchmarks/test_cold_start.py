"""How long from a fresh interpreter to a function that can work? Floor 1.0 s, goal 0.7 s (design, section 6)."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.function_environment import FUNCTION_ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import time
began = time.perf_counter()
import argosy.handlers
argosy.handlers.{root}()
print(time.perf_counter() - began)
"""


@pytest.mark.benchmark
@pytest.mark.parametrize("root", ["controller_of_process", "api_of_process"])
def test_a_cold_function_is_ready_within_a_second(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {**os.environ, **FUNCTION_ENVIRONMENT, "PYTHONPATH": str(ROOT / "controller")}
    command = [sys.executable, "-c", PROGRAM.format(root=root)]
    seconds = [
        float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    with capsys.disabled():
        print(f"\ncold {root}: median {statistics.median(seconds):.2f} s of 5 fresh interpreters")
    assert statistics.median(seconds) < 1.0
