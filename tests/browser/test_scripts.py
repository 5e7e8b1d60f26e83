"""The pages' scripts: their pure functions, by node's own test runner."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine


def test_the_pure_functions_of_the_scripts() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on PATH")
    file = Path(__file__).with_name("dense.test.mjs")
    done = subprocess.run([node, "--test", str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
