"""`argosy demo --tour`, short: every command works as it is typed, tasks follow, and nothing is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARGOSY = [sys.executable, "-c", "from argosy.cli.main import main; main()"]

pytestmark = [pytest.mark.e2e, pytest.mark.deep]  # minutes on a busy machine; tests/scenarios/test_tour.py is quick


def test_a_tour_over_two_instances_ends_with_everything_free() -> None:
    done = subprocess.run(
        [*ARGOSY, "demo", "--tour", "2", "--json"], cwd=ROOT, capture_output=True, text=True, timeout=540, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    typed = [step["command"] for step in found["steps"]]
    assert [each for each in typed if "cluster" in each] == [
        "argosy cluster scale 1", "argosy cluster scale 2", "argosy cluster scale 0",
    ]  # fmt: skip
    assert {"argosy env rollback web --wait", "argosy env delete web"} <= {*typed}
    assert found["slowestSeconds"] <= found["mostSeconds"] == 120.0
    assert "argosy: 0 instances" in done.stderr
    assert "all instances are free" in done.stderr
