"""An image name becomes a program to run, or a reason why it cannot be had."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from argosy.local.containers.images import CannotPullError, ImageStore, signature_of, source_of

DIGEST = "sha256:" + "0" * 64


def _store(root: Path, dockerfile: str, name: str = "tool") -> ImageStore:
    (root / name).mkdir()
    (root / name / "Dockerfile").write_text(dockerfile)
    return ImageStore(root, scratch=root / "scratch")


@pytest.mark.parametrize("reference", ["argosy/tool", "argosy/tool:1.2", f"argosy/tool@{DIGEST}"])
def test_python_is_the_projects_own_and_runs_in_the_images_folder(tmp_path: Path, reference: str) -> None:
    store = _store(tmp_path, 'FROM x\nENTRYPOINT ["python", "-m", "tool"]\nCMD ["--fast"]\n')
    image = store.pull(reference)
    assert image.arguments(None, None) == [image.python, "-m", "tool", "--fast"]
    assert image.arguments(None, ["--slow"]) == [image.python, "-m", "tool", "--slow"]
    assert image.arguments(["sh", "-c"], None) == ["sh", "-c"]
    assert image.folder == tmp_path / "tool"


@pytest.mark.parametrize(
    ("installs", "found"),
    [("", []), ("RUN pip install --no-cache-dir boto3==1", ["boto3", "s3transfer"]), ("RUN pip install nope", [])],
)
def test_a_program_finds_what_its_dockerfile_installs_and_no_other_package(
    tmp_path: Path, installs: str, found: list[str]
) -> None:
    image = ImageStore(tmp_path, scratch=tmp_path / "scratch")
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "Dockerfile").write_text(f'FROM x\n{installs}\nENTRYPOINT ["python"]\n')
    code = "import importlib.util as u; print([m for m in ('argosy', 'boto3', 'moto', 's3transfer') if u.find_spec(m)])"
    words = image.pull("argosy/tool").arguments(None, ["-c", code])
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == f"{found}\n"


def test_an_image_with_flavours_finds_all_packages_of_local_mode_in_an_environment_of_its_own(tmp_path: Path) -> None:
    python = _store(tmp_path, "FROM x\nARG FLAVOUR=cpu\n").pull("argosy/tool").python
    code = "import importlib.util as u, sys; print(sys.prefix, *[m for m in ('boto3', 'moto') if not u.find_spec(m)])"
    said = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(Path(python).parent.parent)


def test_only_the_last_stage_counts_and_lines_may_be_continued(tmp_path: Path) -> None:
    dockerfile = """FROM a AS build
ENV OLD=1
ENTRYPOINT ["old"]
FROM b
# a comment
ENV A=1 \\
    B="two words"
ENV C three
ENTRYPOINT [ \\
    "new", "x"]
"""
    image = _store(tmp_path, dockerfile).pull("argosy/tool")
    assert image.arguments(None, None) == ["new", "x"]
    assert image.environment == {"A": "1", "B": "two words", "C": "three"}


def test_names_are_the_folders_with_a_dockerfile_and_the_stock_image(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert _store(tmp_path, "FROM x").names() == ["python", "tool"]


def test_an_image_that_comes_in_flavours_has_a_second_name_as_in_the_registry(tmp_path: Path) -> None:
    flavoured = 'FROM x AS packages\nARG FLAVOUR=cpu\nFROM x\nENTRYPOINT ["run"]\n'
    store = _store(tmp_path, flavoured)
    assert store.names() == ["python", "tool", "tool-gpu"]
    assert store.pull("argosy/tool-gpu") == store.pull("argosy/tool")  # a process of this machine is the same
    assert source_of(tmp_path, "argosy/tool") == (tmp_path / "tool", "cpu")
    assert source_of(tmp_path, "argosy/tool-gpu:1") == (tmp_path / "tool", "gpu")
    (tmp_path / "tool-gpu").mkdir()
    (tmp_path / "tool-gpu" / "Dockerfile").write_text('FROM x\nENTRYPOINT ["other"]\n')
    assert source_of(tmp_path, "argosy/tool-gpu") == (tmp_path / "tool-gpu", "")  # a folder of that name goes before
    assert store.names() == ["python", "tool", "tool-gpu"]
    with pytest.raises(CannotPullError, match="not found"):
        store.pull("argosy/tool-gpu-gpu")


@pytest.mark.parametrize(
    "reference",
    [
        "nginx",
        "argosy/unknown",
        "argosy/../tool",
        "argosy/tool-gpu",
        "other/tool",
        "argosy/tool:a:b",
        "argosy/tool@sha256:1",
    ],
)
def test_any_other_image_cannot_be_pulled(tmp_path: Path, reference: str) -> None:
    store = _store(tmp_path, 'FROM x\nENTRYPOINT ["true"]')
    with pytest.raises(CannotPullError, match=r"argosy/NAME|not found"):
        store.pull(reference)


def test_a_shell_form_entry_point_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotPullError, match="exec-form"):
        _store(tmp_path, "FROM x\nENTRYPOINT python -m tool").pull("argosy/tool")


def test_images_may_have_a_python_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "tensorflow-x").mkdir()
    (tmp_path / "tensorflow-x" / "Dockerfile").write_text('FROM x\nENTRYPOINT ["python", "-m", "x"]\n')
    store = ImageStore(tmp_path, {"tensorflow-*": "/env/bin/python", "*": "/other/python"})
    assert store.pull("argosy/tensorflow-x:1").arguments(None, None) == ["/env/bin/python", "-m", "x"]
    (tmp_path / "tensorflow-x").rename(tmp_path / "digits")
    assert store.pull("argosy/digits").arguments(["python3"], ["a"]) == ["/other/python", "a"]


def test_the_signature_of_a_folder_changes_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x")
    first = signature_of(tmp_path)
    assert signature_of(tmp_path) == first
    (tmp_path / "program.py").write_text("pass")
    second = signature_of(tmp_path)
    (tmp_path / "program.py").write_text("print()")
    third = signature_of(tmp_path)
    (tmp_path / "program.py").unlink()
    assert len({first, second, third}) == 3
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "program.pyc").write_text("x")
    assert signature_of(tmp_path) == first
