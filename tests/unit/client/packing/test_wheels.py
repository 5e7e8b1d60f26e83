"""Packages are resolved once, for the Python that the program will run with, and kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from argosy.client.errors import ArgosyError, InvalidInput
from argosy.client.packing.wheels import Resolver, Target, cache_folder, pip_command
from tests.fakes.small_wheels import write_wheel

AWS = Target("3.12")


class Pip:
    """Writes the given wheels and counts the calls."""

    def __init__(self, *names: str, refuses: str = "") -> None:
        self.names, self.refuses, self.asked = names, refuses, 0

    def __call__(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked += 1
        if self.refuses:
            return subprocess.CompletedProcess(words, 1, "", self.refuses)
        folder = Path(words[words.index("--dest") + 1])
        for name in self.names:
            (folder / f"{name}-1.0-py3-none-any.whl").write_bytes(name.encode())
        return subprocess.CompletedProcess(words, 0, "", "")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_the_same_question_is_asked_once_a_day(tmp_path: Path) -> None:
    pip, clock = Pip("b", "a"), Clock()
    resolver = Resolver(tmp_path, pip, clock)
    found = resolver.wheels(["b", "a"], AWS)
    assert [each.path.name for each in found] == ["a-1.0-py3-none-any.whl", "b-1.0-py3-none-any.whl"]
    assert all(each.path.is_file() and each.kind == "wheel" for each in found)
    assert Resolver(tmp_path, pip, clock).wheels(["a", "b"], AWS) == found
    assert pip.asked == 1
    clock.now += 86_401
    assert resolver.wheels(["a", "b"], AWS) == found
    assert pip.asked == 2


def test_another_python_is_another_question(tmp_path: Path) -> None:
    pip = Pip("a")
    resolver = Resolver(tmp_path, pip, Clock())
    for target in (AWS, Target("3.13"), Target("3.12", "arm64")):
        resolver.wheels(["a"], target)
    assert pip.asked == 3


@pytest.mark.parametrize("damage", ["gone", "shorter", "lock"])
def test_a_damaged_cache_is_fetched_again(tmp_path: Path, damage: str) -> None:
    pip = Pip("a")
    resolver = Resolver(tmp_path, pip, Clock())
    (wheel,) = resolver.wheels(["a"], AWS)
    if damage == "gone":
        wheel.path.unlink()
    elif damage == "shorter":
        wheel.path.write_bytes(b"")
    else:
        for lock in (tmp_path / "locks").iterdir():
            lock.write_text("[]")
    assert resolver.wheels(["a"], AWS) == [wheel]
    assert pip.asked == 2
    assert wheel.path.read_bytes() == b"a"


def test_what_pip_refuses_is_a_sentence_and_is_not_kept(tmp_path: Path) -> None:
    said = "WARNING: x\nERROR: No matching distribution found for nope\n"
    pip = Pip(refuses=said)
    resolver = Resolver(tmp_path, pip, Clock())
    for asked in (1, 2):
        with pytest.raises(InvalidInput, match=r"pip finds no wheels of nope for Python 3.12 on x86_64") as refusal:
            resolver.wheels(["nope"], AWS)
        assert refusal.value.details == ["No matching distribution found for nope"]
        assert pip.asked == asked


def test_of_hundreds_of_versions_the_newest_are_named(tmp_path: Path) -> None:
    many = ", ".join(f"0.{number}" for number in range(200))
    said = f"ERROR: Could not find a version that satisfies the requirement a==9 (from versions: {many})\n"
    few = "ERROR: Could not find a version that satisfies the requirement a==9 (from versions: 1, 2)\n"
    with pytest.raises(InvalidInput) as refusal:
        Resolver(tmp_path, Pip(refuses=said + few), Clock()).wheels(["a==9"], AWS)
    newest, all_of_them = refusal.value.details
    assert newest.endswith("a==9 (the newest versions: 0.192, 0.193, 0.194, 0.195, 0.196, 0.197, 0.198, 0.199)")
    assert all_of_them.endswith("(from versions: 1, 2)")


def test_without_pip_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ArgosyError, match="packages are resolved with pip, which this Python does not have") as refusal:
        Resolver(tmp_path, Pip("a"), Clock()).wheels(["a"], AWS)
    assert "ensurepip" in refusal.value.next_step


def test_pip_is_asked_for_wheels_of_the_image_and_never_runs_a_requirement_as_an_option() -> None:
    words = pip_command(["a", "b>=2"], Target("3.13", "arm64"), "/f")
    assert words[words.index("--python-version") + 1] == "3.13"
    assert "--only-binary=:all:" in words
    assert "manylinux_2_28_aarch64" in words
    assert not any("x86_64" in word for word in words)
    assert words[-3:] == ["--", "a", "b>=2"]
    assert pip_command(["a"], Target.here(), "/f")[3] == "wheel"


def test_the_cache_lies_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("ARGOSY_CACHE", raising=False)
    assert cache_folder() == tmp_path / "argosy"
    monkeypatch.setenv("ARGOSY_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("ARGOSY_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "argosy"


@pytest.mark.slow
@pytest.mark.parametrize("target", [Target.here(), Target("3.12")], ids=["here", "aws"])
def test_pip_itself_finds_wheels(tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder, so that the network is not used."""
    write_wheel(tmp_path / "index", "greeting", {"greeting.py": "WORD = 'hello'\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (wheel,) = Resolver(tmp_path / "cache").wheels(["greeting>=1"], target)
    assert wheel.path.name == "greeting-1.0-py3-none-any.whl"
    with pytest.raises(InvalidInput, match="pip finds no wheels of greeting>=2"):
        Resolver(tmp_path / "cache").wheels(["greeting>=2"], target)
