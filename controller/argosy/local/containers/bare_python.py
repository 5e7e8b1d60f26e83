"""The Python of local mode without its packages: what the image argosy/python is on AWS.

A program that imports a package which it did not ask for fails here as it does there. Each attempt has one of these
environments for itself: what it installs with pip is its own. An image's environments find the packages that its
Dockerfile installs behind their own: pip shadows those of local mode, and never removes or replaces them.
"""

from __future__ import annotations

import ensurepip
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PIP = """#!/bin/sh
exec "{python}" -m pip "$@"
"""


def make(folder: Path, lent: Sequence[Path] = ()) -> Path:
    """A new environment with the standard library and, where this Python brings it along, pip; its interpreter.

    lent: folders outside of it with packages that it finds, too. pip changes nothing outside of an environment.
    """
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
    # Their own .pth files count, too.
    lines = "".join(f"import site; site.addsitedir({str(each)!r})\n" for each in lent)
    (packages / "lent.pth").write_text(lines, encoding="utf-8")
    return programs / "python"


def lend(names: Iterable[str] | None, folder: Path) -> list[Path]:
    """For `make`: a new folder with links to packages of this Python and what they require, without those that it
    lacks; or all of its packages."""
    if names is None:
        return [Path(each) for each in dict.fromkeys(map(sysconfig.get_path, ("purelib", "platlib")))]
    folder.mkdir(parents=True)
    linked: set[str] = set()
    for name in names:
        _link(name, folder, linked)
    return [folder]


def _link(name: str, packages: Path, linked: set[str]) -> None:
    """Share a package and what it requires. linked: those that are shared already, by name."""
    if name in linked:
        return
    linked.add(name)
    with suppress(PackageNotFoundError):
        found = distribution(name)
        for needed in found.requires or ():
            if "extra ==" not in needed and (known := _NAME.match(needed)):
                _link(known[0], packages, linked)
        files = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in files or (found.read_text("top_level.txt") or "").split():  # Debian lists no files
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(found.locate_file(top))).resolve())


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
