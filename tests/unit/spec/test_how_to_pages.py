"""Every spec in the user documents is one that can be submitted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argosy.api.admission.specs import check_spec
from argosy.spec.file import check_text

DOCS = Path(__file__).parents[3] / "docs"
SPECS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.rglob("*.md"))
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    if block.startswith("version:") and "\nqueues:" not in block  # a document about sharing
]


@pytest.mark.parametrize("block", SPECS)
def test_a_spec_of_a_page_is_accepted(block: str) -> None:
    check_text(block.encode(), is_json=False, check=check_spec)


def test_every_page_is_listed() -> None:
    listed = set(re.findall(r"\(([a-z-]+\.md)\)", (DOCS / "guides" / "README.md").read_text(encoding="utf-8")))
    assert listed == {page.name for page in DOCS.glob("guides/*.md")} - {"README.md"}
