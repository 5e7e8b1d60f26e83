"""The size of the code: `python -m tests.structure` counts lines, modules, imports, parameters and the main path.

The table "Structure, counted" in docs holds a ceiling for each figure; tests/unit/test_structure.py compares the two.
A ceiling is lowered when its figure falls (`--write` does so); it is raised by hand, with the reason in its row.

The main path is run once in a fresh process: SubmitRun at the api, then ticks of the controller until a RunTask.
`--names` lists the counted items, and `--path` prints the modules of the main path.
"""

from __future__ import annotations

import ast
import gc
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "controller" / "argosy"
MANY_PARAMETERS = 6
SHORT_LINES = 30
SMALL_LINES = 70  # of a module with one importer
DATA = ("catalogue",)  # a package of tables and their lookup
NOT_COUNTED = ("emulator",)  # of the main path: it replaces AWS
PAGE = next(iter(ROOT.glob("docs/**/architecture.md")))
HEADING = "## Structure, counted"
TIMES = ROOT / "build" / "test-times.json"
ROOM_OF_CEILING = 100  # a ceiling may be a hundredth above its figure
OPTIMIZED = 1  # a code object's flag that bodies of classes and modules lack (inspect.CO_OPTIMIZED)


# --- what stands in the files -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Module:
    """One file: its dotted name below the source root and its text; packages have an __init__.py."""

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of its syntax tree. Parsed when they are asked for, which takes seconds for all files."""
        return tuple(ast.walk(ast.parse(self.text)))

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def code_lines(self) -> int:
        """Lines that hold code: no docstring, comment, blank line or import, so that explaining costs nothing."""
        explaining: set[int] = set()
        for node in self.nodes:
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if (is_text and isinstance(node.value.value, str)) or isinstance(node, ast.Import | ast.ImportFrom):
                explaining |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        lines = enumerate(self.text.splitlines(), 1)
        return sum(1 for number, line in lines if number not in explaining and line.strip() and line.lstrip()[0] != "#")


@cache
def modules(package: Path = PACKAGE) -> dict[str, Module]:
    """By dotted name; a package has its own name, for its __init__.py."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path.read_text(encoding="utf-8"), parts[-1] == "__init__")
    return found


def imported(module: Module, known: Iterable[str]) -> set[str]:
    """Which of the known modules it imports: at the top, inside functions, and for type checkers only."""
    known = known if isinstance(known, Set) else set(known)
    found: set[str] = set()
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= members & known if members & known else {node.module}
    return (found & known) - {module.name}


FROM = re.compile(r"\bfrom\s+\.*([\w.]+)\s+import\s+(\((?:[^)#]|#.*)*\)|(?:\\\n|.)*)")
IMPORT = re.compile(r"\bimport\s+((?:\\\n|.)*)")


def perhaps_imported(module: Module, known: Set[str]) -> set[str]:
    """All that it imports, and perhaps more, such as an import in a text: without parsing."""
    found = {name for names in IMPORT.findall(module.text) for name in re.findall(r"[\w.]+", names)}
    for start, members in FROM.findall(module.text):
        found |= {start, *(f"{start}.{member}" for member in re.findall(r"\w+", members))}
    return (found & known) - {module.name}


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of modules in which each reaches every other one by imports (strongly connected, more than one module)."""
    knotted = _knotted(imports)
    reached = {name: _reachable(name, knotted) for name in knotted}
    groups = {tuple(sorted(other for other in there if name in reached[other])) for name, there in reached.items()}
    return sorted(list(group) for group in groups if len(group) > 1)


def _knotted(imports: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """The modules in circles and those that lead to them; modules that import none of the rest are removed in turn."""
    left = {name: set(needed) for name, needed in imports.items()}
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    return {name: needed & left.keys() for name, needed in left.items()}


def _reachable(start: str, imports: Mapping[str, Iterable[str]]) -> set[str]:
    """By one import or more; in a circle, `start` itself too."""
    seen: set[str] = set()
    waiting = list(imports.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imports.get(name, ())
    return seen


def import_circles(found: Mapping[str, Module]) -> list[list[str]]:
    """Only modules that may be in a circle, or lead to one, are parsed."""
    suspected = _knotted({name: perhaps_imported(module, found.keys()) for name, module in found.items()})
    return circles({name: imported(found[name], suspected.keys()) for name in suspected})


def doubled_classes(found: Mapping[str, Module]) -> dict[str, list[str]]:
    """Class names that several modules define, private ones and those inside functions included."""
    places: dict[str, list[str]] = {}
    for name, module in found.items():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


NOUNS = {"Finding", "Firing", "Grouping", "Holding", "Ranking", "Reading", "Rounding", "Setting", "Sharing", "Sighting"}
STORED_NAMES = {"Observed"}  # an event: the record of a controller names its class


def participles(found: Mapping[str, Module]) -> list[str]:
    """Classes whose name is a single participle: `Filled` and `_Followed` do not say what they hold."""
    return [
        f"{name}.{node.name}"
        for name, module in found.items()
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
        if re.fullmatch(r"_?[A-Z][a-z]*(ing|ed)", node.name) and node.name.lstrip("_") not in NOUNS | STORED_NAMES
    ]


def loose_modules(found: Mapping[str, Module]) -> list[str]:
    """Modules outside every subpackage, directly in the package."""
    return [name for name, module in found.items() if name.count(".") == 1 and not module.is_package]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many it declares, self and cls included, *args and **kwargs not."""
    declared = function.args
    return len([*declared.posonlyargs, *declared.args, *declared.kwonlyargs])


def functions_of_many_parameters(found: Mapping[str, Module]) -> tuple[list[str], list[str]]:
    """Functions, and apart from them the commands, whose parameters are the options that a user types."""
    functions, commands = [], []
    for name, module in found.items():
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters(node) >= MANY_PARAMETERS:
                (commands if _is_command(node) else functions).append(f"{name}.{node.name}")
    return functions, commands


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Typer reads its parameters: a decorator says so, or defaults and annotations that are typer's."""
    written = [*function.decorator_list, *function.args.defaults, *function.args.kw_defaults]
    written += [each.annotation for each in (*function.args.args, *function.args.kwonlyargs)]
    return any("typer." in ast.unparse(part) or ".command" in ast.unparse(part) for part in written if part)


def short_modules(found: Mapping[str, Module]) -> list[str]:
    """Those of fewer than 30 lines, without the packages' own files."""
    return [name for name, module in found.items() if module.lines < SHORT_LINES and not module.is_package]


# --- the main path ----------------------------------------------------------------------------------------------------


@dataclass
class MainPath:
    """What was called on the way from SubmitRun to the first RunTask."""

    modules: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)  # (module, qualified name)
    classes: set[tuple[str, str]] = field(default_factory=set)
    ended: bool = False

    def note(self, code: CodeType) -> None:
        if not code.co_flags & OPTIMIZED or not code.co_filename.startswith(str(PACKAGE)):
            return
        name = ".".join(Path(code.co_filename).relative_to(PACKAGE.parent).with_suffix("").parts)
        self.modules.add(name)
        qualified = code.co_qualname.split(".<locals>")[0]
        if "<" not in code.co_name:
            self.functions.add((name, code.co_qualname))
        if "." in qualified:
            self.classes.add((name, qualified.rpartition(".")[0]))

    def watch(self, frame: FrameType, event: str, argument: Any) -> None:
        """For sys.setprofile. The tick in which ECS gets RunTask is the last one, and its threads are joined."""
        if event != "call":
            return
        code = frame.f_code
        if code.co_name == "run_task":
            self.ended = True
        elif not any(f"/argosy/{part}/" in code.co_filename for part in NOT_COUNTED):
            self.note(code)


def main_path() -> MainPath:
    """Submit one run of ten tasks to an empty simulated cluster and tick until a task is launched."""
    from argosy.api.actions import Api
    from argosy.api.admission.specs import DeploymentLimits, Sources
    from argosy.aws.dynamodb import DynamoStore
    from argosy.emulator.botocore_check import SimulatedClient
    from argosy.emulator.dynamodb import DynamoModel
    from tests.fakes.api import SPEC, Definitions, Images, Items, Wake
    from tests.scenarios.controlled import Controlled

    cluster = Controlled()
    store = DynamoStore(SimulatedClient(DynamoModel(), "dynamodb"), "argosy-state")
    cluster.store = store  # type: ignore[assignment]
    cluster.controllers = [cluster.controller()]
    limits = DeploymentLimits("s3://own/", frozenset({"own"}), {})
    api = Api(
        store, Wake(), Sources(Images(), Items(), Definitions()), limits, "argosy", ["us-east-1"], cluster.world.clock
    )
    path = MainPath()
    threading.setprofile(path.watch)
    sys.setprofile(path.watch)
    try:
        answer = api.handle({"action": "SubmitRun", "clientToken": "t-1", "spec": SPEC}, "request-1")
        assert answer["statusCode"] == 200, answer
        for _ in range(500):
            if path.ended:
                break
            cluster.tick()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    assert path.ended, "no task was launched"
    return path


# --- the figures and their ceilings -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One row of the table: the name of the figure, its value, and the counted things."""

    what: str
    count: int
    names: tuple[str, ...] = ()

    def may_be(self, ceiling: int) -> bool:
        """Whether that ceiling fits: it holds, and it leaves a hundredth at most, so that it falls with its figure."""
        return self.count <= ceiling <= self.count + self.count // ROOM_OF_CEILING


@dataclass(frozen=True)
class Row:
    """A row of the table "Structure, counted": the figure before the lighter house, its ceiling, why that one rose."""

    before: str
    ceiling: int
    why: str

    @property
    def lacks_reason(self) -> bool:
        """Whether the ceiling is above the figure before and the row gives no reason."""
        return not self.why and self.ceiling > int(self.before.replace(",", ""))


def small_modules_of_one_importer(found: Mapping[str, Module]) -> list[str]:
    importers = Counter(name for module in found.values() for name in imported(module, found.keys()))
    return [name for name, module in found.items() if module.lines < SMALL_LINES and importers[name] == 1]


def words_of_documents(folder: Path = ROOT / "docs") -> int:
    """In the pages for users and maintainers: without decisions, notes and generated pages."""
    pages = [path for path in folder.rglob("*.md") if not {"decisions", "notes", "reference"} & set(path.parts)]
    return sum(len(path.read_text(encoding="utf-8").split()) for path in pages)


@cache
def figures() -> list[Figure]:
    """What has a ceiling. Counted once: what the first run of the main path has read, a second one would not read."""
    found, stacks, tests = modules(), modules(ROOT / "stacks"), modules(ROOT / "tests")
    harness = {name: module for name, module in tests.items() if name.startswith("tests.harness.")}
    path = main_path()
    circled = [" <-> ".join(each) for part in (found, stacks, tests) for each in import_circles(part)]
    doubled = [f"{name}: {', '.join(where)}" for name, where in doubled_classes(found).items()]
    return [
        Figure("code lines of the product", sum(each.code_lines for each in found.values())),
        Figure("modules of the product", len(found)),
        _named("modules on the main path", path.modules),
        Figure("lines of the main path", sum(found[name].lines for name in path.modules if name in found)),
        _named("functions with six or more parameters", functions_of_many_parameters(found)[0]),
        Figure("words of documents", words_of_documents()),
        _named("modules in no room", loose_modules(found)),
        _named("import circles, those of `stacks` and `tests` included", circled),
        _named("class names defined twice", doubled),
        _named("class names that are one participle", participles(found | stacks | harness)),
        Figure("code lines of `stacks`", sum(each.code_lines for each in stacks.values())),
    ]


def _named(what: str, names: Iterable[str]) -> Figure:
    return Figure(what, len(counted := tuple(sorted(names))), counted)


def rows(page: str) -> dict[str, Row]:
    """The table of the page, by the figure of each row; a text without the heading is the table."""
    table = page.partition(HEADING)[2].split("\n## ")[0] if HEADING in page else page
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]
    return {what: Row(before, int(ceiling.replace(",", "")), why) for what, before, ceiling, why in cells[2:]}


def lowered(page: str, counted: Iterable[Figure]) -> str:
    """The page, with each ceiling lowered that is too far above its figure. No ceiling is raised here.

    Half of the allowed room stays, so that a small change does not have to touch the page.
    """
    found = rows(page)
    for figure in counted:
        row, ceiling = found[figure.what], figure.count + figure.count // (2 * ROOM_OF_CEILING)
        if ceiling < row.ceiling and not figure.may_be(row.ceiling):
            old = f"| {figure.what} | {row.before} | {row.ceiling:,} |"
            page = page.replace(old, f"| {figure.what} | {row.before} | {ceiling:,} |")
    return page


# --- the report -------------------------------------------------------------------------------------------------------


def lines_of_report() -> Iterator[str]:
    ceilings = rows(PAGE.read_text(encoding="utf-8"))
    for figure in figures():
        row = ceilings[figure.what]
        yield f"{figure.what}: {figure.count:,} (ceiling {row.ceiling:,}, before {row.before})"
        if "--names" in sys.argv:
            yield from (f"    {name}" for name in figure.names)
    found, tests = modules(), modules(ROOT / "tests")
    yield f"small modules of one importer, under {SMALL_LINES} lines: {len(small_modules_of_one_importer(found))}"
    yield f"modules under {SHORT_LINES} lines: {len(short_modules(found))}"
    yield f"code lines of tests: {sum(each.code_lines for each in tests.values()):,} in {len(tests)} modules"
    yield from _times()


def _times() -> Iterator[str]:
    """The time of the last whole run of the suite on this machine (`make test` records it)."""
    if not TIMES.exists():
        yield "seconds of processor time of `make test`: not measured here so far"
        return
    measured = json.loads(TIMES.read_text(encoding="utf-8"))
    for what, amount in measured.get("whole", {}).items():
        yield f"`make test`, {what}: {amount}"


def main() -> int:
    """`--names` lists the counted items; `--path` prints the main path's modules as JSON; `--write` lowers ceilings."""
    gc.disable()  # 5 s of 7 while it parses: what it makes stays
    if "--path" in sys.argv:
        print(json.dumps(sorted(main_path().modules), indent=1))
        return 0
    if "--figures" in sys.argv:
        print(json.dumps({figure.what: figure.count for figure in figures()}))
        return 0
    if "--write" in sys.argv:
        PAGE.write_text(lowered(PAGE.read_text(encoding="utf-8"), figures()), encoding="utf-8")
    for line in lines_of_report():
        print(line)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(PACKAGE.parent))
    raise SystemExit(main())
