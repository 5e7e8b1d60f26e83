"""`local --state`, `--no-state` and `--fresh`: which folder they name, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.cli.here.local import StateOptions, refusals_told
from argosy.cli.problems import CliError
from argosy.local.keeping.folder import StateRefusedError


def test_state_is_kept_in_the_users_data_folder_or_where_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert StateOptions().folder == tmp_path / "argosy" / "local"
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert StateOptions().folder == tmp_path / "home" / ".local" / "share" / "argosy" / "local"
    monkeypatch.chdir(tmp_path)
    assert StateOptions(state=Path("mine"), fresh=True).folder == tmp_path / "mine"
    assert StateOptions(no_state=True).folder is None


@pytest.mark.parametrize(
    ("options", "named"),
    [(StateOptions(state=Path("x"), no_state=True), "--state"), (StateOptions(no_state=True, fresh=True), "--fresh")],
)
def test_options_that_contradict_each_other_are_refused(options: StateOptions, named: str) -> None:
    with pytest.raises(CliError, match=named):
        _ = options.folder


def test_an_unusable_folder_is_reported_with_what_can_be_done() -> None:
    with pytest.raises(CliError, match="in use") as refused, refusals_told():
        raise StateRefusedError("It is in use.", "choose another")
    assert refused.value.next_step == "choose another"
