"""A program's inputs are in $ARGOSY_IN before it starts."""

from __future__ import annotations

import hashlib

import pytest

from tests.runners import RunnerUnderTest

pytestmark = pytest.mark.slow


LIST = 'cd "$ARGOSY_IN" && find . -type f | sort && cat $(find . -type f | sort)'


def test_an_object_is_a_file_of_its_name(runner: RunnerUnderTest) -> None:
    ended = runner.shell(LIST, result="stdout", inputs=[runner.s3.put("data/one.csv", b"1,2\n")])
    assert ended.out == b"./one.csv\n1,2\n"


def test_a_prefix_is_what_lies_below_it(runner: RunnerUnderTest) -> None:
    for name in ("data/7/a.txt", "data/7/deep/er/b.txt", "data/7/marker/", "data/70/not.txt", "data/7"):
        runner.s3.put(name, name.encode())
    ended = runner.shell(LIST, result="stdout", inputs=["s3://results/data/7/"])
    assert ended.out == b"./a.txt\n./deep/er/b.txt\ndata/7/a.txtdata/7/deep/er/b.txt"


def test_objects_and_prefixes_may_be_mixed_and_come_from_several_buckets(runner: RunnerUnderTest) -> None:
    uris = [runner.s3.put("x.txt", b"x", bucket="other"), "s3://results/p/"]
    runner.s3.put("p/y.txt", b"y")
    assert runner.shell(LIST, result="stdout", inputs=uris).out == b"./x.txt\n./y.txt\nxy"


def test_a_prefix_of_many_objects_is_listed_page_by_page(runner: RunnerUnderTest) -> None:
    runner.s3.page = 7
    for number in range(30):
        runner.s3.put(f"many/{number}.txt", b"x")
    ended = runner.shell('ls "$ARGOSY_IN" | wc -l', result="stdout", inputs=["s3://results/many/"])
    assert ended.out.strip() == b"30"


def test_names_may_hold_what_addresses_escape(runner: RunnerUnderTest) -> None:
    for name in ("a b.txt", "ä+%2F&?.txt", "quote'\"<>.txt"):
        runner.s3.put(f"odd/{name}", name.encode())
    script = """
import os
os.chdir(os.environ["ARGOSY_IN"])
for name in os.listdir():
    print(name == open(name).read())
"""
    ended = runner.python(script, changes={"PYTHONIOENCODING": "utf-8"}, result="stdout", inputs=["s3://results/odd/"])
    assert ended.code == 0, ended.err
    assert ended.out.count(b"True") == 3


def test_large_objects_arrive_whole(runner: RunnerUnderTest) -> None:
    body = bytes(range(256)) * 4 * 1024 * 20
    runner.s3.put("big.bin", body)
    ended = runner.shell('sha256sum < "$ARGOSY_IN/big.bin"', result="stdout", inputs=["s3://results/big.bin"])
    assert ended.out.split()[0].decode() == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize(
    "uri", ["s3://results/missing.csv", "s3://results/missing/", "s3://nowhere/x", "s3://nowhere/"]
)
def test_what_is_not_there_is_named(runner: RunnerUnderTest, uri: str) -> None:
    ended = runner.shell("echo ran", result="stdout", inputs=[uri])
    assert (ended.code, ended.out) == (64, b"")
    assert uri in ended.sentence


@pytest.mark.parametrize("uri", ["data/x.csv", "https://results/x", "s3://", "s3:///x"])
def test_what_is_no_address_is_named(runner: RunnerUnderTest, uri: str) -> None:
    ended = runner.shell("echo ran", result="stdout", inputs=[uri])
    assert (ended.code, ended.out) == (64, b"")
    assert uri in ended.sentence


@pytest.mark.parametrize("text", ["{", '"s3://results/x"', "[7]"])
def test_a_list_that_cannot_be_read_is_refused(runner: RunnerUnderTest, text: str) -> None:
    ended = runner.shell("echo ran", changes={"ARGOSY_INPUTS": text}, result="stdout")
    assert (ended.code, ended.out) == (64, b"")
    assert "ARGOSY_INPUTS" in ended.sentence


def test_two_inputs_of_one_name_are_refused(runner: RunnerUnderTest) -> None:
    uris = [runner.s3.put("a/x.csv", b"1"), runner.s3.put("b/x.csv", b"2")]
    ended = runner.shell("echo ran", result="stdout", inputs=uris)
    assert (ended.code, ended.out) == (64, b"")
    assert "x.csv" in ended.sentence


@pytest.mark.parametrize("key", ["p/../../escaped.txt", "p//etc/x", "p/a/../x", "p/./x"])
def test_a_key_that_is_no_path_is_refused(runner: RunnerUnderTest, key: str) -> None:
    runner.s3.put(key, b"x")
    ended = runner.shell("echo ran", result="stdout", inputs=["s3://results/p/"])
    assert (ended.code, ended.out) == (64, b"")
    assert [*runner.folder.rglob("escaped.txt")] == []


def test_a_key_that_is_a_file_and_a_folder_is_refused(runner: RunnerUnderTest) -> None:
    runner.s3.put("p/x", b"x")
    runner.s3.put("p/x/y", b"y")
    ended = runner.shell("echo ran", result="stdout", inputs=["s3://results/p/"])
    assert (ended.code, ended.out) == (64, b"")
    assert "s3://results/p/x" in ended.sentence
