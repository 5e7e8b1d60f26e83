"""The wheel, built from a copy of the checkout so that no build folder is left behind, and unpacked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "controller", "containers")
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def copy_of_the_checkout(folder: Path) -> Path:
    for name in SOURCES:
        copied = folder / name
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copied, ignore=shutil.ignore_patterns("*.egg-info"))
        else:
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copied)
    return folder


def unpacked_wheel(checkout: Path, folder: Path) -> Path:
    """The folder with what `checkout`'s wheel installs. Needs no network: setuptools is there already."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", BUILD, str(folder)]
    built = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site = folder / "site"
    with zipfile.ZipFile(folder / built.stdout.splitlines()[-1]) as wheel:
        wheel.extractall(site)
    return site


def bring_byte_code(site: Path) -> None:
    """Put the checkout's byte code beside the same modules of an unpacked wheel, where pip would have compiled them."""
    for module in site.rglob("*.py"):
        source = ROOT / "controller" / module.relative_to(site)
        compiled = Path(cache_from_source(str(source)))
        if source.is_file() and compiled.is_file() and source.read_bytes() == module.read_bytes():
            os.utime(module, (source.stat().st_atime, source.stat().st_mtime))
            copied = Path(cache_from_source(str(module)))
            copied.parent.mkdir(exist_ok=True)
            shutil.copy(compiled, copied)
