"""Which files of a folder are packed, in which bytes, and which cannot be."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from argosy.client.errors import InvalidInput
from argosy.client.packing.archive import pack_folder
from argosy.client.packing.folder import packed_entries


@pytest.fixture
def program(tmp_path: Path) -> Path:
    root = tmp_path / "program"
    for name in (
        "main.py",
        "lib/__init__.py",
        "lib/__pycache__/x.pyc",
        ".git/config",
        "empty/.keep",
        "venv/pyvenv.cfg",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o700)
    (root / "lib" / "same.py").symlink_to("../main.py")
    return root


def names(root: Path) -> list[str]:
    return [each.name for each in packed_entries(root)]


def test_a_folder_travels_without_what_belongs_to_this_machine(program: Path) -> None:
    assert names(program) == [
        "empty", "empty/.keep", "lib", "lib/__init__.py", "lib/same.py", "main.py", "run.sh",
    ]  # fmt: skip


def test_an_archive_contains_the_files_and_nothing_about_their_owner(program: Path, tmp_path: Path) -> None:
    parcel = pack_folder(packed_entries(program), tmp_path / "a.tar.gz")
    with tarfile.open(parcel.path) as archive:
        members = {each.name: each for each in archive.getmembers()}
        assert members["run.sh"].mode == 0o755
        assert members["main.py"].mode == 0o644
        assert members["lib/same.py"].linkname == "../main.py"
        assert members["lib"].isdir()
        assert {(each.uid, each.gid, each.uname, each.mtime) for each in members.values()} == {(0, 0, "", 0)}
        content = archive.extractfile("lib/__init__.py")
        assert content is not None
        assert content.read() == b"lib/__init__.py"


def test_the_same_files_make_the_same_bytes_at_any_time_and_place(program: Path, tmp_path: Path) -> None:
    first = pack_folder(packed_entries(program), tmp_path / "a.tar.gz")
    os.utime(program / "main.py", (1, 1))
    moved = program.rename(tmp_path / "elsewhere")
    again = pack_folder(packed_entries(moved), tmp_path / "b.tar.gz")
    assert (first.sha256, first.size) == (again.sha256, again.size)
    (moved / "main.py").write_text("other")
    assert pack_folder(packed_entries(moved), tmp_path / "c.tar.gz").sha256 != first.sha256


@pytest.mark.parametrize("target", ["../outside", "/etc/passwd", "lib/../../outside"])
def test_a_link_out_of_the_folder_is_refused_by_name(program: Path, target: str) -> None:
    (program / "link").symlink_to(target)
    with pytest.raises(InvalidInput, match=r"program/link is a link that points outside .*program \(to "):
        packed_entries(program)
    (program / ".gitignore").write_text("link\n")
    assert "link" not in names(program)


def test_a_pipe_is_refused_by_name(program: Path) -> None:
    os.mkfifo(program / "pipe")
    with pytest.raises(InvalidInput, match="program/pipe is neither a file nor a folder"):
        packed_entries(program)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_is_named(program: Path) -> None:
    (program / "main.py").chmod(0)
    with pytest.raises(InvalidInput, match=r"program/main.py cannot be read: Permission denied"):
        packed_entries(program)
    (program / "lib").chmod(0)
    with pytest.raises(InvalidInput, match="program/lib cannot be read: Permission denied"):
        packed_entries(program)
    (program / "lib").chmod(0o700)


@pytest.mark.parametrize("place", [".", ".."])
def test_unreadable_ignore_rules_are_reported(program: Path, place: str) -> None:
    """Even by root, who may read everything: the memory of a process has nothing at address 0."""
    (program / ".git").rename(program.parent / ".git")
    (program / place / ".gitignore").symlink_to("/proc/self/mem")
    with pytest.raises(InvalidInput, match="cannot be read: Input/output error"):
        packed_entries(program)


def test_a_name_that_is_not_utf8_is_refused(program: Path) -> None:
    Path(os.fsdecode(os.fsencode(program) + b"/caf\xe9")).write_text("x")
    with pytest.raises(InvalidInput, match="is not UTF-8: rename it"):
        packed_entries(program)


def test_a_path_that_is_not_a_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere is not a folder"):
        packed_entries(tmp_path / "nowhere")


def test_a_folder_beyond_the_limit_is_refused_with_its_largest_entries(program: Path) -> None:
    with (program / "data.bin").open("wb") as file:
        file.truncate(3 * 1024**3)  # holes: they take no disk
    with (program / "lib" / "model").open("wb") as file:
        file.truncate(2 * 1024**3)
    with pytest.raises(
        InvalidInput, match=r"program has 5,120.0 MiB; the limit for a program's folder is 4,096.0 MiB"
    ) as refusal:
        packed_entries(program)
    assert [line.split() for line in refusal.value.details][:2] == [
        ["3,072.0", "MiB", "data.bin"],
        ["2,048.0", "MiB", "lib/"],
    ]
    assert "--input DIR" in refusal.value.next_step


def test_a_folder_with_too_many_files_is_refused(program: Path) -> None:
    with pytest.raises(InvalidInput, match="has more than 6 files and folders"):
        packed_entries(program, most=6)
    assert len(packed_entries(program, most=7)) == 7


def test_what_is_written_into_the_folder_stays_behind(program: Path) -> None:
    (program / "rows.jsonl").write_text("{}")
    found = packed_entries(program, [program / "rows.jsonl", program / "lib"])
    assert [each.name for each in found] == ["empty", "empty/.keep", "main.py", "run.sh"]


@pytest.mark.parametrize("change", ["shorter", "longer", "gone"])
def test_a_file_that_changes_while_it_is_packed_is_reported(program: Path, tmp_path: Path, change: str) -> None:
    entries = packed_entries(program)
    if change == "gone":
        (program / "main.py").unlink()
    else:
        (program / "main.py").write_text("" if change == "shorter" else "x" * 100)
    with pytest.raises(InvalidInput, match=r"main.py could not be packed: "):
        pack_folder(entries, tmp_path / "a.tar.gz")
