"""The images' shared code for inputs and results, which every image has."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import argosy_storage as storage
import pytest

CONTAINERS = Path(__file__).resolve().parents[3] / "containers"


@pytest.mark.parametrize(
    "folder",
    sorted({path.parents[1] for path in CONTAINERS.glob("*/*/*.py") if "import argosy_storage" in path.read_text()}),
    ids=lambda p: p.name,
)
def test_what_an_image_shares_lies_in_its_folder_too(folder: Path) -> None:
    """Without a container a program runs in its folder, where the image has the shared files next to it."""
    copied = re.findall(r"^COPY shared/(\S+) \.$", (folder / "Dockerfile").read_text(), re.MULTILINE)
    assert copied
    for name in copied:
        assert (folder / name).resolve() == CONTAINERS / "shared" / name


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, storage.Temporary), (errno.EACCES, storage.Refused)])
def test_a_full_disk_may_be_better_elsewhere_and_a_forbidden_one_not(number: int, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="out/part"), storage.file_errors("out/part"):
        raise OSError(number, os.strerror(number))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_disk_that_is_full_is_trouble_that_another_instance_may_not_have(tmp_path: Path) -> None:
    """/dev/full refuses every byte as a full disk does."""
    full = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(storage.Temporary, match="No space left"), storage.file_errors(tmp_path / "x"):
        os.write(full, b"x")
    os.close(full)


def test_a_file_is_written_whole_and_once(tmp_path: Path) -> None:
    target = str(tmp_path / "new" / "part.jsonl")
    assert storage.write_once(target, b"first", {})
    assert not storage.write_once(target, b"second", {})
    assert Path(target).read_bytes() == b"first"
    storage.write(target, b"third")
    assert Path(target).read_bytes() == b"third"
    assert [each.name for each in Path(target).parent.iterdir()] == ["part.jsonl"]
