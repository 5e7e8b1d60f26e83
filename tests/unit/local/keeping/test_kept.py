"""A state that cannot be used is a sentence with a way out that forgets no other state, whatever is wrong with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.emulator.dynamodb import DynamoModel
from argosy.local.keeping.folder import StateRefusedError
from argosy.local.keeping.objects import SMALL_BYTES
from argosy.local.keeping.store import LocalStore
from argosy.model.stored import documents

LARGE = b"x" * (SMALL_BYTES + 1)


def made(path: Path) -> Path:
    """A state with an item, and an object that has its own file."""
    with LocalStore(path) as kept:
        model = DynamoModel()
        kept.keep_models(model, {})
        model.put_item(TableName="t", Item={"pk": {"S": "A"}, "sk": {"S": "1"}})
        kept.bodies.put("b", "k", {}, LARGE)
    return path


def damage_items(path: Path, text: str | None) -> None:
    database = sqlite3.connect(path / "state.db")
    database.execute("UPDATE items SET item = ?", (text,))
    database.commit()
    database.close()


def put_state(path: Path, name: str) -> None:
    with LocalStore(path) as kept:
        model = DynamoModel()
        kept.keep_models(model, {})
        item = {"pk": {"S": documents.STATE}, "sk": {"S": name}, "body": {"B": b"torn"}}
        model.put_item(TableName="t", Item=item)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: (path / "state.db").write_bytes(b"not SQLite" * 1000),
    "cut": lambda path: (path / "state.db").write_bytes((path / "state.db").read_bytes()[:9_000]),
    "emptied": lambda path: (path / "state.db").write_bytes(b""),
    "removed": lambda path: (path / "state.db").unlink(),
    "an item": lambda path: damage_items(path, None),
    "an item's keys": lambda path: damage_items(path, "{}"),
    "no item": lambda path: damage_items(path, "[]"),
    "the root": lambda path: put_state(path, documents.ROOT),
    "no root": lambda path: put_state(path, documents.POOLS),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_is_refused_and_left_as_it_is_and_can_be_forgotten(tmp_path: Path, damage: str) -> None:
    path = made(tmp_path / "my state")
    DAMAGE[damage](path)
    with pytest.raises(StateRefusedError, match="is damaged") as refused, LocalStore(path) as kept:
        kept.keep_models(DynamoModel(), {})
    assert f"argosy local --state '{path}' --fresh" in refused.value.step
    assert [each.read_bytes() for each in (path / "objects").iterdir()] == [LARGE]
    with LocalStore(path, fresh=True) as kept:
        model = DynamoModel()
        kept.keep_models(model, {})
    assert not model.tables


def test_a_refused_folder_is_named_as_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateRefusedError, match="Not a directory") as refused:
        LocalStore(tmp_path / "file" / "state")
    assert "--state DIR" in refused.value.step
    assert "--fresh" not in refused.value.step


def test_a_database_without_objects_is_whole(tmp_path: Path) -> None:
    """As a kill right at the start leaves it."""
    (tmp_path / "format").write_text("1\n")
    with LocalStore(tmp_path):
        pass


def test_a_folder_that_its_user_made_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    with LocalStore(tmp_path / "open"):
        assert (tmp_path / "open").stat().st_mode & 0o777 == 0o700
