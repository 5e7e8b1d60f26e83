"""The features of a plain `pip install argosy`: all but those of an extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from argosy.cli.start import EXTRAS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_library_needs_no_package_of_an_extra() -> None:
    """Every module of the SDK and of the client is imported, and a spec is checked."""
    rooms = [
        path.relative_to(ROOT / "controller").with_suffix("").as_posix().replace("/", ".")
        for room in ("sdk", "client", "figures", "ui", "spec")
        for path in sorted((ROOT / "controller/argosy" / room).rglob("*.py"))
        if path.stem not in ("__init__", "__main__")
    ]
    missing = [module for modules in EXTRAS.values() for module in modules]
    code = (
        f"import sys, importlib\nfor name in {missing!r}: sys.modules[name] = None\n"
        f"for name in {rooms!r}: importlib.import_module(name)\n"
        "import argosy\n"
        "try: argosy.Client('http://127.0.0.1:1').submit({'version': 1})\n"
        "except argosy.InvalidSpec as refused: print(len(refused.faults))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr
