"""The command's message when only some of Argosy's packages are installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from argosy.cli.main import main
from argosy.cli.start import EXTRAS, lacking
from argosy.client.extras import installing

ROOT = Path(__file__).resolve().parents[3]
DISTRIBUTIONS = {"sklearn": "scikit-learn", "flask": "moto", "werkzeug": "moto"}  # moto[server] brings these two
WITHOUT = (
    "import sys; sys.modules[{0!r}] = None; from argosy.cli.start import main; sys.argv = ['argosy', '--help']; main()"
)


def started_without(package: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(package)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_without_a_terminal_s_library_the_extra_is_named() -> None:
    done = started_without("typer")
    assert done.returncode == 2
    assert done.stderr == f"error: This needs typer, which is not installed.\nnext: {installing('cli')}\n"


def test_with_it_the_command_starts() -> None:
    done = started_without("moto")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_that_no_extra_brings_is_a_fault_of_our_own() -> None:
    done = started_without("argosy.cli.panels")
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr


def test_a_command_that_needs_an_extra_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    def program() -> None:
        raise ModuleNotFoundError("No module named 'moto.server'", name="moto.server")

    with pytest.raises(SystemExit) as ended:
        main(program)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[1] == f"next: {installing('local')}"


@pytest.mark.parametrize("fault", [ValueError("x"), ModuleNotFoundError("no name"), ImportError("x", name="moto")])
def test_another_fault_is_no_lack(fault: Exception) -> None:
    assert lacking(fault) == ""


BROUGHT = [(extra, module) for extra, modules in EXTRAS.items() for module in modules]


@pytest.mark.parametrize(("extra", "module"), BROUGHT)
def test_each_extra_provides_what_is_documented(extra: str, module: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    brought = {canonicalize_name(Requirement(each).name) for each in project["optional-dependencies"][extra]}
    assert canonicalize_name(DISTRIBUTIONS.get(module, module)) in brought
