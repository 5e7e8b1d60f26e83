"""Do .gitignore and .argosyignore leave out the same files as git? Git itself is the reference."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.client.packing.folder import packed_entries

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git on PATH")


def tree(root: Path, *names: str, **texts: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    return root


def left(root: Path) -> set[str]:
    """The files that travel, without those that say which."""
    return {each.name for each in packed_entries(root) if each.is_file and not each.name.endswith("ignore")}


def kept_by_git(root: Path, files: Sequence[str]) -> set[str]:
    """Those that git would add: its patterns only, whatever it follows already."""
    if not (root / ".git").is_dir():
        subprocess.run(["git", "init", "-q", str(root)], check=True, env=quiet())
    asked = b"".join(os.fsencode(name) + b"\0" for name in files)
    answer = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"],
        input=asked,
        capture_output=True,
        check=False,
        env=quiet(),
    )
    assert answer.returncode in (0, 1), answer.stderr
    return set(files) - {os.fsdecode(name) for name in answer.stdout.split(b"\0")}


def quiet() -> dict[str, str]:
    """Without the settings of the person who runs the tests."""
    return {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "XDG_CONFIG_HOME": "/nonexistent",
    }


NAMES = [
    "a",
    "b.py",
    "data/a",
    "data/big.bin",
    "data/sub/a",
    "data/sub/b.py",
    "src/data/a",
    "src/x y",
    "A-1",
    "é",
    "[x]",
]
CASES = [
    "*.py",
    "data",
    "data/",
    "/data/",
    "/a",
    "data/a",
    "**/a",
    "data/**",
    "data/**\n!data/sub",
    "data/*\n!data/sub/",
    "*\n!*/\n!*.py",
    "**/sub/*",
    "data/**/a",
    "a/**/b",
    "src/**",
    "!a",
    "*\n!a",
    "# a\n\\#x\na ",
    "a\\ ",
    "x\\ y",
    "?",
    "??",
    "[ab]*",
    "[!a]*",
    "[^a-z]*",
    "[[:upper:]]-[[:digit:]]",
    "[[:nope:]]*",
    "[a-",
    "\\[x]",
    "[[]x]",
    "[]x[]*",
    "data/[a-z]*/b.p[y]",
    "a\r\nb.py\r",
    "sub/",
    "/*\n!/src",
    "**",
    "/",
    "a\\",
    "**/",
    "*/",
    "***/a",
    "data/su*/",
]


@needs_git
@pytest.mark.parametrize("text", CASES, ids=repr)
def test_a_file_of_patterns_means_what_it_means_to_git(tmp_path: Path, text: str) -> None:
    tree(tmp_path, *NAMES)
    (tmp_path / ".gitignore").write_bytes(text.encode())
    assert left(tmp_path) == kept_by_git(tmp_path, NAMES)


@needs_git
def test_the_files_of_folders_deeper_down_decide_first(tmp_path: Path) -> None:
    tree(tmp_path, *NAMES)
    (tmp_path / ".gitignore").write_text("*.py\ndata/big.bin\nsub/\n")
    (tmp_path / "data" / ".gitignore").write_text("!big.bin\n!sub/\na\n/sub/a\n")
    (tmp_path / "data" / "sub" / ".gitignore").write_text("!b.py\n")
    assert left(tmp_path) == kept_by_git(tmp_path, NAMES)
    assert "data/big.bin" in left(tmp_path)


@needs_git
def test_a_folder_within_a_repository_obeys_the_files_above_it(tmp_path: Path) -> None:
    tree(tmp_path, "top.txt", *(f"work/{name}" for name in NAMES))
    (tmp_path / ".gitignore").write_text("/work/data/\n*.py\n")
    kept = kept_by_git(tmp_path, [f"work/{name}" for name in NAMES])
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    assert left(tmp_path / "work") == {name.removeprefix("work/") for name in kept}
    (tmp_path / ".git" / "info" / "exclude").write_text("A-1\n")
    assert "A-1" not in left(tmp_path / "work")


PIECES = st.sampled_from(
    ["a", "b", "ab", "*", "**", "?", "/", "[ab]", "[!a]", "[a-b]", "\\a", "\\*", "a*", "!", " ", "#", "]", "["]
)
LINES = st.lists(PIECES, min_size=1, max_size=5).map("".join)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "c", "aab"]), min_size=1, max_size=4).map("/".join)


@pytest.mark.slow
@needs_git
@given(
    st.lists(LINES, min_size=1, max_size=4),
    st.lists(LINES, max_size=2),
    st.lists(st.tuples(PATHS, st.sampled_from(["f", "g*", "h b"])), min_size=1, max_size=8),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_patterns_mean_what_they_mean_to_git(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], inner: list[str], paths: list[tuple[str, str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    names = [f"{folder}/{name}" for folder, name in paths]
    tree(root, *names)
    (root / ".gitignore").write_text("\n".join(top))
    if inner and (root / "a").is_dir():
        (root / "a" / ".gitignore").write_text("\n".join(inner))
    assert left(root) == kept_by_git(root, sorted(set(names)))


def test_our_own_file_takes_back_what_gits_leaves_out_and_leaves_out_more(tmp_path: Path) -> None:
    tree(tmp_path, "model.bin", "notes.txt", "x.py")
    (tmp_path / ".gitignore").write_text("*.bin\n")
    (tmp_path / ".argosyignore").write_text("!model.bin\nnotes.txt\n")
    assert left(tmp_path) == {"model.bin", "x.py"}
