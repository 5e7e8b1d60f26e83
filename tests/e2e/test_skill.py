"""The skill file for coding agents: every command of it, as it is typed, in local mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.typed_pages import DOCS, embedded, typed

pytestmark = [pytest.mark.e2e, pytest.mark.pages]
PAGE = "../skill/SKILL.md"


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with embedded() as found:
        yield found


def test_every_command_of_the_skill_works_as_it_is_typed(local: Cluster, tmp_path: Path) -> None:
    said = typed(local, PAGE, tmp_path, "agent-work")
    assert '"SUCCEEDED"' in said
    rows = (tmp_path / "agent-work" / "rows.jsonl").read_text().splitlines()
    assert rows == [f'{{"n": {number}}}' for number in range(8)]


def test_the_skill_names_itself_and_says_when_to_use_it() -> None:
    head = (DOCS / PAGE).read_text(encoding="utf-8").partition("\n---\n")[0]
    assert re.search(r"^name: argosy$", head, re.MULTILINE)
    assert len(re.sub(r"\s+", " ", head.partition("description: ")[2])) < 1_000  # agents load it at every start
