"""Runs the command lines of a container's README in a copy of its folder, against an embedded AWS."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from argosy.local.deployment import local_settings
from argosy.local.options import LocalOptions
from tests.fakes.commands import outcome_of

CONTAINERS = Path(__file__).resolve().parents[1] / "containers"
RUN_ID = re.compile(r"\b([a-z][a-z0-9-]*-\d{6}-\d{6}-[a-z0-9]{4})\b")


PYTORCH = CONTAINERS.parent / ".venv-pytorch" / "bin"  # made by `make pytorch`
needs_pytorch = pytest.mark.skipif(
    not (PYTORCH / "python").exists(), reason="there is no .venv-pytorch: `make pytorch`"
)


def local_options() -> LocalOptions:
    """Tasks are processes; for `make images-test` they are containers, in images that are built for the tests."""
    engine, base = os.environ.get("TEST_ENGINE"), os.environ.get("TEST_BASE_IMAGE")
    pythons = {"pytorch-*": str(PYTORCH / "python")}
    return LocalOptions(settings=local_settings(baseImage=base), engine=engine, pythons=pythons, boot_s=0.2, tick_s=0.3)


def command_lines(name: str) -> Iterator[str]:
    """The commands of the fenced blocks, without comments."""
    text = (CONTAINERS / name / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            command = re.sub(r"\s+#.*$", "", line).strip()
            if command and not command.startswith("#"):
                yield command


@dataclass
class Shell:
    """Types a README's lines one after the other; `RUN` in them is the run that was submitted last."""

    home: Path  # it has a copy of the checkout's containers/
    environment: Mapping[str, str]
    folder: Path = field(init=False)
    run_id: str = "RUN"

    def __post_init__(self) -> None:
        shutil.copytree(CONTAINERS, self.home / "containers")
        self.folder = self.home

    def type(self, line: str) -> str:
        """Its output; fails the test unless it exits 0."""
        if line.startswith("cd "):
            self.folder = self.folder / line.removeprefix("cd ")
            return ""
        typed = re.sub(r"\bRUN\b", self.run_id, line)
        done = outcome_of(typed, self.folder, **self.environment)
        assert done.returncode == 0, f"{typed}\n{done.stdout}\n{done.stderr}"
        if " submit " in line and (found := RUN_ID.search(done.stdout)):
            self.run_id = found[1]
        return done.stdout
