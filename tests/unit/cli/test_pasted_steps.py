"""A next step works when it is pasted into the shell that printed it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.cli.own_name import as_typed
from argosy.client.extras import installing
from tests.fakes.cli import World

STEP = "type `argosy runs`, or argosy watch last; /opt/argosy stays, and so does argosy."


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Without an argosy on PATH, and with one that was called by its path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["my venv/bin/argosy", "runs"])
    return monkeypatch


def test_without_argosy_on_path_a_step_names_the_program_as_it_was_called(shell: pytest.MonkeyPatch) -> None:
    called = "'my venv/bin/argosy'"
    assert as_typed(STEP) == f"type `{called} runs`, or {called} watch last; /opt/argosy stays, and so does argosy."
    world = World().answers("ListRuns", {"runs": [], "nextToken": None})
    assert world.argosy("runs").stdout == f"No runs yet. next: {called} submit run.yaml\n"
    assert f"next: type `{called} runs` to see the runs" in world.argosy("status", "nope").stderr


def test_a_step_is_left_as_it_is_where_it_works(shell: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell.setattr(sys, "argv", ["/usr/lib/pytest/__main__.py"])
    assert as_typed(STEP) == STEP
    shell.setattr(sys, "argv", ["my venv/bin/argosy"])
    (tmp_path / "argosy").write_text("#!/bin/sh\n")
    (tmp_path / "argosy").chmod(0o755)
    assert as_typed(STEP) == STEP


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (
            {"url": "file:///home/a%20b/argosy", "dir_info": {"editable": True}},
            "pip install -e '/home/a b/argosy[map]'",
        ),
        ({"url": "file:///x/argosy.whl", "archive_info": {}}, "pip install 'argosy[map] @ file:///x/argosy.whl'"),
        (None, "pip install 'argosy[map]'"),
    ],
)
def test_an_extra_is_installed_from_where_argosy_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Any, wanted: str
) -> None:
    about = tmp_path / "argosy-9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: argosy\nVersion: 9\n")
    if told:
        (about / "direct_url.json").write_text(json.dumps(told))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installing("map") == wanted
