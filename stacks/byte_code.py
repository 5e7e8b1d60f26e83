"""Byte code in the functions' zips, compiled by an interpreter of the runtime's minor version, or left out.

Byte code halves the CPU time of a cold start (measured: 1.7 s without, 0.85 s with). Lambda cannot
write any, since its folder is read-only, and only an interpreter of the same minor version can write it beforehand.
The one that runs the CDK is often another, so uv, which `make` installs into .venv, fetches one where there is none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

# The first two bytes of every .pyc of Python 3.13, its releases and no others (Include/internal/pycore_magic_number.h).
MAGIC_NUMBERS = {"3.13": 3571}
IN_LAMBDA = "/var/task"  # where Lambda unpacks a zip: the paths in tracebacks


def uv_command() -> str | None:
    """The uv of PATH, else the one next to this interpreter."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


@cache
def interpreter(version: str) -> str | None:
    """An interpreter of this minor version ("3.13"): the one on PATH, one that uv has, or one that uv can fetch.

    None, with a sentence on stderr, if there is none and none can be had.
    """
    found = shutil.which(f"python{version}")
    if found and _writes_for(found, version):
        return found
    found = _of_uv(uv_command(), version)
    if found is None:
        print(
            f"The functions' zips will hold no byte code: there is no python{version} here and uv could not fetch one. "
            f"Every cold start then computes about 0.8 s longer. Install Python {version} and deploy again to mend it.",
            file=sys.stderr,
        )
    return found


def _of_uv(uv: str | None, version: str) -> str | None:
    if uv is None:
        return None
    find = [uv, "python", "find", "--no-project", "--managed-python", version]
    install = [uv, "python", "install", "--no-bin", version]
    found = _answer(find) or (_answer(install) is not None and _answer(find)) or ""
    return found if found and _writes_for(found, version) else None


def _writes_for(python: str, version: str) -> bool:
    """Runs the interpreter instead of trusting its name: a version manager's shim may be on PATH for a missing
    Python."""
    magic = (
        "import importlib.util as u, sys; print(*sys.version_info[:2], int.from_bytes(u.MAGIC_NUMBER[:2], 'little'))"
    )
    return _answer([python, "-c", magic]) == f"{version.replace('.', ' ')} {MAGIC_NUMBERS[version]}"


def _answer(command: list[str]) -> str | None:
    """The output of a command, or None if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def write_byte_code(folder: Path, python: str, *, root: Path) -> None:
    """A .pyc next to every .py below `folder`, which is a part of the zip whose files are in `root`.

    Unchecked: zipping changes the files' times, and byte code that is checked by time would be thrown away. A file
    that does not compile is left as it is: numpy and others carry some for versions to come.
    """
    command = [python, "-m", "compileall", "-q", "-j", "2", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(root), "-p", IN_LAMBDA, str(folder)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
