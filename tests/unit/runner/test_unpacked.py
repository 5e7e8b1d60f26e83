"""Archives are unpacked once for all attempts that need them, and are removed when unused and room is needed."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from pathlib import Path
from typing import Any

from argosy.runner.job import PROGRAM, JobArchive
from argosy.runner.objects import Objects
from argosy.runner.unpacked import Unpacked


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
    objects, unpacked = Stored(), Unpacked(tmp_path / "unpacked", kept_bytes=2_500)
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
    assert sorted(each.name[:8] for each in (tmp_path / "unpacked").iterdir()) == sorted(
        each.name[:8] for each in (kept, unpacked.get(new, objects, busy))
    )
    unpacked.get(old, objects, busy)
    assert objects.fetched[3:] == ["s3://b/d", "s3://b/a"]


def test_what_is_needed_stays_however_much_it_is(tmp_path: Path) -> None:
    objects, unpacked = Stored(), Unpacked(tmp_path / "unpacked", kept_bytes=1)
    busy = attempt(tmp_path, "busy")
    found = [unpacked.get(objects.add(name, b"x" * 100 + name.encode()), objects, busy) for name in ("a", "b", "c")]
    assert all((each / "data.bin").is_file() for each in found)
