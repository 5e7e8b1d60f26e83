"""The library against local mode: every example of its page, and the page's statements about `argosy.map`."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.local.options import LocalOptions
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, README, CELLS = (
    re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for page in ("docs/guides/sdk.md", "README.md", "docs/guides/notebooks.md")
)
IN_THE_SHELL = "import argosy; print(*argosy.map(lambda x: x * x, range(1000)))"
# A notebook's cells may await at their top level, and show the value of their last line.
NOTEBOOK = """
import ast, asyncio, json
for cell in json.load(open("cells.json")):
    code = compile(cell, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(code)
    if waiting is not None:
        asyncio.run(waiting)
print(run.status, areas[2], len(run._repr_html_()), client.run("circles").id == run.id)
"""
CIRCLES = """
version: 1
name: circles
run: [python, -c, "import json; print(json.dumps({'radius': ${index}}))"]
result: stdout
array: {size: 4}
"""
WITHOUT_A_SHUTDOWN = """
import argosy
argosy.Executor().submit(pow, 2, 8).add_done_callback(lambda future: print(future.result()))
print("the last line")
"""
WITH_A_MODULE = """
import argosy, beside
print(*argosy.map(beside.half, [4, 3]))
"""


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """The environment of a shell that can reach local mode."""
    with local_aws(LocalOptions(boot_s=0.2, tick_s=0.3)) as aws:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ARGOSY_"))}
        yield {**kept, "ARGOSY_ENDPOINT_URL": aws.endpoint_url, "AWS_REGION": "us-east-1"}


def script(code: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As `python`, in a fork that has made its imports."""
    (folder / "program.py").write_text(code)
    reached = {name: environment[name] for name in ("ARGOSY_ENDPOINT_URL", "AWS_REGION")}
    without = [f"--unset={name}" for name in os.environ if name not in environment]
    return outcome_of(["env", *without, "script", "program.py"], folder, **reached)


def python(code: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The result of `python FILE` with this code in a folder of the user's."""
    (folder / "program.py").write_text(code)
    command = [sys.executable, "program.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.pages
def test_every_example_of_the_page_runs_as_it_stands(tmp_path: Path, environment: dict[str, str]) -> None:
    assert len(EXAMPLES) == 11
    done = python("\n".join(EXAMPLES), tmp_path, environment)
    assert done.returncode == 0, done.stderr
    assert "arrray unknown field" in done.stdout
    assert "in <lambda>" in done.stdout
    assert (tmp_path / "squares.html").stat().st_size > 10_000


@pytest.mark.pages
def test_the_example_of_the_readme_runs_as_it_stands(tmp_path: Path, environment: dict[str, str]) -> None:
    """With fewer tasks: `argosy demo` runs the spec as it stands."""
    [example] = README
    shutil.copytree(ROOT / "containers/digits", tmp_path / "containers/digits")
    spec = tmp_path / "containers/digits/run.yaml"
    spec.write_text(spec.read_text().replace("shardSize: 50", "shardSize: 450"))
    done = script(f"{example}\nprint(run.status, squares[999])", tmp_path, environment)
    assert done.stdout == "SUCCEEDED 998001\n", done.stderr


@pytest.mark.pages
def test_the_cells_of_the_page_about_notebooks_run_as_they_stand(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "run.yaml").write_text(CIRCLES)
    (tmp_path / "cells.json").write_text(json.dumps(CELLS))
    done = script(NOTEBOOK, tmp_path, environment)
    assert done.returncode == 0, done.stderr
    status, area, html, is_same = done.stdout.split()
    assert (status, float(area), is_same) == ("SUCCEEDED", 4 * math.pi, "True")
    assert int(html) > 1_000
    assert (tmp_path / "circles.html").exists()


def test_a_thousand_items_from_the_command_line(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", IN_THE_SHELL]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split() == [str(x * x) for x in range(1000)], done.stderr


def test_a_program_that_ends_without_a_shutdown_has_its_calls_made(tmp_path: Path, environment: dict[str, str]) -> None:
    done = python(WITHOUT_A_SHUTDOWN, tmp_path, environment)
    assert done.stdout == "the last line\n256\n", done.stderr


def test_a_module_next_to_the_program_is_uploaded_and_its_exception_comes_back(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    text = "def half(x):\n    if x % 2:\n        raise ValueError(f'{x} is odd')\n    return x // 2\n"
    (tmp_path / "beside.py").write_text(text)
    done = script(WITH_A_MODULE, tmp_path, environment)
    assert done.returncode == 1
    assert "ValueError: 3 is odd" in done.stderr
    assert "argosy.sdk.mapping.outcomes.RemoteTraceback" in done.stderr
    assert "in half" in done.stderr.partition("The above exception was the direct cause")[0]
