"""A habit: the lines that people type in a folder with these files, and what they then see."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.commands import outcome_of

# `refuses WORDS`: the command must not succeed. `run`: with tasks small enough to be started at once.
SHELL = """
refuses() { if "$@"; then echo "not refused: $*" >&2; exit 9; fi; }
run() { argosy run --vcpus 0.25 --memory 128 "$@"; }
"""


@dataclass(frozen=True, kw_only=True)
class Habit:
    """typed: lines of bash, each of which has to exit 0. says, never: patterns of what they print, on either stream.
    source: of the report. is_deep: its tasks take more time than `make test` has.
    """

    number: str
    wanted: str
    typed: str
    says: Sequence[str]
    never: Sequence[str] = ()
    source: str = "an afternoon as a new user"
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    is_deep: bool = False

    def show(self, folder: Path, environment: Mapping[str, str]) -> None:
        """Type it. Fails the test with what was printed unless the verdict is right."""
        for name, text in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)
        done = outcome_of(SHELL + self.typed, folder, **environment)
        said = f"{done.stdout}\n{done.stderr}"
        assert done.returncode == 0, f"{self.typed}\nended with {done.returncode}\n{said}"
        for pattern in self.says:
            assert re.search(pattern, said, re.MULTILINE), f"{self.typed}\ndid not say {pattern!r}\n{said}"
        for pattern in self.never:
            assert not re.search(pattern, said, re.MULTILINE), f"{self.typed}\nsaid {pattern!r}\n{said}"
