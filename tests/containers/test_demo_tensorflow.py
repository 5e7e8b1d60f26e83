"""`make demo-tensorflow`: the images' programs through the whole system, with an interruption."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.containers.s3 import CONTAINERS
from tests.readmes import local_options

pytestmark = pytest.mark.tf


def test_the_demo_classifies_every_image_once_although_an_instance_was_taken_away(tmp_path: Path) -> None:
    demo = [sys.executable, "-m", "tests.harness.demo_tensorflow"]
    options = local_options()  # processes, or containers for `make images-test`
    built = ["--runtime", options.engine, "--base-image", str(options.settings.base_image)] if options.engine else []
    done = subprocess.run(
        [*demo, "--out", str(tmp_path), "--python", sys.executable, *built],
        cwd=CONTAINERS.parent,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "summary.json").read_text())
    assert (found["rows"], found["errors"]) == (found["images"], 0)
    assert found["accuracy"] >= 0.85
    assert found["interruptions"] >= 1
    assert found["rowsFromCheckpoints"] > 0
    assert found["usdPerMillionImages"] > 0
    assert [len(each["pinnedGpus"]) for each in found["benchmarks"]] == [1, 4, 8]
    assert found["gpusPinnedTwice"] == 0
