"""How is the package built? `python -m tests.structure` counts modules, imports, parameters and the main path.

The main path is run once in a fresh process: SubmitRun at the api, then ticks of the controller until a RunTask.
"""

from __future__ import annotations

import ast
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "controller" / "argosy"
MANY_PARAMETERS = 6
SHORT_LINES = 30
DATA = ("catalogue",)  # a package of tables and their lookup
NOT_COUNTED = ("emulator", "simulation")  # of the main path: they stand in for AWS
OPTIMIZED = 1  # a code object's flag that bodies of classes and modules lack (inspect.CO_OPTIMIZED)


# --- what stands in the files -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Module:
    """One file: its dotted name below the source root, its text and its syntax tree; packages have an __init__.py."""

    name: str
    text: str
    tree: ast.Module
    is_package: bool = False

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def modules(package: Path = PACKAGE) -> dict[str, Module]:
    """By dotted name; a package stands under its own name, for its __init__.py."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, text, ast.parse(text), parts[-1] == "__init__")
    return found


def imported(module: Module, known: Iterable[str]) -> set[str]:
    """Which of the known modules it imports: at the top, inside functions, and for type checkers only."""
    known = set(known)
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= members & known if members & known else {node.module}
    return (found & known) - {module.name}


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of modules of which each reaches every other one by imports (strongly connected, more than one module)."""
    reached = {name: _reachable(name, imports) for name in imports}
    groups = {tuple(sorted(other for other in there if name in reached[other])) for name, there in reached.items()}
    return sorted(list(group) for group in groups if len(group) > 1)


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
    return circles({name: imported(module, found) for name, module in found.items()})


def doubled_classes(found: Mapping[str, Module]) -> dict[str, list[str]]:
    """Class names that several modules define, private ones and those inside functions included."""
    places: dict[str, list[str]] = {}
    for name, module in found.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def loose_modules(found: Mapping[str, Module]) -> list[str]:
    """Modules that stand in no room: directly in the package."""
    return [name for name, module in found.items() if name.count(".") == 1 and not module.is_package]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many it declares, self and cls included, *args and **kwargs not."""
    declared = function.args
    return len([*declared.posonlyargs, *declared.args, *declared.kwonlyargs])


def functions_of_many_parameters(found: Mapping[str, Module]) -> tuple[list[str], list[str]]:
    """Functions, and apart from them the commands, whose parameters are the options that a user types."""
    functions, commands = [], []
    for name, module in found.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters(node) >= MANY_PARAMETERS:
                (commands if _is_command(node) else functions).append(f"{name}.{node.name}")
    return functions, commands


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Typer reads its parameters: a decorator says so, or defaults and annotations that are typer's."""
    written = [*function.decorator_list, *function.args.defaults, *function.args.kw_defaults]
    written += [each.annotation for each in (*function.args.args, *function.args.kwonlyargs)]
    return any("typer." in ast.unparse(part) or ".command" in ast.unparse(part) for part in written if part)


def short_modules(found: Mapping[str, Module]) -> list[str]:
    """Of fewer than 30 lines; packages' own files are no modules of ours."""
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
        """For sys.setprofile. The model of ECS that is asked for RunTask ends it."""
        if event != "call" or self.ended:
            return
        code = frame.f_code
        if code.co_name == "run_task":
            self.ended = True
        elif not any(f"/argosy/{part}/" in code.co_filename for part in NOT_COUNTED):
            self.note(code)


def main_path() -> MainPath:
    """Submit one run of ten tasks to an empty simulated cluster and tick until a task is launched."""
    from argosy.api.actions import Api
    from argosy.api.admission import DeploymentLimits, Sources
    from argosy.aws.dynamodb import DynamoStore
    from argosy.emulator.botocore_check import SimulatedClient
    from argosy.emulator.dynamodb.service import DynamoModel
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


def rooms(names: Iterable[str]) -> Counter[str]:
    """How many of the modules stand in each package of argosy; a loose module is in none."""
    return Counter(parts[1] for name in names if len(parts := name.split(".")) > 2)


# --- the report -------------------------------------------------------------------------------------------------------


def lines_of_report() -> Iterator[str]:
    found = modules()
    functions, commands = functions_of_many_parameters(found)
    yield f"modules: {len(found)}, of {sum(each.lines for each in found.values()):,} lines"
    yield from _counted("loose modules in controller/argosy", loose_modules(found))
    yield from _counted("import circles between modules", [" <-> ".join(each) for each in import_circles(found)])
    doubled = [f"{name}: {', '.join(where)}" for name, where in doubled_classes(found).items()]
    yield from _counted("class names defined twice", doubled)
    yield from _counted(f"functions with {MANY_PARAMETERS} or more parameters, self included", functions)
    yield f"commands with {MANY_PARAMETERS} or more parameters, which are options: {len(commands)}"
    yield from _counted(f"modules under {SHORT_LINES} lines", short_modules(found))
    path = main_path()
    on_path = rooms(path.modules)
    size = sum(found[name].lines for name in path.modules if name in found)
    yield (
        f"main path, SubmitRun to the first RunTask: {len(path.modules)} modules of {size:,} lines, "
        f"{len(path.functions)} functions, {len(path.classes)} classes"
    )
    data = {room: on_path.pop(room) for room in DATA if room in on_path}
    yield f"rooms on the main path: {len(on_path)} ({', '.join(f'{room} {n}' for room, n in on_path.most_common())})"
    yield f"data that they read: {', '.join(f'{room} {n}' for room, n in data.items())}"


def _counted(what: str, names: list[str]) -> Iterator[str]:
    yield f"{what}: {len(names)}"
    if "--names" in sys.argv:
        yield from (f"    {name}" for name in names)


def main() -> int:
    """`--names` lists what is counted; `--path` prints the main path's modules as JSON."""
    if "--path" in sys.argv:
        print(json.dumps(sorted(main_path().modules), indent=1))
        return 0
    for line in lines_of_report():
        print(line)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(PACKAGE.parent))
    raise SystemExit(main())
