"""Every part of `make gpu-check` on CPUs, with stand-ins for nvidia-smi and MPS."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.mps import install_mps
from tests.fakes.nvidia_smi import install_nvidia_smi
from tests.readmes import PYTORCH, needs_pytorch

# It takes most of two minutes of both processors.
pytestmark = [pytest.mark.engine, pytest.mark.deep, pytest.mark.e2e, needs_pytorch]

ROOT = Path(__file__).resolve().parents[2]
LISTED = "echo '0, GPU-11111111-2222-3333-4444-555555555555, Stand-in, 24576, Disabled'"


def test_every_part_runs_on_cpus_with_stand_ins(tmp_path: Path) -> None:
    install_mps(tmp_path)
    install_nvidia_smi(tmp_path, listed=LISTED)
    words = [sys.executable, "-m", "tests.harness.gpu_check", "--on-cpu", "--python", str(PYTORCH / "python")]
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = subprocess.run(
        words, cwd=ROOT, env=dict(os.environ, PATH=path), capture_output=True, text=True, timeout=600, check=False
    )
    first, head, *rows, _ = ended.stdout.splitlines()
    assert (ended.returncode, "1 x Stand-in (24 GiB)" in first) == (0, True), ended.stdout + ended.stderr
    verdicts = [row[head.index("VERDICT") :].strip() for row in rows]
    assert verdicts == ["ok", "-", "ok", "-", "ok"], ended.stdout
