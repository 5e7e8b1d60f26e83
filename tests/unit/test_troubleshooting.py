"""docs/guides/troubleshooting.md quotes reasons word for word: each is found where the code says it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "troubleshooting.md"
# Sentences in code of the first column; "..." means the part that differs.
QUOTED = [
    quoted
    for cell in re.findall(r"^\| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for quoted in re.findall(r"`([^`]+)`", cell)
    if " " in quoted and not quoted.startswith("argosy ")
]


@cache
def texts() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in (ROOT / "controller").rglob("*.py"))


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quoted_reason_is_one_that_argosy_gives(quoted: str) -> None:
    words = quoted.removeprefix("held back by ").removesuffix(" ...").split(" ... ")
    assert all(each in texts() for each in words)


def test_there_are_some() -> None:
    assert len(QUOTED) >= 8
