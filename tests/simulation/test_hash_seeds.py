"""Does a trial write the same whatever Python's hash seed is? Otherwise the order of a set reaches the stored state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRIALS = """
from tests.harness.commit_digests import digest_of
print(digest_of(4, faulty=True))
"""


@pytest.mark.slow
def test_what_trials_store_does_not_depend_on_the_hash_seed() -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", TRIALS], cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    ]
    first, second = (process.communicate()[0].decode() for process in started)
    assert first.count("faults") == 1
    assert first == second
