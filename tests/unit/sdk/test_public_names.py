"""The names of `import argosy`, and its cost."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import argosy

ROOT = Path(__file__).resolve().parents[3]
SLOW = {"boto3", "botocore", "numpy", "pydantic", "cloudpickle", "concurrent.futures", "asyncio"}


def loaded_after(code: str) -> set[str]:
    """Names of all modules that a fresh interpreter has loaded after this code."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_importing_it_loads_nothing_else() -> None:
    loaded = loaded_after("import argosy")
    assert loaded & SLOW == set()
    assert {name for name in loaded if name.startswith("argosy")} == {"argosy"}


def test_a_client_is_made_without_loading_aws() -> None:
    assert loaded_after("import argosy; argosy.Client('http://127.0.0.1:1')") & {"boto3", "botocore", "numpy"} == set()


@pytest.mark.parametrize("name", argosy.__all__)
def test_every_public_name_is_there_documented_and_listed(name: str) -> None:
    assert getattr(argosy, name).__doc__
    assert name in dir(argosy)


def test_a_name_that_it_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'argosy' has no attribute 'Cleint'"):
        argosy.Cleint  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    stub = ast.parse((ROOT / "controller/argosy/__init__.pyi").read_text())
    imported = {
        alias.asname or alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(imported) == sorted(argosy.__all__)


def test_the_wheel_says_that_it_is_typed() -> None:
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["argosy"]
    assert {"py.typed", "*.pyi"} <= set(shipped)
    assert (ROOT / "controller/argosy/py.typed").exists()


def test_public_functions_and_their_arguments_are_typed() -> None:
    """mypy refuses others in this repository; this holds what `argosy.Client` itself shows."""
    methods = [member for name, member in vars(argosy.Client).items() if re.match(r"[a-z]", name) and callable(member)]
    assert methods
    assert all("return" in member.__annotations__ for member in methods)
