"""Which mutants does the code have? The changes of mutmut's operators and two of ours, and a seeded sample of them.

mutmut names the places and the changes; a mutant is the whole text of a file with one change. Its own runner is not
used: it puts every variant of a function into one file, for which it has to leave decorated functions out, and those
are the handlers of `lifecycle/apply.py`.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation.file_mutation import Mutation, MutationVisitor, deep_replace
from mutmut.mutation.mutators import mutation_operators, operator_string
from mutmut.mutation.pragma_handling import IgnoredCode

ROOT = Path(__file__).parents[2]
PACKAGES = ("sharing", "scheduler", "lifecycle", "api", "market", "sdk")


def leave_out_call(node: cst.Expr) -> Iterable[cst.BaseSmallStatement]:
    """`f(x)` that stands alone is left out."""
    if isinstance(node.value, cst.Call):
        yield cst.Pass()


def leave_out_branch(node: cst.If) -> Iterable[cst.If]:
    """`if x:` is never so."""
    yield node.with_changes(test=cst.Name("False"))


def change_word(node: cst.SimpleString) -> Iterable[cst.BaseString]:
    """Texts for programs; a text with a space is for people, and its wording is not a contract."""
    return [] if " " in node.value else operator_string(node)


OPERATORS = [
    *((kind, operator) for kind, operator in mutation_operators if operator is not operator_string),
    (cst.SimpleString, change_word),
    (cst.Expr, leave_out_call),
    (cst.If, leave_out_branch),
]


class _Places(MutationVisitor):
    """mutmut's search, with decorated functions."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef) and node.decorators:
            return False
        return super()._skip_node_and_children(node)


@dataclass(frozen=True, slots=True)
class Mutant:
    """path: from the root of the repository; line, of which it is mutant `number`; first to last: the lines of its
    statement, or of the function whose header it changes; 0, 0 = it is part of no function, but a constant or a
    default; text: of the file; before, after: what it changes.
    """

    path: str
    line: int
    number: int
    first: int
    last: int
    text: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.path.removeprefix('controller/argosy/')}:{self.line}.{self.number}"

    @property
    def package(self) -> str:
        return Path(self.path).relative_to("controller/argosy").parts[0]


class Source:
    """A file and all that can be changed in it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._text = (ROOT / path).read_text(encoding="utf-8")
        self._wrapper = MetadataWrapper(cst.parse_module(self._text))
        places = _Places(OPERATORS, IgnoredCode(set(), set(), set()))
        self._wrapper.visit(places)
        self._positions = self._wrapper.resolve(PositionProvider)
        self._parents = self._wrapper.resolve(ParentNodeProvider)
        self._changes: dict[int, list[Mutation]] = {}
        for change in places.mutations:
            self._changes.setdefault(_start(change.original_node, self._positions, self._parents), []).append(change)

    @property
    def lines(self) -> list[tuple[Source, int]]:
        """Where something can be changed."""
        return [(self, line) for line in self._changes]

    def mutant(self, line: int, number: int) -> Mutant:
        change = self._changes[line][number]
        changed = deep_replace(self._wrapper.module, change.original_node, change.mutated_node)
        assert isinstance(changed, cst.Module)
        first, last = _executed(change.original_node, self._positions, self._parents)
        return Mutant(self.path, line, number, first, last, text := changed.code, *_change(self._text, text))

    def number_drawn(self, line: int, chance: random.Random) -> int:
        return chance.randrange(len(self._changes[line]))

    def drawn(self, line: int, chance: random.Random) -> Mutant:
        return self.mutant(line, self.number_drawn(line, chance))


def _change(before: str, after: str) -> tuple[str, str]:
    """The lines that differ."""
    diff = [*difflib.ndiff(before.splitlines(), after.splitlines())]
    gone, new = (" ".join(line[2:].strip() for line in diff if line[:2] == sign) for sign in ("- ", "+ "))
    return gone, new


def _start(node: cst.CSTNode, positions: Mapping, parents: Mapping) -> int:
    """An operator has no position of its own."""
    while node not in positions:
        node = parents[node]
    return positions[node].start.line


def _executed(node: cst.CSTNode, positions: Mapping, parents: Mapping) -> tuple[int, int]:
    """The lines that show that the place is executed."""
    inner = node
    while not isinstance(node, (cst.SimpleStatementLine, cst.Module, cst.BaseCompoundStatement)):
        inner, node = node, parents[node]
    span = positions[node]
    if isinstance(node, cst.FunctionDef) and inner is not node.body:
        return positions[node.body].start.line, span.end.line
    if isinstance(node, cst.BaseCompoundStatement):
        return span.start.line, max(span.start.line, positions[node.body].start.line - 1)
    in_function = node
    while not isinstance(in_function, (cst.FunctionDef, cst.Module)):
        in_function = parents[in_function]
    if isinstance(in_function, cst.Module):
        return 0, 0
    return span.start.line, span.end.line


def sample(seed: int, count: int, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """`count` mutants of as many lines; each package has its part by the number of its lines that have some."""
    chance = random.Random(seed)
    places = {package: [line for path in _files(package) for line in Source(path).lines] for package in packages}
    total = sum(map(len, places.values()))
    drawn: list[Mutant] = []
    for number, package in enumerate(packages):
        left = count - len(drawn)
        part = left if number == len(packages) - 1 else round(count * len(places[package]) / total)
        drawn += [source.drawn(line, chance) for source, line in chance.sample(places[package], part)]
    return drawn


def _files(package: str) -> list[str]:
    folder = ROOT / "controller" / "argosy" / package
    files = [path for path in sorted(folder.rglob("*.py")) if "allocation" not in path.parts]  # which only chooses
    return [path.relative_to(ROOT).as_posix() for path in files]
