"""Which tests execute a line, and how long do they take? One run of each part of the suite under coverage says so."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from coverage import CoverageData

from tests.mutations.mutants import PACKAGES, ROOT

# The tests that reach the packages within one process. Left out: tests/e2e, tests/stacks, and tests/unit/{local,
# client}, which go through servers or never get there; tests/simulation is the other column.
PARTS = (
    *(f"tests/unit/{name}" for name in (
        "sharing", "sdk", "api", "lifecycle", "scheduler", "market", "engine", "aws", "messages", "model", "planning",
        "spec", "settings", "figures", "cli/runs", "harness/simulation", "test_handlers.py", "test_reference.py",
        "test_state_invariants.py",
    )),
    "tests/properties", "tests/protocol", "tests/scenarios",
)  # fmt: skip
_DURATION = re.compile(r"^([0-9.]+)s (?:setup|call|teardown) +(\S.*)$", re.MULTILINE)


class Covering:
    """What `make` left in a folder: for each part the coverage with contexts, and the seconds of each test."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._data = []
        for part in PARTS:
            self.seconds |= json.loads(_file(folder, part, "json").read_text())["seconds"]
            data = CoverageData(str(_file(folder, part, "coverage")))
            data.read()
            self._data.append(data)

    def tests_of(self, path: str, first: int, last: int) -> dict[str, float]:
        """Seconds by the id of each test that executes one of these lines, the quickest first. Line 0 is the whole
        package: code that runs once, at its import, is used by all of it."""
        found: set[str] = set()
        for data in self._data:
            for file in data.measured_files():
                if not first and Path(file).parent.name == Path(path).parent.name:
                    found |= _contexts(data, file)
                elif file.endswith("/" + path):
                    found |= _contexts(data, file, range(first, last + 1))
        return {test: self.seconds[test] for test in sorted(found, key=lambda test: self.seconds[test])}


def _contexts(data: CoverageData, file: str, lines: range | None = None) -> set[str]:
    """The tests that execute the file, or these lines of it."""
    by_line = data.contexts_by_lineno(file)
    wanted = by_line.values() if lines is None else (by_line.get(line, ()) for line in lines)
    return {context.rpartition("|")[0] for contexts in wanted for context in contexts if context}


def make(folder: Path) -> None:
    """Run the parts whose tests have changed since."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        seconds, digest = _file(folder, part, "json"), _digest(part)
        if seconds.exists() and json.loads(seconds.read_text())["digest"] == digest:
            continue
        print(f"coverage of {part}", file=sys.stderr, flush=True)
        seconds.write_text(json.dumps({"digest": digest, "seconds": _run(folder, part)}))


def _run(folder: Path, part: str) -> dict[str, float]:
    settings = _file(folder, part, "ini")
    sources = "".join(f"\n    controller/argosy/{package}" for package in PACKAGES)
    settings.write_text(f"[run]\nbranch = false\ndata_file = {_file(folder, part, 'coverage')}\nsource ={sources}\n")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--cov", f"--cov-config={settings}"]
    words += [
        "--cov-context=test",
        "--cov-report=",
        "--durations=0",
        "--durations-min=0",
        "-o",
        "faulthandler_timeout=1800",
        part,
    ]
    said = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if said.returncode:
        raise SystemExit(f"The tests of {part} fail without any mutant:\n{said.stdout[-3000:]}")
    took: dict[str, float] = {}
    for seconds, test in _DURATION.findall(said.stdout):
        took[test] = took.get(test, 0.0) + float(seconds)
    return took


def _file(folder: Path, part: str, kind: str) -> Path:
    return folder / f"{part.replace('/', '-').removesuffix('.py')}.{kind}"


def _digest(part: str) -> str:
    """Digest of the tests' text: with the same one, other mutants need no new run."""
    digest = hashlib.sha256()
    for path in _texts(ROOT / part):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _texts(at: Path) -> Iterator[Path]:
    return iter([at] if at.is_file() else sorted(at.rglob("*.py")))
