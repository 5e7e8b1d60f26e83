"""The wheels that a list of requirements resolves to, for the Python that the program will run with.

pip resolves it once, when a run is submitted: no task asks a package index. The answer is kept in the user's cache for
a day, as is every wheel, so that the next submission finds it at once. pip's own settings (index, certificates,
proxies) apply, as in every other use of it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from argosy.client.errors import ArgosyError, InvalidInput
from argosy.client.packing.archive import Parcel, parcel_of

FRESH_S = 86_400.0  # how long an answer counts: newer versions come out
VERSIONS_NAMED = 8  # for a package without a matching one
GLIBC_LIMIT = 36  # of Debian 12, which the stock image and most others have at least: 2.36
_MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True, slots=True)
class Target:
    """The target of the wheels."""

    python: str  # such as 3.12
    architecture: str = "x86_64"  # x86_64 | arm64
    is_here: bool = False  # this very Python: packages without a wheel are built here

    @classmethod
    def here(cls) -> Target:
        """The Python that runs this program, as local mode's tasks do."""
        return cls(f"{sys.version_info.major}.{sys.version_info.minor}", is_here=True)


def cache_folder() -> Path:
    """Where wheels are kept: XDG's cache folder, or ARGOSY_CACHE."""
    own = os.environ.get("ARGOSY_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(own) if own else Path(base) / "argosy"


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Resolver:
    """Runs pip, and caches its answer. run: executes a command line; now: epoch seconds."""

    folder: Path
    run: Run = _run
    now: Callable[[], float] = time.time

    def wheels(self, requirements: Sequence[str], target: Target) -> list[Parcel]:
        """Sorted by name. Raises InvalidInput if pip finds no answer, ArgosyError if there is no pip."""
        lock = self.folder / "locks" / f"{_digest(requirements, target)}.json"
        known = self._known(lock)
        if known is not None:
            return known
        found = self._resolved(requirements, target)
        lock.parent.mkdir(parents=True, exist_ok=True)
        wheels = [[each.path.name, each.sha256, each.size] for each in found]
        _replace(lock, json.dumps({"at": self.now(), "requirements": sorted(requirements), "wheels": wheels}))
        return found

    def _known(self, lock: Path) -> list[Parcel] | None:
        """The earlier answer, unless it is old, damaged or its wheels are gone."""
        try:
            said = json.loads(lock.read_text())
            parcels = [Parcel(self._place(sha, name), sha, size, "wheel") for name, sha, size in said["wheels"]]
            is_old = self.now() - said["at"] > FRESH_S
        except (OSError, ValueError, KeyError, TypeError):
            return None
        is_whole = all(each.path.is_file() and each.path.stat().st_size == each.size for each in parcels)
        return parcels if is_whole and not is_old else None

    def _place(self, sha256: str, name: str) -> Path:
        return self.folder / "wheels" / sha256 / name

    def _resolved(self, requirements: Sequence[str], target: Target) -> list[Parcel]:
        if importlib.util.find_spec("pip") is None:
            raise ArgosyError(
                "packages are resolved with pip, which this Python does not have.",
                next_step=f"{sys.executable} -m ensurepip, or `uv pip install pip`",
                is_users_fault=True,
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            answer = self.run(pip_command(requirements, target, scratch))
            if answer.returncode:
                raise _refused(requirements, target, answer.stderr or answer.stdout)
            return [self._kept(path) for path in sorted(Path(scratch).glob("*.whl"))]

    def _kept(self, path: Path) -> Parcel:
        found = parcel_of(path, "wheel")
        place = self._place(found.sha256, path.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, place)
        return Parcel(place, found.sha256, found.size, "wheel")


def pip_command(requirements: Sequence[str], target: Target, folder: str) -> list[str]:
    """The command line that puts the wheels into `folder`."""
    pip = [sys.executable, "-m", "pip"]
    always = ["--quiet", "--disable-pip-version-check", "--no-input"]
    if target.is_here:
        return [*pip, "wheel", *always, "--wheel-dir", folder, "--", *requirements]
    machine = _MACHINES[target.architecture]
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC_LIMIT, 4, -1)]
    tags += [f"manylinux2014_{machine}", f"linux_{machine}"]
    platforms = [word for tag in tags for word in ("--platform", tag)]
    python = ["--only-binary=:all:", "--implementation", "cp", "--python-version", target.python]
    return [*pip, "download", *always, "--dest", folder, *python, *platforms, "--", *requirements]


def _refused(requirements: Sequence[str], target: Target, said: str) -> InvalidInput:
    lines = [line.strip() for line in said.splitlines() if line.startswith("ERROR:")] or said.splitlines()[-3:]
    return InvalidInput(
        f"pip finds no wheels of {', '.join(requirements)} for Python {target.python} on {target.architecture}.",
        details=[_newest_named(line.removeprefix("ERROR: "))[:300] for line in lines[:5]],
        next_step="name other versions, or an image that has the packages (--image)",
    )


def _newest_named(line: str) -> str:
    """pip names all existing versions, hundreds, and the newest last."""
    before, found, versions = line.partition("(from versions: ")
    names = versions.rstrip(")").split(", ")
    if not found or len(names) <= VERSIONS_NAMED:
        return line
    return f"{before}(the newest versions: {', '.join(names[-VERSIONS_NAMED:])})"


def _digest(requirements: Sequence[str], target: Target) -> str:
    """The same list in another order has the same key. A package index of the user's own may answer differently."""
    index = {name: value for name, value in sorted(os.environ.items()) if name.startswith("PIP_")}
    asked = {"requirements": sorted(requirements), "target": asdict(target), "pip": index}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _replace(path: Path, text: str) -> None:
    """Written completely or not at all."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.replace(file.name, path)
