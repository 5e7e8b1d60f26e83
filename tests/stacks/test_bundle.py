"""The functions' zips: our files in them, the single download of wheels, and the command to type after a failure."""

from __future__ import annotations

import json
import sys
import tomllib
import zipfile
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from stacks import bundle, nag
from stacks.byte_code import MAGIC_NUMBERS
from tests.stacks.templates import Template

pytestmark = pytest.mark.stacks


def halves() -> tuple[set[str], set[str]]:
    """The packages that Lambda ships and those of a user's machine, as in the layers of the import contracts."""
    contracts = tomllib.loads((bundle.ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each.get("containers") == ["argosy"]]
    lowest_first = [{name.strip() for name in layer.split("|")} for layer in reversed(layers)]
    entry = lowest_first.index({"handlers"})
    return set().union(*lowest_first[: entry + 1]), set().union(*lowest_first[entry + 1 :])


def rooms(folder: Path) -> set[str]:
    """The modules and packages of `argosy` in a folder."""
    names = (path.stem for path in (folder / "argosy").iterdir() if path.suffix == ".py" or path.is_dir())
    return {name for name in names if not name.startswith("__")}


def test_every_package_belongs_to_one_half() -> None:
    """For a new room, add it to a layer of the import contracts, and to USERS_HALF when no function imports it."""
    lambdas_half, users_half = halves()
    assert rooms(bundle.SOURCE) == lambdas_half | users_half
    assert set(bundle.USERS_HALF) == users_half


def test_the_zip_of_the_controller_holds_the_half_that_lambda_ships_and_nothing_else(home: Template) -> None:
    for function in ("api", "controller"):
        properties = home.named("AWS::Lambda::Function", "FunctionName", f"argosy-{function}")
        zipped = home.folder / f"asset.{properties['Code']['S3Key'].removesuffix('.zip')}"
        assert [path.name for path in zipped.iterdir()] == ["argosy"]
        assert rooms(zipped) == halves()[0]


def fake_uv(folder: Path, script: str) -> None:
    """An executable named uv that gets the installer's arguments."""
    folder.mkdir()
    (folder / "uv").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "uv").chmod(0o755)


def requirements(folder: Path, text: str = "numpy==2.4.6\n") -> Path:
    (folder / "requirements.txt").write_text(text)
    return folder / "requirements.txt"


INSTALLING = """echo "$@" >> "$(dirname "$0")/calls"
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/numpy/tests" && touch "$2/numpy/core.py" "$2/numpy/core.pyi" "$2/numpy/tests/test_core.py"
"""


def test_wheels_are_fetched_for_lambda_once_and_without_their_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path / "bin", INSTALLING)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    wanted = requirements(tmp_path)
    folder = bundle.wheels(wanted, None, tmp_path / "cache")
    assert bundle.wheels(wanted, None, tmp_path / "cache") == folder
    assert sorted(p.name for p in folder.rglob("*.py*")) == ["core.py"]
    (call,) = (tmp_path / "bin" / "calls").read_text().splitlines()
    assert "--python-platform aarch64-manylinux_2_28" in call
    assert "--python-version 3.13" in call
    assert "--require-hashes" in call


def test_the_zip_holds_our_files_and_the_wheels_at_its_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_uv(tmp_path / "bin", INSTALLING)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    ours = [bundle.SOURCE / "argosy" / name for name in ("__init__.py", "layout.py")]
    made = bundle.zipped(ours, requirements(tmp_path), sys.executable, tmp_path / "cache")
    with zipfile.ZipFile(made) as opened:
        names = {name.partition(".cpython")[0] for name in opened.namelist() if not name.endswith("/")}
    assert {"argosy/__init__.py", "argosy/layout.py", "argosy/__pycache__/layout", "numpy/core.py"} <= names
    assert "numpy/tests/test_core.py" not in names


def test_a_template_needs_no_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F1: the CDK makes the zip when it publishes it; an installer that is called now would fail."""
    fake_uv(tmp_path / "bin", 'case "$*" in *install*) echo fetched >> "$(dirname "$0")/calls";; esac; exit 1')
    python = tmp_path / "bin" / "python3.13"
    python.write_text(f"#!/bin/sh\necho 3 13 {MAGIC_NUMBERS[bundle.PYTHON]}\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    app = cdk.App(outdir=str(tmp_path / "out"))
    stack = cdk.Stack(app, "Stack")
    code = bundle.controller_code(stack, dependencies=True)
    lambda_.Function(stack, "F", code=code, handler="argosy.handlers.api", runtime=bundle.RUNTIME)
    app.synth()
    files = json.loads((tmp_path / "out" / "Stack.assets.json").read_text())["files"].values()
    (source,) = [each["source"] for each in files if "executable" in each["source"]]
    assert source["executable"][1:] == ["-m", "stacks.bundle"]
    assert not (tmp_path / "bin" / "calls").exists()


def test_other_requirements_are_other_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_uv(tmp_path / "bin", INSTALLING)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    first = bundle.wheels(requirements(tmp_path), None, tmp_path / "cache")
    assert bundle.wheels(requirements(tmp_path, "numpy==2.5.5\n"), None, tmp_path / "cache") != first


def test_wheels_that_cannot_be_fetched_leave_nothing_behind_and_say_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path / "bin", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    with pytest.raises(bundle.BundleError, match="Only deploying needs them"):
        bundle.wheels(requirements(tmp_path), None, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*"))


def test_compiled_wheels_and_others_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the right interpreter leaves nothing behind that one with it would ship."""
    fake_uv(tmp_path / "bin", INSTALLING)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    plain = bundle.wheels(requirements(tmp_path), None, tmp_path / "cache")
    compiled = bundle.wheels(requirements(tmp_path), sys.executable, tmp_path / "cache")
    assert not list(plain.rglob("*.pyc"))
    assert [path.name.partition(".")[0] for path in compiled.rglob("*.pyc")] == ["core"]


def test_without_uv_pip_gets_both_tags() -> None:
    assert {"manylinux_2_28_aarch64", "manylinux2014_aarch64"} <= set(bundle.installer(None, pip=True))


def test_without_uv_and_pip_there_is_a_sentence() -> None:
    with pytest.raises(bundle.BundleError, match="neither uv nor pip"):
        bundle.installer(None, pip=False)


def test_a_zip_above_the_limit_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(bundle.SIZE_LIMIT_MB * 1_000_000 + 1)
    with pytest.raises(bundle.BundleError, match="unpacked"):
        bundle.check_size(tmp_path)


def test_a_wildcard_without_a_reason_stops_synth() -> None:
    stack = cdk.Stack(cdk.App(), "Stack")
    statement = iam.PolicyStatement(actions=["s3:GetObject"], resources=["arn:aws:s3:::*-odd"])
    with pytest.raises(LookupError, match="odd"):
        nag.acknowledge_wildcards(stack, [statement])
