"""The Python of local mode without its packages: what the image argosy/python is on AWS.

A program that imports a package which it did not ask for fails here as it does there. Each attempt has one of these
environments for itself: what it installs with pip is its own.
"""

from __future__ import annotations

import ensurepip
import os
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_PIP = """#!/bin/sh
exec "{python}" -m pip "$@"
"""


def make(folder: Path) -> Path:
    """A new environment with the standard library and, where this Python brings it along, pip; its interpreter."""
    base = Path(getattr(sys, "_base_executable", "") or os.path.realpath(sys.executable))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    packages, programs = folder / "lib" / f"python{version}" / "site-packages", folder / "bin"
    packages.mkdir(parents=True)
    programs.mkdir()
    settings = f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
    (folder / "pyvenv.cfg").write_text(settings, encoding="utf-8")
    for name in ("python", "python3", f"python{version}"):
        (programs / name).symlink_to(base)
    if pip := _bundled_pip():
        (packages / "bundled-pip.pth").write_text(f"{pip}\n", encoding="utf-8")  # pip works from its wheel
        for name in ("pip", "pip3"):
            (programs / name).write_text(_PIP.format(python=programs / "python"), encoding="utf-8")
            (programs / name).chmod(0o755)
    return programs / "python"


@cache
def _bundled_pip() -> Path | None:
    folders = (sysconfig.get_config_var("WHEEL_PKG_DIR"), Path(ensurepip.__file__).parent / "_bundled")
    wheels = (wheel for each in folders if each for wheel in sorted(Path(each).glob("pip-*.whl")))
    return next(wheels, None)


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Without the way to the environment that local mode itself runs in."""
    ours = {str(Path(sys.executable).parent), str(Path(sys.prefix) / "bin")} if sys.prefix != sys.base_prefix else set()
    path = [each for each in environment.get("PATH", "").split(os.pathsep) if each not in ours]
    kept = {name: value for name, value in environment.items() if name != "VIRTUAL_ENV"}
    return {**kept, "PATH": os.pathsep.join(path)} if "PATH" in kept else kept
