"""Files of an uploaded folder are in $ARGOSY_IN as they were on the user's machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from argosy.model.input_folder import folder_of
from tests.runners import RunnerUnderTest

pytestmark = pytest.mark.slow

STORE = "argosy/programs/inputs/"
LIST = 'cd "$ARGOSY_IN" && find . | LC_ALL=C sort'
SHOW = """
import hashlib, json, os, stat
os.chdir(os.environ["ARGOSY_IN"].encode())
found = {}
for folder, folders, names in os.walk(b"."):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.islink(path):
            found[repr(path)] = "-> " + os.fsdecode(os.readlink(path))
        else:
            about = os.stat(path)
            digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
            found[repr(path)] = [about.st_size, bool(about.st_mode & 0o100), digest]
print(json.dumps(found))
"""


def uploaded(
    runner: RunnerUnderTest, stream: bytes, cuts: Sequence[int], files: Sequence[tuple[str, int, bool]], **more: Any
) -> str:
    """A folder whose stream is cut at these places; its address."""
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) if a < b]
    sized = [(hashlib.sha256(chunk).hexdigest(), len(chunk)) for chunk in chunks]
    for (sha256, _), chunk in zip(sized, chunks, strict=True):
        runner.s3.put(f"{STORE}chunks/{sha256}", chunk)
    document = folder_of(sized, list(files), **{"links": {}, "empty_folders": (), **more}).document()
    sha256 = hashlib.sha256(document).hexdigest()
    return runner.s3.put(f"{STORE}folders/{sha256}", document) + "/"


def shown(size: int, data: bytes, executable: bool = False) -> list[Any]:
    return [size, executable, hashlib.sha256(data).hexdigest()]


def test_files_are_put_together_wherever_the_chunks_are_cut(runner: RunnerUnderTest) -> None:
    stream = bytes(range(256)) * 4_000
    files = [("a", 10, False), ("b/c", 400_000, True), ("b/d e", 0, False), ("b/e", 6, False), ("z", 623_984, False)]
    uri = uploaded(runner, stream, [10, 300_000, 400_010, 400_013, 900_000], files)
    ended = runner.python(SHOW, result="stdout", inputs=[uri])
    assert ended.code == 0, ended.err
    assert json.loads(ended.out) == {
        "b'./a'": shown(10, stream[:10]),
        "b'./b/c'": shown(400_000, stream[10:400_010], True),
        "b'./b/d e'": shown(0, b""),
        "b'./b/e'": shown(6, stream[400_010:400_016]),
        "b'./z'": shown(623_984, stream[400_016:]),
    }


def test_links_empty_folders_and_names_that_are_not_utf_8_are_kept(runner: RunnerUnderTest) -> None:
    files = [("Größe", 1, False), ("caf\udce9.txt", 2, False)]
    uri = uploaded(runner, b"abc", [1], files, links={"l/to": "../Größe"}, empty_folders=("empty/deep",))
    ended = runner.python(SHOW, result="stdout", inputs=[uri])
    assert ended.code == 0, ended.err
    assert json.loads(ended.out) == {
        repr("./Größe".encode()): shown(1, b"a"),
        repr(b"./caf\xe9.txt"): shown(2, b"bc"),
        "b'./l/to'": "-> ../Größe",
    }
    assert runner.shell('ls -d "$ARGOSY_IN/empty/deep" | wc -l', result="stdout", inputs=[uri]).out.strip() == b"1"


def test_one_file_or_what_is_below_a_prefix_is_read_alone(runner: RunnerUnderTest) -> None:
    files = [("a/x", 2, False), ("a/y", 2, False), ("ab", 2, False)]
    uri = uploaded(runner, b"112233", [2, 4], files)
    assert runner.shell(LIST + "; cat x", result="stdout", inputs=[f"{uri}a/x"]).out == b".\n./x\n11"
    assert runner.s3.asked("GET", f"{STORE}chunks/.*") == 1
    assert runner.shell(LIST, result="stdout", inputs=[f"{uri}a/"]).out == b".\n./x\n./y\n"
    mixed = [f"{uri}ab", runner.s3.put("data/o.csv", b"1,2\n")]
    assert runner.shell(LIST, result="stdout", inputs=mixed).out == b".\n./ab\n./o.csv\n"


def test_of_files_that_are_named_one_by_one_the_folder_and_each_chunk_are_read_once(runner: RunnerUnderTest) -> None:
    files = [("a/x", 2, False), ("a/y", 2, False), ("ab", 2, False), ("z", 0, False)]
    uri = uploaded(runner, b"112233", [1], files)
    named = [f"{uri}{name}" for name in ("z", "ab", "a/x", "a/y")]
    ended = runner.shell('cd "$ARGOSY_IN"; tail -n 1 *', result="stdout", inputs=named)
    assert ended.out == b"==> ab <==\n33\n==> x <==\n11\n==> y <==\n22\n==> z <==\n"
    assert (runner.s3.asked("GET", f"{STORE}chunks/.*"), runner.s3.asked("GET", f"{STORE}folders/.*")) == (2, 1)
    twice = runner.shell("true", inputs=[f"{uri}a/x", f"{uri}a/x"])
    assert (twice.code, b"two inputs would be the file x" in twice.err) == (64, True)


@pytest.mark.parametrize("rest", ["a/missing", "missing/", "a"])
def test_what_is_not_in_the_folder_is_named(runner: RunnerUnderTest, rest: str) -> None:
    uri = uploaded(runner, b"11", [], [("a/x", 2, False)]) + rest
    ended = runner.shell("echo ran", result="stdout", inputs=[uri])
    assert (ended.code, ended.out) == (64, b"")
    assert uri in ended.sentence


def test_a_chunk_that_is_gone_ends_the_task_for_good_with_what_to_do(runner: RunnerUnderTest) -> None:
    uri = uploaded(runner, b"1122", [2], [("x", 4, False)])
    key = f"{STORE}chunks/{hashlib.sha256(b'22').hexdigest()}"
    del runner.s3.buckets["results"][key]
    ended = runner.shell("echo ran", result="stdout", inputs=[uri])
    assert (ended.code, ended.out) == (64, b"")
    assert key in ended.sentence
    assert ended.sentence.endswith("It may have expired: submit the run again")
    assert runner.s3.asked("GET", key) <= 1  # not in a loop


def test_a_document_that_is_gone_ends_the_task_for_good_with_what_to_do(runner: RunnerUnderTest) -> None:
    ended = runner.shell("echo ran", result="stdout", inputs=[f"s3://results/{STORE}folders/{'0' * 64}/"])
    assert (ended.code, ended.out) == (64, b"")
    assert ended.sentence.endswith("It may have expired: submit the run again")


def test_a_chunk_of_other_bytes_is_refused(runner: RunnerUnderTest) -> None:
    uri = uploaded(runner, b"1122", [2], [("x", 4, False)])
    key = f"{STORE}chunks/{hashlib.sha256(b'22').hexdigest()}"
    runner.s3.put(key, b"33")
    ended = runner.shell("echo ran", result="stdout", inputs=[uri])
    assert (ended.code, ended.out) == (64, b"")
    assert "has another digest than its name" in ended.sentence


def test_a_document_of_other_bytes_is_refused(runner: RunnerUnderTest) -> None:
    uri = uploaded(runner, b"1122", [2], [("x", 4, False)])
    runner.s3.put(uri.removeprefix("s3://results/").rstrip("/"), b"33")
    ended = runner.shell("echo ran", result="stdout", inputs=[uri])
    assert (ended.code, ended.out) == (64, b"")
    assert "has another digest than its name" in ended.sentence


def test_a_broken_transfer_of_a_chunk_is_tried_again(runner: RunnerUnderTest) -> None:
    stream = bytes(range(256)) * 2_000
    uri = uploaded(runner, stream, [300_000], [("x", len(stream), False)])
    runner.s3.trouble("GET", f"{STORE}chunks/.*", "truncated", times=2)
    ended = runner.shell('sha256sum < "$ARGOSY_IN/x"', result="stdout", inputs=[uri])
    assert ended.out.split()[0].decode() == hashlib.sha256(stream).hexdigest()


@pytest.mark.parametrize("name", ["../escaped.txt", "/etc/x", "a/../../escaped.txt", "a//x", "./x"])
def test_a_name_that_is_no_path_is_refused(runner: RunnerUnderTest, name: str) -> None:
    ended = runner.shell("echo ran", result="stdout", inputs=[uploaded(runner, b"1", [], [(name, 1, False)])])
    assert (ended.code, ended.out) == (64, b"")
    assert [*runner.folder.rglob("escaped.txt")] == []


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "a/../../x"])
def test_a_link_out_of_the_folder_is_refused(runner: RunnerUnderTest, target: str) -> None:
    uri = uploaded(runner, b"1", [], [("f", 1, False)], links={"l": target})
    ended = runner.shell("echo ran", result="stdout", inputs=[uri])
    assert (ended.code, ended.out) == (64, b"")
    assert "is a link out of its folder" in ended.sentence


def test_two_folders_with_a_file_of_one_name_are_refused(runner: RunnerUnderTest) -> None:
    uris = [uploaded(runner, data, [], [("x.csv", 1, False)]) for data in (b"1", b"2")]
    ended = runner.shell("echo ran", result="stdout", inputs=uris)
    assert (ended.code, ended.out) == (64, b"")
    assert "two inputs would be the file x.csv" in ended.sentence


def program_of(uri: str) -> dict[str, Any]:
    return {"uri": uri, "sha256": uri.split("/")[-2], "bytes": 1, "kind": "program"}


def test_a_program_may_be_an_uploaded_folder_in_which_it_starts(runner: RunnerUnderTest) -> None:
    stream, files = b"#!/bin/sh\ncat data/x link data/*; ls -d empty\n12", [("run", 46, True), ("data/x", 2, False)]
    uri = uploaded(runner, stream, [20], files, links={"link": "data/x"}, empty_folders=("empty",))
    job = runner.job(program_of(uri))
    ended = runner.run("argosy:program", "./run", result="stdout", job=job, inputs=[f"{uri}data/"])
    assert (ended.code, ended.out) == (0, b"121212empty\n"), ended.err


def test_a_program_of_other_bytes_is_not_started(runner: RunnerUnderTest) -> None:
    uri = uploaded(runner, b"1122", [2], [("x", 4, False)])
    runner.s3.put(f"{STORE}chunks/{hashlib.sha256(b'22').hexdigest()}", b"33")
    ended = runner.shell("echo ran", result="stdout", job=runner.job(program_of(uri)))
    assert (ended.code, ended.out) == (64, b"")
    assert "has another digest than its name" in ended.sentence


@pytest.mark.parametrize("document", [b"no gzip", b"", b"{}"])
def test_a_document_that_cannot_be_read_is_named(runner: RunnerUnderTest, document: bytes) -> None:
    key = f"{STORE}folders/{hashlib.sha256(document).hexdigest()}"
    runner.s3.put(key, document)
    ended = runner.shell("echo ran", result="stdout", inputs=[f"s3://results/{key}/"])
    assert (ended.code, ended.out) == (64, b"")
    assert key in ended.sentence
