"""The folder of local mode's state belongs to one process at a time and has one format."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argosy.local.keeping.folder import FORMAT, KeptFolder, StateRefusedError


def test_a_folder_is_made_for_its_user_alone_and_has_a_format(tmp_path: Path) -> None:
    made = KeptFolder(tmp_path / "a" / "b")
    assert made.path.stat().st_mode & 0o077 == 0
    assert (made.path / "format").read_text() == f"{FORMAT}\n"
    made.close()
    KeptFolder(made.path).close()


def test_a_second_local_mode_on_one_folder_is_refused_with_the_owner(tmp_path: Path) -> None:
    first = KeptFolder(tmp_path)
    with pytest.raises(StateRefusedError, match=f"process {os.getpid()}") as refused:
        KeptFolder(tmp_path, fresh=True)
    assert "--state DIR" in refused.value.step
    assert (tmp_path / "format").exists()
    first.close()
    KeptFolder(tmp_path).close()


@pytest.mark.parametrize("found", ["2", "", "one"])
def test_another_format_is_left_as_it_is_unless_it_is_to_be_forgotten(tmp_path: Path, found: str) -> None:
    KeptFolder(tmp_path).close()
    (tmp_path / "format").write_text(found)
    (tmp_path / "state.db").write_text("of another version")
    with pytest.raises(StateRefusedError, match=f"reads format {FORMAT}") as refused:
        KeptFolder(tmp_path)
    assert "--fresh" in refused.value.step
    assert (tmp_path / "state.db").read_text() == "of another version"
    KeptFolder(tmp_path, fresh=True).close()
    assert not (tmp_path / "state.db").exists()


def test_a_fresh_state_has_no_objects(tmp_path: Path) -> None:
    first = KeptFolder(tmp_path)
    first.objects.mkdir()
    (first.objects / "body").write_text("x")
    first.close()
    KeptFolder(tmp_path, fresh=True).close()
    assert not first.objects.exists()


@pytest.mark.parametrize("fresh", [False, True])
def test_a_folder_with_other_files_is_refused(tmp_path: Path, fresh: bool) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StateRefusedError, match=r"thesis\.tex"):
        KeptFolder(tmp_path, fresh=fresh)
    assert (tmp_path / "thesis.tex").exists()
