"""Every command that Argosy tells people to type is typed here, as far as nothing is done by it.

They are found, not listed: in what the doctor's checks answer, in every sentence of the code that has a command between
backticks, and in the README's first run. A remedy once named a variable of make that did not exist.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from argosy.cli.deployment import remedies
from argosy.cli.deployment.account import SERVICE_ROLES
from argosy.cli.deployment.quotas import VPCS
from tests.fakes.command_lines import PROGRAMS, ROOT, commands_in, understand

pytestmark = pytest.mark.slow

# The arguments of a remedy, by the name of its parameter.
SAMPLES: dict[str, Any] = {
    "account": "123456789012",
    "region": "eu-west-1",
    "service": "vpc",
    "code": VPCS,
    "wanted": 64,
    "services": list(SERVICE_ROLES.values()),
    "qualifier": "company",
    "names": ["digits", "recommender-gpu", "recommender"],
}
_QUOTED = re.compile(rf"`((?:{'|'.join(PROGRAMS)}) [^`]+)`")
SOURCES = [*sorted((ROOT / "controller/argosy").rglob("*.py")), *sorted((ROOT / "stacks").glob("*.py"))]


def remedies_of_the_doctor() -> Iterator[str]:
    for name, value in vars(remedies).items():
        if isinstance(value, str) and name.isupper():
            yield value
        elif inspect.isfunction(value) and value.__module__ == remedies.__name__:
            yield value(**{each: SAMPLES[each] for each in inspect.signature(value).parameters})


def sentences(path: Path) -> Iterator[str]:
    """The texts of a module, docstrings and comments left out, with something filled in. None of a module that quotes
    no program anywhere: parsing all of them would cost each process of the tests seconds."""
    text = path.read_text(encoding="utf-8")
    if not any(f"`{program}" in text for program in PROGRAMS):
        return
    nodes = [*ast.walk(ast.parse(text))]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in nodes if isinstance(node, documented) and node.body]
    left_out = {id(body[0].value) for body in bodies if isinstance(body[0], ast.Expr)}  # docstrings
    left_out |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield filled(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def filled(template: ast.JoinedStr) -> str:
    """7, which is a number and a word; after a setting's = a name; nothing behind a word that may have a tail."""
    text = ""
    for part in template.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
        else:
            text += "digits" if text.endswith("=") else "" if text[-1:].isalnum() else "7"
    return text


@cache
def in_sentences() -> frozenset[str]:
    return frozenset(line for path in SOURCES for text in sentences(path) for line in _QUOTED.findall(text))


def of_the_readme() -> list[str]:
    """The block of the first run."""
    block = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Deploy, submit, destroy\n\n```\n")[2]
    return [line for line in block.partition("```")[0].splitlines() if line]


def of_remedies() -> set[str]:
    """Whole lines that are commands, and commands within sentences."""
    found = set(remedies_of_the_doctor())
    return {each for each in found if each.split()[0] in PROGRAMS} | {
        q for each in found for q in _QUOTED.findall(each)
    }


def test_there_are_some_of_each_kind() -> None:
    assert len(of_remedies()) >= 6
    assert len(in_sentences()) >= 10
    assert any("make deploy" in line for line in in_sentences())
    assert len(of_the_readme()) >= 5


@pytest.mark.parametrize("line", sorted(of_remedies()))
def test_the_doctors_remedies_are_understood(line: str) -> None:
    for words in commands_in(line):
        understand(words)


@pytest.mark.parametrize("line", sorted(in_sentences()))
def test_commands_in_sentences_are_understood(line: str) -> None:
    for words in commands_in(line):
        understand(words)


@pytest.mark.parametrize("line", of_the_readme())
def test_the_readmes_first_run_is_understood(line: str) -> None:
    for words in commands_in(line):
        understand(words)


@pytest.mark.parametrize(
    "line",
    [
        'make deploy ARGS="-c nonsense=1 -c images=NO GOOD"',
        "make deplyo",
        "argosy doctor --IMAGES 1",
        "aws iam make-role",
    ],
)
def test_a_wrong_one_is_found(line: str) -> None:
    [words] = commands_in(line)
    with pytest.raises(BaseException):  # noqa: B017, PT011 - each program has its own
        understand(words)
