"""Images of local mode are folders: new ones are there at once, and one that cannot be run is refused with a
suggestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argosy.aws.folder_images import FolderImages, lacking_packages


class Published:
    """Stands where SSM is."""

    def resolve(self, image: str) -> str | None:
        return f"published {image}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    image(tmp_path, "primes", "FROM python\n")
    image(tmp_path, "trainer", "ARG BASE\nARG FLAVOUR\nFROM x\n")
    return tmp_path


def image(folder: Path, name: str, dockerfile: str) -> Path:
    (folder / name).mkdir()
    (folder / name / "Dockerfile").write_text(dockerfile)
    return folder / name


def images(folder: Path, runtime: str = "process", **about: Any) -> FolderImages:
    return FolderImages(Published(), str(folder), runtime, "3.11", **about)


def test_a_folder_is_an_image_as_soon_as_it_is_there(folder: Path) -> None:
    here = images(folder)
    assert here.resolve("argosy/sieve") is None
    image(folder, "sieve", "FROM python\n")
    assert here.resolve("argosy/sieve") == "argosy/sieve"
    assert [here.resolve(f"argosy/{name}") is None for name in ("trainer-gpu", "primes-gpu")] == [False, True]


def test_an_unknown_name_is_refused_with_suggestions_and_the_known_names(folder: Path) -> None:
    said = images(folder).unknown("argosy/prims")
    assert f"{folder}/prims/Dockerfile; did you mean argosy/primes?" in said
    assert "argosy/primes, argosy/python, argosy/trainer, argosy/trainer-gpu." in said
    assert "did you mean" not in images(folder).unknown("argosy/zzz")


def test_an_image_of_a_registry_needs_an_engine(folder: Path) -> None:
    assert images(folder).resolve("python:3.12") is None
    assert "--runtime podman" in images(folder).unknown("python:3.12")
    assert images(folder, "podman").resolve("python:3.12") == "python:3.12"


def test_the_stock_image_is_the_python_that_runs_local_mode_or_what_is_published(folder: Path) -> None:
    here = images(folder)
    assert (here.resolve("argosy/python"), here.resolve("argosy/python:3.11")) == ("argosy/python", "argosy/python")
    assert here.resolve("argosy/python:3.12") is None
    assert "whose Python is 3.11" in here.unknown("argosy/python:3.12")
    assert images(folder, "podman").resolve("argosy/python:3.12") == "published argosy/python:3.12"


INSTALLS = """FROM python:3.12-slim
RUN apt-get update && pip install --no-cache-dir -c limits.txt 'no-such-package==1.0' pytest \\
    another.missing && echo pip is there
RUN pip install -r /app/requirements.txt
"""


def test_packages_of_a_dockerfile_that_this_python_lacks_are_reported(folder: Path) -> None:
    made = image(folder, "needy", INSTALLS)
    (made / "requirements.txt").write_text("# ours\nthird-missing>=2 ; python_version > '3'\nboto3\n\n--hash=x\n")
    assert lacking_packages(made) == ["no-such-package", "another.missing", "third-missing"]
    (note,) = images(folder).notes("argosy/needy")
    assert "no-such-package, another.missing, third-missing" in note
    assert list(images(folder).lacking()) == ["argosy/needy"]
    assert images(folder).notes("argosy/primes") == images(folder).notes("argosy/none") == []
    assert images(folder).notes("python:3.12") == images(folder, "podman").notes("argosy/needy") == []
    assert images(folder, other_pythons=["need*"]).notes("argosy/needy") == []


def test_a_dockerfile_whose_requirements_are_missing_lacks_what_it_names_itself(folder: Path) -> None:
    made = image(folder, "odd", "FROM x\nRUN pip install -r nowhere.txt zzz-missing\nRUN pip install -r\n")
    assert lacking_packages(made) == ["zzz-missing"]
    assert (
        FolderImages.of_nobody(folder=str(folder), runtime="podman", own_python="3.11").resolve("argosy/python") is None
    )
