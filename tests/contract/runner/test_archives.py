"""The program's archives: verified, unpacked where they belong, and nowhere else."""

from __future__ import annotations

import gzip
import json
import struct
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runners import PART, RunnerUnderTest, member, tar, wheel

pytestmark = pytest.mark.slow


def test_a_program_runs_in_its_folder(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.program({"main.py": "import beside\nprint(beside.NAME, open('data/x.txt').read())",
                                     "beside.py": "NAME = 'beside'", "data/x.txt": "x"}))  # fmt: skip
    ended = runner.run("argosy:program", sys.executable, "main.py", result="stdout", job=job)
    assert (ended.code, ended.out) == (0, b"beside x\n")
    assert runner.s3.body(PART) == b"beside x\n"


def test_an_executable_of_the_archive_stays_executable(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.program({"bin/run": "#!/bin/sh\necho $1"}))
    assert runner.run("argosy:program", "./bin/run", "7", result="stdout", job=job).out == b"7\n"


def test_a_script_without_an_interpreter_line_is_run_by_the_shell(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.archive(tar(member("bin/run", b"echo $1", mode=0o755))))
    assert runner.run("argosy:program", "./bin/run", "7", result="stdout", job=job).out == b"7\n"


def test_without_an_archive_the_program_runs_where_the_container_starts_it(runner: RunnerUnderTest) -> None:
    assert runner.shell("pwd -P", result="stdout").out.decode().strip() == str(runner.folder.resolve())


def test_several_archives_fill_one_folder(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.program({"a.txt": "a"}), runner.program({"b.txt": "b"}))
    assert runner.shell("cat a.txt b.txt", result="stdout", job=job).out == b"ab"


def test_a_link_that_stays_inside_is_kept(runner: RunnerUnderTest) -> None:
    data = tar(member("real/x.txt", b"x"), member("link", type=tarfile.SYMTYPE, linkname="real"))
    assert runner.shell("cat link/x.txt", result="stdout", job=runner.job(runner.archive(data))).out == b"x"


def test_a_wheel_comes_before_what_is_installed(runner: RunnerUnderTest) -> None:
    files = {
        "shown/__init__.py": "NAME = 'from the wheel'",
        "json.py": "dumps = lambda value: 'hidden'",
        "shown-1.0.dist-info/METADATA": "Name: shown",
        "shown-1.0.data/purelib/beneath.py": "NAME = 'purelib'",
        "shown-1.0.data/scripts/tool": "not for Python",
    }
    job = runner.job(runner.archive(wheel(files), "wheel"), runner.archive(wheel({"second.py": "NAME = 2"}), "wheel"))
    script = "import shown, beneath, second; print(shown.NAME, beneath.NAME, second.NAME)"
    ended = runner.run("argosy:program", sys.executable, "-c", script, result="stdout", job=job)
    assert ended.out == b"from the wheel purelib 2\n"


def test_an_import_path_that_is_set_comes_after_the_wheels(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.archive(wheel({"a.py": ""}), "wheel"))
    ended = runner.shell("echo $PYTHONPATH", changes={"PYTHONPATH": "/given"}, result="stdout", job=job)
    first, _, rest = ended.out.decode().strip().partition(":")
    assert first.startswith(str(runner.roots))
    assert rest == "/given"


def outside(name: str) -> dict[str, tuple[tarfile.TarInfo, bytes] | list[tuple[tarfile.TarInfo, bytes]]]:
    return {
        "above": member("../escaped.txt", b"x"),
        "above, later": member("a/../../escaped.txt", b"x"),
        "absolute": member(name, b"x"),
        "link out": member("link", type=tarfile.SYMTYPE, linkname="../.."),
        "absolute link": member("link", type=tarfile.SYMTYPE, linkname="/etc"),
        "hard link out": member("link", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        "through a link": [
            member("a/b", type=tarfile.SYMTYPE, linkname=".."),
            member("c", type=tarfile.SYMTYPE, linkname="a/b/.."),
            member("c/escaped.txt", b"x"),
        ],
        "through a link that another makes leave": [
            member("c", type=tarfile.SYMTYPE, linkname="a/b/.."),
            member("a/b", type=tarfile.SYMTYPE, linkname=".."),
            member("c/escaped.txt", b"x"),
        ],
        "a device": member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
        "a pipe": member("pipe", type=tarfile.FIFOTYPE),
    }


@pytest.mark.parametrize("kind", outside(""))
def test_an_archive_that_would_leave_its_folder_is_refused(runner: RunnerUnderTest, kind: str) -> None:
    escaped = runner.folder / "escaped.txt"
    members = outside(str(escaped))[kind]
    data = tar(*(members if isinstance(members, list) else [members]))
    ended = runner.shell("echo ran", result="stdout", job=runner.job(runner.archive(data)))
    assert (ended.code, ended.out) == (64, b"")
    assert ended.sentence
    assert [*runner.folder.rglob("escaped.txt")] == []
    assert list(runner.roots.iterdir()) == []


@pytest.mark.parametrize("name", ["../escaped.txt", "/tmp/escaped-argosy.txt", "a/../../escaped.txt"])
def test_a_wheel_that_would_leave_its_folder_is_refused(runner: RunnerUnderTest, name: str) -> None:
    ended = runner.shell("echo ran", result="stdout", job=runner.job(runner.archive(wheel({name: "x"}), "wheel")))
    assert (ended.code, ended.out) == (64, b"")
    assert [*runner.folder.rglob("*escaped.txt")] == []
    assert not Path("/tmp/escaped-argosy.txt").exists()


def test_no_program_gets_the_rights_of_another_user(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.archive(tar(member("tool", b"#!/bin/sh\n", mode=0o6755))))
    ended = runner.python("import os; print(oct(os.stat('tool').st_mode & 0o7111))", result="stdout", job=job)
    assert ended.out == b"0o111\n"


@pytest.mark.parametrize(
    "changes",
    [{"sha256": "0" * 64}, {"bytes": 5}, {"bytes": 10**9}, {"kind": "cake"}, {"uri": "s3://results/nothing"}, {"uri": "http://x/y"}],
    ids=["digest", "shorter", "longer", "kind", "missing", "no address"],
)  # fmt: skip
def test_an_archive_that_is_not_what_the_job_says_is_refused(runner: RunnerUnderTest, changes: dict[str, Any]) -> None:
    job = runner.job(runner.program({"a.txt": "a"}) | changes)
    ended = runner.shell("echo ran", result="stdout", job=job)
    assert (ended.code, ended.out) == (64, b"")
    assert ended.sentence


def zip_bomb() -> bytes:
    """A wheel whose one member is said to have 3 GiB."""
    packed = bytearray(wheel({"a.py": "x = 1"}))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = packed.index(mark) + place
        packed[at : at + 4] = struct.pack("<I", 3 << 30)
    return bytes(packed)


def tar_bomb() -> bytes:
    """Its one member is said to have 3 GiB of zeros, and the stream begins with them."""
    header = tarfile.TarInfo("zeros")
    header.size = 3 << 30
    return gzip.compress(header.tobuf() + bytes(1 << 20))


@pytest.mark.parametrize(("kind", "bomb"), [("wheel", zip_bomb), ("program", tar_bomb)])
def test_a_bomb_is_refused_before_anything_of_it_is_written(
    runner: RunnerUnderTest, kind: str, bomb: Callable[[], bytes]
) -> None:
    ended = runner.shell("echo ran", result="stdout", job=runner.job(runner.archive(bomb(), kind)))
    assert (ended.code, ended.out) == (64, b"")
    assert b"would unpack to more than 1024 MiB" in ended.err


def test_what_is_no_archive_is_refused(runner: RunnerUnderTest) -> None:
    for kind in ("program", "wheel"):
        ended = runner.shell("echo ran", result="stdout", job=runner.job(runner.archive(b"not an archive", kind)))
        assert (ended.code, ended.out) == (64, b"")
        assert "s3://results/argosy/programs/" in ended.sentence


def test_an_archive_that_ends_in_the_middle_is_refused(runner: RunnerUnderTest) -> None:
    data = tar(member("a.txt", b"a" * 100_000), member("b.txt", b"b" * 100_000))
    ended = runner.shell("echo ran", result="stdout", job=runner.job(runner.archive(data[: len(data) // 2])))
    assert (ended.code, ended.out) == (64, b"")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"protocol": 2, "archives": []}',
        '{"protocol": 1, "archives": 3}',
        '{"protocol": 1, "archives": [7]}',
    ],
)
def test_a_job_that_cannot_be_read_is_refused(runner: RunnerUnderTest, text: str) -> None:
    uri = runner.s3.put("jobs/odd.json", text.encode())
    ended = runner.shell("echo ran", changes={"ARGOSY_JOB": uri}, result="stdout")
    assert (ended.code, ended.out) == (64, b"")
    assert "s3://results/jobs/odd.json" in ended.sentence


def test_unknown_fields_of_a_job_are_left_for_later_versions(runner: RunnerUnderTest) -> None:
    uri = runner.s3.put("jobs/more.json", json.dumps({"protocol": 1, "archives": [], "colour": "red"}).encode())
    assert runner.shell("echo ran", changes={"ARGOSY_JOB": uri}, result="stdout").code == 0


def test_setup_runs_in_the_programs_folder_before_it(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.program({"a.txt": "a"}), setup="echo installing; cat a.txt > b.txt")
    ended = runner.shell("cat b.txt", result="stdout", job=job)
    assert ended.out == runner.s3.body(PART) == b"a"
    assert ended.err == b"installing\n"


def test_a_setup_that_fails_is_reported_and_the_program_is_not_started(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.program({"a.txt": "a"}), setup="echo no such package >&2; exit 9")
    ended = runner.shell("echo ran", result="stdout", job=job)
    assert (ended.code, ended.out) == (9, b"")
    assert "setup" in ended.sentence
    assert "9" in ended.sentence
    assert ended.err.startswith(b"no such package\n")
