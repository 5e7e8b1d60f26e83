"""What is sent of a folder, and how S3 lays it out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from argosy.client.access import Access
from argosy.client.aws_clients import Connection
from argosy.client.errors import ArgosyError, InvalidInput
from argosy.client.inputs.upload import Upload, upload_folder
from argosy.layout import INPUTS, KEPT
from argosy.model.input_folder import read_folder
from tests.fakes.cli import DEPLOYMENT, World, refusal

BUCKET = "argosy-results"
NOISE = np.random.default_rng(5).bytes(5_000_000)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARGOSY_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "data"
    (made / "deep").mkdir(parents=True)
    (made / "big.bin").write_bytes(NOISE)
    (made / "deep" / "small.txt").write_text("small")
    (made / "none").write_text("")
    return made


def access_of(world: World) -> Access:
    return Access(Connection(), world.client)


def upload(world: World, path: Path, **more: Any) -> Upload:
    return upload_folder(access_of(world), path, **more)


def laid_out(world: World, uri: str) -> dict[str, bytes]:
    """The files of a folder as a reader puts them together."""
    key = uri.removeprefix(f"s3://{BUCKET}/").rstrip("/")
    document = world.objects.bodies[BUCKET, key]
    assert hashlib.sha256(document).hexdigest() == key.rpartition("/")[2]
    found = read_folder(document)
    store = key.partition("folders/")[0]
    stream = b"".join(world.objects.bodies[BUCKET, f"{store}chunks/{each.sha256}"] for each in found.chunks)
    return {each.name: stream[each.start : each.start + each.size] for each in found.files}


def test_a_folder_is_its_files_in_chunks(folder: Path) -> None:
    world = World()
    done = upload(world, folder)
    assert done.uri.startswith(f"s3://{BUCKET}/{INPUTS}folders/")
    assert laid_out(world, done.uri) == {"big.bin": NOISE, "deep/small.txt": b"small", "none": b""}
    assert done.sent == sum(len(body) for body in world.objects.bodies.values())


def test_a_file_is_a_folder_of_one(folder: Path) -> None:
    world = World()
    assert laid_out(world, upload(world, folder / "deep" / "small.txt").uri) == {"small.txt": b"small"}


def test_the_same_files_have_the_same_address_wherever_and_whenever_they_were_written(folder: Path) -> None:
    world = World()
    first = upload(world, folder)
    moved = folder.rename(folder.with_name("moved"))
    os.utime(moved / "none", (0, 0))
    again = upload(world, moved)
    assert (again.uri, again.sent) == (first.uri, 0)


def test_an_unchanged_folder_asks_for_its_document_alone(folder: Path) -> None:
    world = World()
    first = upload(world, folder)
    world.objects.asked.clear()
    assert upload(world, folder).uri == first.uri
    assert world.objects.asked == [first.uri.removeprefix(f"s3://{BUCKET}/").rstrip("/")]


def test_a_changed_byte_sends_its_chunk(folder: Path) -> None:
    world = World()
    upload(world, folder)
    (folder / "big.bin").write_bytes(NOISE[:3_000_000] + b"!" + NOISE[3_000_001:])
    done = upload(world, folder)
    assert 0 < done.sent < 4_000_000
    assert laid_out(world, done.uri)["big.bin"][3_000_000:3_000_001] == b"!"


def test_what_a_broken_upload_has_sent_is_not_sent_again(folder: Path) -> None:
    world = World()
    upload(world, folder)
    whole = len(world.objects.written)
    broken = World()
    put, sent = broken.objects.put_object, []

    def failing(**request: Any) -> None:
        if len(sent) == 2:
            raise refusal("AccessDenied", operation="PutObject")
        sent.append(request["Key"])
        put(**request)

    broken.objects.put_object = failing  # type: ignore[method-assign]
    with pytest.raises(ArgosyError, match="You have no permission to upload"):
        upload(broken, folder)
    broken.objects.put_object = put  # type: ignore[method-assign]
    done = upload(broken, folder)
    assert sorted(broken.objects.written) == sorted(set(broken.objects.written))
    assert len(broken.objects.written) == whole
    assert laid_out(broken, done.uri)["big.bin"] == NOISE


def test_two_uploads_at_once_end_with_the_same_folder(folder: Path) -> None:
    world = World()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: upload(world, folder), range(2))
    assert first.uri == second.uri
    assert laid_out(world, first.uri)["big.bin"] == NOISE


def expiring(world: World, days: int) -> World:
    world.parameters.values["/argosy/deployment"] = json.dumps({**DEPLOYMENT, "inputDays": days})
    return world


def aged(world: World, days: float) -> None:
    world.objects.ages = {key: timedelta(days=days) for _, key in world.objects.bodies}
    world.objects.written.clear()


@pytest.mark.parametrize(("age", "renewed"), [(24, 0), (26, 1), (49, 1), (51, 7)])
def test_what_is_about_to_expire_is_sent_again(folder: Path, age: float, renewed: int) -> None:
    """The document after a quarter of its days, a chunk after half."""
    world = expiring(World(), 100)
    upload(world, folder)
    everything = len(world.objects.written)
    aged(world, age)
    upload(world, folder)
    assert len(world.objects.written) == (everything if renewed > 1 else renewed)


def test_what_never_expires_is_never_sent_again(folder: Path) -> None:
    world = expiring(World(), 0)
    upload(world, folder)
    aged(world, 4_000)
    upload(world, folder)
    assert world.objects.written == []


def test_folders_that_stay_are_kept_elsewhere(folder: Path) -> None:
    world = World()
    assert upload(world, folder, prefix=KEPT).uri.startswith(f"s3://{BUCKET}/{KEPT}folders/")
    assert {key.rpartition("s/")[0] for _, key in world.objects.bodies} == {f"{KEPT}chunk", f"{KEPT}folder"}


def test_a_memory_that_cannot_be_kept_costs_requests_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_CACHE", str(folder / "none"))
    world = World()
    first = upload(world, folder)
    assert (upload(world, folder).uri, first.folder.size) == (first.uri, 5_000_005)


def test_names_modes_links_and_empty_folders_are_kept(folder: Path) -> None:
    (folder / "deep" / "run").write_text("#!")
    (folder / "deep" / "run").chmod(0o755)
    (folder / "deep" / "to").symlink_to("../none")
    (folder / "empty" / "er").mkdir(parents=True)
    odd = os.fsencode(folder) + b"/caf\xe9"
    Path(os.fsdecode(odd)).write_text("x")
    world = World()
    found = upload(world, folder).folder
    assert [each.name for each in found.files if each.is_executable] == ["deep/run"]
    assert found.links == {"deep/to": "../none"}
    assert found.empty_folders == ("empty/er",)
    assert "caf\udce9" in [each.name for each in found.files]


def test_a_link_that_leads_out_is_what_it_leads_to(folder: Path) -> None:
    other = folder.with_name("other")
    other.mkdir()
    (other / "x.txt").write_text("far")
    (folder / "all").symlink_to(other)
    (folder / "one").symlink_to(other / "x.txt")
    world = World()
    found = laid_out(world, upload(world, folder).uri)
    assert (found["all/x.txt"], found["one"]) == (b"far", b"far")


def dangling(folder: Path) -> None:
    (folder / "l").symlink_to("/nowhere")


def circle(folder: Path) -> None:
    (folder / "l").symlink_to(folder.parent)


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "p")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (dangling, "is a link to /nowhere, which is not there"),
        (circle, "is a link to a folder that it is in"),
        (pipe, "is neither a file nor a folder"),
    ],
)
def test_what_cannot_be_uploaded_is_named_before_anything_is_sent(
    folder: Path, spoil: Callable[[Path], None], why: str
) -> None:
    spoil(folder)
    world = World()
    with pytest.raises(InvalidInput, match=why):
        upload(world, folder)
    assert world.objects.written == []


def test_a_path_that_is_not_there_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no file or folder"):
        upload(World(), tmp_path / "missing")
    (tmp_path / "void").mkdir()
    with pytest.raises(InvalidInput, match="void is empty"):
        upload(World(), tmp_path / "void")


def test_a_file_that_changes_while_it_is_uploaded_is_named(folder: Path) -> None:
    world = World()
    put = world.objects.put_object

    def growing(**request: Any) -> None:
        put(**request)
        with (folder / "big.bin").open("ab") as file:
            file.write(b"more")

    world.objects.put_object = growing  # type: ignore[method-assign]
    (folder / "big.bin").write_bytes(NOISE * 10)
    with pytest.raises(InvalidInput, match=r"big\.bin changed while it was uploaded"):
        upload(world, folder)
    assert not [key for key in world.objects.written if "folders/" in key]
