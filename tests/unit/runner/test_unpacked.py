"""Archives are unpacked once for all attempts that need them, and are removed when unused and room is needed."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.runner.job import PROGRAM, JobArchive
from argosy.runner.objects import Objects
from argosy.runner.set_cache import CLONED_BYTES, SetCache


def archive(content: bytes) -> bytes:
    """A .tar.gz of one file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as made:
        about = tarfile.TarInfo("data.bin")
        about.size = len(content)
        made.addfile(about, io.BytesIO(content))
    return file.getvalue()


class Stored(Objects):
    """Objects of a dictionary; counts fetches."""

    def __init__(self) -> None:
        super().__init__({}, threading.Event())
        self.bodies: dict[str, bytes] = {}
        self.fetched: list[str] = []

    def add(self, name: str, content: bytes) -> list[JobArchive]:
        body = self.bodies[f"s3://b/{name}"] = archive(content)
        return [JobArchive(f"s3://b/{name}", hashlib.sha256(body).hexdigest(), len(body), PROGRAM)]

    def download(self, uri: str, file: Path, what: str) -> Any:
        self.fetched.append(uri)
        file.write_bytes(self.bodies[uri])


def attempt(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


def test_unneeded_instances_go_first_and_the_latest_wanted_ones_stay(tmp_path: Path) -> None:
    objects, unpacked = Stored(), SetCache(tmp_path / "unpacked", kept_bytes=2_500)
    old, newer, needed, new = (objects.add(name, name.encode() * 1_000) for name in ("a", "b", "c", "d"))
    over, busy = attempt(tmp_path, "over"), attempt(tmp_path, "busy")
    unpacked.get(old, objects, over)
    unpacked.get(newer, objects, over)
    unpacked.get(old, objects, over)  # now it is `newer` that was wanted long ago
    over.rmdir()
    kept = unpacked.get(needed, objects, busy)
    assert objects.fetched == ["s3://b/a", "s3://b/b", "s3://b/c"]
    unpacked.get(new, objects, busy)
    assert (kept / "data.bin").read_bytes() == b"c" * 1_000
    sets = {each.name for each in (tmp_path / "unpacked").iterdir()}
    assert sets == {each.parent.name for each in (kept, unpacked.get(new, objects, busy))}
    unpacked.get(old, objects, busy)
    assert objects.fetched[3:] == ["s3://b/d", "s3://b/a"]


def test_what_is_needed_stays_however_much_it_is(tmp_path: Path) -> None:
    objects, unpacked = Stored(), SetCache(tmp_path / "unpacked", kept_bytes=1)
    busy = attempt(tmp_path, "busy")
    found = [unpacked.get(objects.add(name, b"x" * 100 + name.encode()), objects, busy) for name in ("a", "b", "c")]
    assert all((each / "data.bin").is_file() for each in found)


CHANGES: dict[str, Callable[[Path], Any]] = {
    "written in place, with its old times": lambda file: (
        (before := file.stat()), file.write_bytes(b"y" * before.st_size), os.utime(file, (before.st_mtime,) * 2)
    ),
    "replaced by the same bytes": lambda file: shutil.copy(file, file.with_name("new")).replace(file),
    "removed": lambda file: file.unlink(),
    "made executable": lambda file: file.chmod(0o755),
    "a link to another": lambda file: (file.unlink(), file.symlink_to("/etc/hostname")),
    "a file added": lambda file: file.with_name("more").touch(),
    "an empty folder added": lambda file: file.with_name("folder").mkdir(),
    "code added among byte code": lambda file: (
        file.with_name("__pycache__").mkdir(), (file.with_name("__pycache__") / "x.py").touch()
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shared", [False, True])
def test_whatever_an_attempt_changes_the_next_gets_the_archives_bytes(
    tmp_path: Path, change: str, shared: bool
) -> None:
    """shared: a set that is too large to be copied for each attempt."""
    content = b"x" * CLONED_BYTES
    objects, unpacked = Stored(), SetCache(tmp_path / "unpacked", lent_bytes=0 if shared else 2 * CLONED_BYTES)
    wanted, first = objects.add("a", content), attempt(tmp_path, "first")
    folder = unpacked.lend(wanted, objects, first)
    CHANGES[change](folder / "data.bin")
    first.rmdir()
    again = unpacked.lend(wanted, objects, attempt(tmp_path, "second"))
    assert [(each.name, each.read_bytes()) for each in again.iterdir()] == [("data.bin", content)]
    assert not (again / "data.bin").is_symlink()


def test_byte_code_is_no_change_and_no_copy_has_two_users(tmp_path: Path) -> None:
    objects, unpacked = Stored(), SetCache(tmp_path / "unpacked")
    wanted, one, two = objects.add("a", b"x"), attempt(tmp_path, "one"), attempt(tmp_path, "two")
    first, second = unpacked.lend(wanted, objects, one), unpacked.lend(wanted, objects, two)
    assert first != second
    (first / "__pycache__").mkdir()
    (first / "__pycache__" / "data.cpython-311.pyc").touch()
    one.rmdir()
    assert unpacked.lend(wanted, objects, attempt(tmp_path, "three")) == first
    assert objects.fetched == ["s3://b/a"]
