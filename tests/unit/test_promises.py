"""docs/maintainers/notes/promises.md quotes its pages, and the invariants that it names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "maintainers" / "notes" / "promises.md"
AUDIT = ROOT / "tests" / "harness" / "simulation" / "audit"
_SECTION = re.compile(r"^## \[.+\]\((.+)\)$")
_ROW = re.compile(r"^\| (?!promise|--)(.+) \| (.+) \|$")


def rows() -> Iterator[tuple[Path, str, list[str]]]:
    """(page, words of it, names of what holds them)."""
    of = PAGE
    for line in PAGE.read_text("utf-8").splitlines():
        if section := _SECTION.match(line):
            of = PAGE.parent / section[1]
        elif (row := _ROW.match(line)) and not row[2].startswith("nothing: "):
            yield of, row[1], row[2].split(", ")
        elif row:
            yield of, row[1], []


def test_every_promise_still_stands_on_its_page() -> None:
    texts = {page: " ".join(page.read_text("utf-8").split()) for page, _, _ in rows()}
    assert [words for page, words, _ in rows() if words not in texts[page]] == []
    assert len(texts) == 9


def test_every_invariant_that_is_named_exists() -> None:
    """`test_repository` looks for the tests."""
    known = set(re.findall(r'"(\w+)"', "".join(path.read_text("utf-8") for path in AUDIT.glob("*.py"))))
    named = [name for _, _, names in rows() for name in names]
    assert [name for name in named if name not in known and not re.fullmatch(r"`test_\w+`", name)] == []
