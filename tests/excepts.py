"""Which `except` was executed by no test? Reads the measurements of `pytest --cov`.

.venv/bin/python -m pytest --cov --cov-config=tests/coverage-of-everything.ini ...
.venv/bin/python -m tests.excepts [.coverage]
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).parents[1]


def handlers(path: Path) -> Iterator[tuple[int, int]]:
    """(line of the `except`, first line of its body) of each handler of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            yield node.lineno, node.body[0].lineno


def main() -> int:
    data = CoverageData(sys.argv[1] if len(sys.argv) > 1 else str(ROOT / ".coverage"))
    data.read()
    measured = {Path(name) for name in data.measured_files()}
    never, total = [], 0
    for path in sorted((ROOT / "controller").rglob("*.py")):
        executed = set(data.lines(str(path)) or ()) if path in measured else set()
        for line, body in handlers(path):
            total += 1
            if body not in executed:
                never.append(f"{path.relative_to(ROOT)}:{line}")
    print("\n".join(never))
    print(f"{total - len(never)} of {total} handlers were executed")
    return 1 if never else 0


if __name__ == "__main__":
    sys.exit(main())
