"""Are the worked examples in docstrings right?"""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

CONTROLLER = Path(__file__).resolve().parents[2] / "controller"
EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)
MODULES = [
    ".".join(path.relative_to(CONTROLLER).with_suffix("").parts)
    for path in sorted(CONTROLLER.rglob("*.py"))
    if EXAMPLE.search(path.read_text(encoding="utf-8"))
]
ALGORITHMS = {
    "argosy.sharing.fill",
    "argosy.sharing.victims",
    "argosy.scheduler.taking_room.drain_choice",
    "argosy.market.allocation.allocate",
    "argosy.aws.launcher",
    "argosy.scheduler.services.rollout",
}


@pytest.mark.parametrize("module", MODULES)
def test_an_example_in_a_docstring_gives_what_it_says(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted
    assert not found.failed


def test_algorithms_that_need_an_idea_open_with_an_example_that_runs() -> None:
    assert set(MODULES) >= ALGORITHMS
