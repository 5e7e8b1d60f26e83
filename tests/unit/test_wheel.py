"""What does the wheel install? One package with the images in it, so that `argosy demo` needs no checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.wheels import ROOT, copy_of_the_checkout, unpacked_wheel


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel of a checkout that still has the build of a module that is gone."""
    checkout = copy_of_the_checkout(tmp_path_factory.mktemp("checkout"))
    stale = checkout / "build/lib/controller/gone.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    return unpacked_wheel(checkout, tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_its_one_package_is_argosy(site: Path) -> None:
    assert [path.name for path in site.iterdir() if not path.name.endswith(".dist-info")] == ["argosy"]


def test_every_module_and_data_file_is_in_it(site: Path) -> None:
    package = ROOT / "controller/argosy"
    shipped = {path.relative_to(site / "argosy") for path in (site / "argosy").rglob("*") if path.is_file()}
    missing = {
        path.relative_to(package) for path in package.rglob("*") if path.suffix in (".py", ".json", ".lark", ".sh")
    }
    assert missing - shipped == set()


def test_every_image_is_in_it_with_what_its_dockerfile_copies(site: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "containers"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    shipped = {str(path.relative_to(site / "argosy")) for path in (site / "argosy/containers").rglob("*")}
    assert {name for name in tracked if "/tests/" not in name} - shipped == set()
    assert not [name for name in shipped if "__pycache__" in name]


@pytest.mark.slow
def test_from_an_empty_folder_it_finds_its_own_images(site: Path, tmp_path: Path) -> None:
    code = "from argosy.cli.here.examples import example; print(example('digits/run.yaml'))"
    environment = {**os.environ, "PYTHONPATH": str(site)}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert found == str(site / "argosy/containers/digits/run.yaml")


EXTRAS = {"cli": ["cli"], "map": ["map"], "frame": ["frame"], "local": ["cli", "map", "functions", "local"]}


def test_its_extras_ask_for_what_the_groups_ask_for() -> None:
    """The lock files are made from the groups; a wheel can only name extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups, extras = project["dependency-groups"], project["project"]["optional-dependencies"]
    asked = {
        extra: [each for name in names for each in groups[name] if isinstance(each, str)]
        for extra, names in EXTRAS.items()
    }
    assert extras == asked
