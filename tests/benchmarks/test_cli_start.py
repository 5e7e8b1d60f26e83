"""How long does `argosy --help` take? Goal 0.3 s (DESIGN section 6), from the start of the process to its end."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

GOAL_S = 0.3
TRIES = 7


@pytest.mark.benchmark
def test_help_takes_under_0_3_s() -> None:
    """The median of seven starts, so that one short load of the machine does not decide."""
    command = [sys.executable, "-c", "from argosy.cli.main import main; main()", "--help"]
    times = []
    for _ in range(TRIES):
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - begun)
    median = sorted(times)[TRIES // 2]
    print(f"argosy --help: median {median:.3f} s, worst {max(times):.3f} s of {TRIES}")
    assert median < GOAL_S
