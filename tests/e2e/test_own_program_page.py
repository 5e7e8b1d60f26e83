"""A program of the user's own from its folder to merged rows, as in docs/guides/own-program.md, in local mode."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws
from tests.fakes.small_wheels import write_wheel
from tests.readmes import local_options

pytestmark = [pytest.mark.e2e, pytest.mark.pages]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "own-program.md"
PRIMES_BELOW_200 = 46
_BLOCK = re.compile(r"(?:`(?P<file>[\w.]+)`:\n\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with local_aws(local_options()) as aws:
        yield aws.endpoint_url


@pytest.fixture
def environment(endpoint: str, tmp_path: Path) -> dict[str, str]:
    """A shell that finds the command, the embedded AWS, and packages in a folder in place of an index."""
    write_wheel(tmp_path / "index", "tabulate", {"tabulate.py": "def tabulate(rows):\n    return 'a table'\n"})
    return {
        "ARGOSY_ENDPOINT_URL": endpoint,
        "ARGOSY_CACHE": str(tmp_path / "cache"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "index"),
    }


def shell(text: str, folder: Path, environment: dict[str, str]) -> str:
    """Its output; fails the test unless every line of it exits 0."""
    done = outcome_of(text, folder, **environment)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_command_of_the_page_works_as_it_is_typed(tmp_path: Path, environment: dict[str, str]) -> None:
    folder, home = tmp_path / "primes", tmp_path
    blocks = list(_BLOCK.finditer(PAGE.read_text(encoding="utf-8")))
    assert [block["file"] for block in blocks if block["language"] == "python"] == ["primes.py", "sieve.py"]
    for block in blocks:
        if block["language"] == "python":
            (folder / str(block["file"])).write_text(block["text"])
        elif not block["language"]:  # `console` does not match the terminal, or for a user's bucket
            typed = re.sub(r"^export ARGOSY_ENDPOINT_URL=.*$", "", block["text"], flags=re.MULTILINE)
            shell(typed, folder if folder.is_dir() else home, environment)
    assert len((folder / "primes.jsonl").read_text().splitlines()) == PRIMES_BELOW_200
    assert (folder / "last/000000/part.jsonl").read_text() == "5\n"
    assert (folder / "painted/000001/part.jsonl").read_text() == "paint it deep blue\n"
    assert len((folder / "few.jsonl").read_text().splitlines()) == 8
    assert (folder / "few.jsonl").read_text() == (folder / "again.jsonl").read_text()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Ten lines, with a module next to them and a package that the tasks lack by default."""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "squares.py").write_text(
        "import csv, json, os, sys\n"
        "from tabulate import tabulate\n"
        "from beside import square\n"
        "start, end = map(int, sys.argv[1:])\n"
        "rows = [{'n': n, 'square': square(n), 'table': tabulate([])} for n in range(start, end)]\n"
        "with open(os.environ['ARGOSY_OUT'] + '/part.jsonl', 'w') as part:\n"
        "    part.writelines(json.dumps(row) + '\\n' for row in rows)\n"
    )
    (folder / "beside.py").write_text("def square(n):\n    return n * n\n")
    return folder


def test_one_command_runs_a_script_with_its_module_and_its_packages_and_merges_the_rows(
    program: Path, environment: dict[str, str]
) -> None:
    said = shell(
        "argosy run squares.py '${start}' '${end}' --range 0:200 --shard-size 50 --with tabulate --merge rows.jsonl",
        program,
        environment,
    )
    rows = [json.loads(line) for line in (program / "rows.jsonl").read_text().splitlines()]
    assert rows == [{"n": n, "square": n * n, "table": "a table"} for n in range(200)]
    assert "200 rows of 4 of 4 tasks" in said


def test_standard_output_is_the_rows_and_nothing_else(tmp_path: Path, environment: dict[str, str]) -> None:
    items = tmp_path / "items"
    items.write_text("a;b\n$(id)\n")
    typed = """argosy run 'printf "{\\"item\\": \\"%s\\"}\\n" "${item}"' --items items --result stdout --merge -"""
    rows = [json.loads(line)["item"] for line in shell(typed, tmp_path, environment).splitlines()]
    assert rows == ["a;b", "$(id)"]


def test_a_spec_file_is_packed_from_where_it_lies(program: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (program / "run.yaml").write_text(
        "version: 1\nname: squares\nrun: python squares.py ${start} ${end}\nworkdir: .\npackages: [tabulate]\n"
        "setup: test -f beside.py\narray: {range: '0:4', shardSize: 2}\n"
    )
    shell("argosy submit program/run.yaml && argosy results last --merge --output rows.jsonl", tmp_path, environment)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 4
