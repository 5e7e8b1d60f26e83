"""`put` and `data`: folders under a name."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from argosy.client.access import Access
from argosy.client.aws_clients import Connection
from argosy.client.errors import InvalidInput
from argosy.client.packing.program import Packer
from tests.fakes.cli import DEPLOYMENT, World

INPUTS = "argosy/programs/inputs/"


@pytest.fixture
def clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARGOSY_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "My Clips"
    made.mkdir()
    (made / "a.mp4").write_text("clip")
    return made


def named(world: World, *inputs: str, base: Path = Path(), **how: Any) -> list[str]:
    """What inputs become in the spec that is sent."""
    packer = Packer(**how)
    form = packer.pack({"run": ["x"], "inputs": list(inputs)}, base, Access(Connection(), world.client))
    found: list[str] = form["inputs"]
    return found


def expiring(days: int) -> World:
    world = World()
    world.parameters.values["/argosy/deployment"] = json.dumps({**DEPLOYMENT, "inputDays": days})
    return world


def aged(world: World, days: float) -> None:
    world.objects.ages = {key: timedelta(days=days) for _, key in world.objects.bodies}
    world.objects.written.clear()


def test_a_folder_is_put_listed_used_and_deleted(clips: Path) -> None:
    world = expiring(100)
    put = world.argosy("put", str(clips))
    assert put.exit_code == 0, put.output
    assert put.stdout.splitlines()[0].startswith("my-clips: 1 file, 4 bytes; uploaded ")
    assert put.stdout.splitlines()[1].endswith("run PROGRAM --input my-clips")
    [heading, row] = world.argosy("data", "list").stdout.splitlines()
    assert heading.split() == ["NAME", "FILES", "SIZE", "EXPIRES"]
    assert row.split()[:4] == ["my-clips", "1", "4", "B"]
    [uri] = named(world, "my-clips")
    assert uri == world.document("data", "list")["folders"][0]["uri"]
    assert named(world, "my-clips/${index}.mp4", "s3://b/x") == [f"{uri}${{index}}.mp4", "s3://b/x"]
    gone = world.argosy("data", "delete", "my-clips")
    assert gone.stdout == "my-clips is deleted; its files expire within 100 days.\n"
    assert world.document("data", "list") == {"folders": []}
    assert world.argosy("data", "list").stdout == "No folder is uploaded under a name: argosy put DIR\n"


def test_documents_of_put_and_delete(clips: Path) -> None:
    world = World()
    put = world.document("put", str(clips / "a.mp4"), "one")
    assert (put["name"], put["files"], put["bytes"]) == ("one", 1, 4)
    assert put["sentBytes"] > 4
    gone = {"name": "one", "uri": put["uri"], "files": 1, "bytes": 4, "expiresAt": None}
    assert world.document("data", "delete", "one") == gone


def test_a_name_that_is_put_again_stands_for_the_new_files(clips: Path) -> None:
    world = World()
    world.argosy("put", str(clips), "c")
    before = named(world, "c")
    (clips / "a.mp4").write_text("clop")
    world.argosy("put", str(clips), "c")
    assert named(world, "c") != before


def test_a_folder_of_this_machine_comes_before_a_name(clips: Path) -> None:
    world = World()
    world.argosy("put", str(clips), "c")
    (clips / "c").mkdir()
    (clips / "c" / "mine").write_text("mine")
    assert named(world, "c", base=clips) != named(world, "c")


@pytest.mark.parametrize(
    ("age", "copied"), [(20, []), (30, ["folders", "names"]), (60, ["chunks", "folders", "names"])]
)
def test_a_name_that_is_used_is_renewed_within_s3(clips: Path, age: float, copied: list[str]) -> None:
    world = expiring(100)
    world.argosy("put", str(clips), "c")
    uri = named(world, "c")
    aged(world, age)
    assert named(world, "c") == uri
    kinds = [key.removeprefix(INPUTS).partition("/")[0] for key in world.objects.written]
    assert kinds == (copied or ["names"])


def test_what_a_schedule_reads_by_name_is_copied_to_where_nothing_expires(clips: Path) -> None:
    world = expiring(100)
    world.argosy("put", str(clips), "c")
    [uri] = named(world, "c", keeps=True)
    assert uri.startswith("s3://argosy-results/argosy/programs/kept/folders/")
    kept = [key for _, key in world.objects.bodies if key.startswith("argosy/programs/kept/")]
    assert len(kept) == 2
    world.objects.written.clear()
    assert named(world, "c", keeps=True) == [uri]
    assert world.objects.written == [f"{INPUTS}names/c"]


def test_files_that_have_expired_are_said_with_what_to_do(clips: Path) -> None:
    world = expiring(100)
    world.argosy("put", str(clips), "c")
    aged(world, 60)
    chunk = next(key for key in world.objects.bodies if "chunks" in key[1])
    del world.objects.bodies[chunk]
    with pytest.raises(InvalidInput, match=r"The files of c have expired\.") as said:
        named(world, "c")
    assert said.value.next_step == "argosy put DIR c"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("data", "delete", "none"), "error: No uploaded folder has the name none."),
        (("data", "delete", "../x"), "error: '../x' is no name for a folder"),
        (("put", "nowhere", "c"), "error: There is no file or folder nowhere."),
        (("put", ".", "Not A Name"), "error: 'Not A Name' must be lower-case letters"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words: tuple[str, ...], why: str) -> None:
    result = World().argosy(*words)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0].startswith(why)


def test_an_input_that_is_neither_a_path_nor_a_name_is_refused(clips: Path) -> None:
    with pytest.raises(
        InvalidInput, match="There is no file or folder clip here, and no uploaded folder has this name"
    ):
        named(World(), "clip")
    with pytest.raises(InvalidInput, match="There is no file or folder clip/x"):
        named(World(), "./clip/x")


def test_a_file_with_a_path_that_is_not_there_is_faulty_before_it_is_submitted(clips: Path) -> None:
    text = "version: 1\nname: x\nrun: [ls]\ninputs: [./none/x, clips]\narray: {size: 1}\n"
    (clips / "run.yaml").write_text(text)
    said = World().argosy("validate", str(clips / "run.yaml"))
    assert said.exit_code == 2
    assert "run.yaml:4:1: inputs: there is no file or folder ./none/x" in said.stderr
    (clips / "none").mkdir()
    (clips / "none" / "x").write_text("")
    assert World().argosy("validate", str(clips / "run.yaml")).exit_code == 0
