"""The words that docs/style.md rules out, looked for in documents, code and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("controller", "stacks", "containers", "docs", "tests/harness")
KINDS = {".py", ".pyi", ".md", ".go", ".sh", ".js", ".html", ".yaml"}
KEPT = {"decisions", "notes", "planted-bugs.md", "style.md"}  # records of their day, and the page that quotes words

# The words that are out, and the words to use instead.
OUT = {
    r"nobody(?:'s)?": "no user, no run, none",
    r"whoever|whomever": "the person, the process, any caller that",
    r"anew": "again",
    r"(?:is|are|was|were|be) told(?! to\b| apart)": "gets, receives, reports",
    r"who waits": "a run that waits",
    r"dear(?:er|est)?": "expensive",
    r"in vain": "without success",
    r"he|him|his|himself": "it for things, they for people",
    r"so many": "that many, a number of",
    r"(?:come|comes|came) along": "the history, the change",
    r"thereof|whereof|hereby|therein": "of it, by this",
    r"somebody|anybody|everybody": "a user, a person, every user",
    r"all the same": "still, anyway",
    r"(?:goes|go|went) on": "continues, resumes",
    r"told to stop": "stopped, being stopped",
    r"knows? no": "has no",
    r"lies (?:in|below|beside)": "is in",
    r"stands? (?:lower|higher|beside)": "is lower, is next to",
    r"likewise": "the same, as above",
    r"still to come": "in the future",
    r"for ever": "forever",
}
_WORDS = re.compile(rf"(?<![\w`.-])(?:{'|'.join(OUT)})(?![\w`-])", re.IGNORECASE)


def ruled_out(text: str) -> Iterator[tuple[int, str]]:
    """(line, word) of each word of the text that is out."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, found.group().lower()) for found in _WORDS.finditer(line))


_MERGED = re.compile(r"[a-z`)*][.:] -(?: |$)", re.MULTILINE)


def texts() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *found]


def pages() -> list[Path]:
    return [path for path in texts() if path.name != "CHANGELOG.md" and not KEPT & set(path.parts)]


@pytest.mark.parametrize("word", ["Nobody", "is told of it", "dearer", "for him", "It went on", "all the same"])
def test_a_ruled_out_word_is_found_anywhere(word: str) -> None:
    assert len(list(ruled_out(f"a line\nand here {word} stands"))) == 1


def test_names_and_other_words_are_left_alone() -> None:
    assert (
        list(
            ruled_out("`nobody` the user `nobody-1`, clearer, is told apart, told to wait, http.NoBody, history, cache")
        )
        == []
    )


def test_documents_code_and_commands_use_plain_words() -> None:
    found = {
        str(p.relative_to(ROOT)): seen for p in pages() if (seen := list(ruled_out(p.read_text(encoding="utf-8"))))
    }
    assert found == {}, f"docs/style.md; instead: {OUT}"


def test_each_item_of_a_list_begins_its_own_line() -> None:
    """An editor that wraps lines may merge items into one paragraph."""
    found = {
        str(p.relative_to(ROOT)): seen for p in texts() if (seen := _MERGED.findall(p.read_text(encoding="utf-8")))
    }
    assert found == {}
