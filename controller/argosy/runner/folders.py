"""The folder of a runner: the first writable one of the container."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from argosy.model.exit_codes import TEMPORARY
from argosy.runner.order import RunnerFault

_FIXED = ("/argosy", "/tmp", "/dev/shm")


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """One attempt's own folder and its contents. All paths are absolute."""

    root: Path

    @property
    def program(self) -> Path:
        return self.root / "program"

    @property
    def archives(self) -> Path:
        """The place to unpack archives that no other attempt of this process shares."""
        return self.root / "archives"

    @property
    def inputs(self) -> Path:
        return self.root / "in"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def staging(self) -> Path:
        """The place for links to files that are being saved, on the same file system."""
        return self.root / "staging"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def scratch(self) -> Path:
        return self.root / "tmp"

    @property
    def stdout(self) -> Path:
        """The program's standard output, if that is the result."""
        return self.root / "stdout"


@contextmanager
def work_folder(roots: list[Path]) -> Iterator[WorkFolder]:
    """A new one in the first writable of these, removed at the end. Raises RunnerFault."""
    made = WorkFolder(_made_in(roots))
    try:
        for each in (made.inputs, made.out, made.home, made.scratch):
            each.mkdir()
        yield made
    finally:
        shutil.rmtree(made.root, ignore_errors=True)  # the container's end removes it too


def roots_of(environment: Mapping[str, str]) -> list[Path]:
    """The folders to try, in this order."""
    named = environment.get("TMPDIR")
    first, *rest = _FIXED
    return [Path(each) for each in (first, named, *rest) if each]


def _made_in(roots: list[Path]) -> Path:
    for root in roots:
        if root.is_dir() and os.access(root, os.W_OK | os.X_OK):
            try:
                return Path(tempfile.mkdtemp(prefix="argosy-", dir=root.resolve()))
            except OSError:
                continue  # full, or read-only in a way that access(2) does not tell
    raise RunnerFault(TEMPORARY, f"none of {', '.join(map(str, roots))} can be written: the program needs a folder")
