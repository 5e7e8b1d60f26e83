"""docs/maintainers/predecessors.md has a row for each feature of a predecessor, and the tests that it names exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "maintainers" / "predecessors.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]*) \| (yes|partly|no) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`tests/([\w/]+)\.py::(test_\w+)`")
ITEMS = 98


def rows() -> list[tuple[int, str, str]]:
    """(number, whether it is here, the tests or the missing part)."""
    return [(int(each[1]), each[4], each[5]) for each in _ROW.finditer(PAGE)]


def test_there_is_one_row_for_each_of_the_ninety_eight() -> None:
    assert [number for number, _, _ in rows()] == list(range(1, ITEMS + 1))


def test_every_test_that_is_named_exists() -> None:
    named = _TEST.findall(PAGE)
    assert len(named) > ITEMS

    def defines(file: str, name: str) -> bool:
        path = ROOT / "tests" / f"{file}.py"
        return path.is_file() and re.search(rf"^def {name}\(", path.read_text("utf-8"), re.MULTILINE) is not None

    assert [f"{file}::{name}" for file, name in named if not defines(file, name)] == []


def test_what_is_here_names_a_test_and_what_is_missing_a_reason() -> None:
    for number, here, said in rows():
        reason = _TEST.sub("", said).strip()
        assert here == "no" or _TEST.search(said), number
        assert here == "yes" or reason, number


def test_the_page_counts_its_rows() -> None:
    count = Counter(here for _, here, _ in rows())
    said = re.sub(r"\s+", " ", PAGE)
    assert f"Argosy has {count['yes']} of them, {count['partly']} in part, and lacks {count['no']}." in said
