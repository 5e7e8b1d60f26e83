"""Which AWS operations can a function's code call? Found from its entry point, over the syntax trees of the package.

What is reached is followed by name: a function or class that is named, a module's constant, and every method whose name
is used somewhere in reached code, if its class is reached too (rapid type analysis: too much rather than too little). A
call of AWS is then an attribute, or a text such as a paginator's, that names an operation of a service for which the
reached code makes a client; for `boto3`'s own additions there is a table.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import botocore.session
from botocore import xform_name

ROOT = Path(__file__).resolve().parents[2] / "controller"
TRANSFERS = {  # boto3's S3 transfers, which are no operations of the service
    "upload_file": ("put_object", "abort_multipart_upload"),  # of a large one that fails
    "upload_fileobj": ("put_object",),
    "download_file": ("head_object", "get_object"),
    "download_fileobj": ("head_object", "get_object"),
}
Definition = ast.FunctionDef | ast.ClassDef | ast.stmt
Symbol = tuple[str, str]  # module, name in it


@dataclass
class Module:
    """The definitions and imports of a module, wherever in it the import is."""

    name: str
    defined: dict[str, list[Definition]] = field(default_factory=dict)
    imported: dict[str, Symbol] = field(default_factory=dict)
    registered: dict[str, list[ast.FunctionDef]] = field(default_factory=dict)  # by what they are registered with


@cache
def module(name: str) -> Module | None:
    """None for names outside this project."""
    path = next((path for root in (ROOT, ROOT.parent) if (path := _file(root, name)).is_file()), None)
    if path is None:
        return None
    tree, found = ast.parse(path.read_text()), Module(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                found.imported[each.asname or each.name] = (node.module, each.name)
    for statement in tree.body:
        for name_ in _names_bound(statement):
            found.defined.setdefault(name_, []).append(statement)
        if isinstance(statement, ast.FunctionDef):
            for base in _registers_with(statement):
                found.registered.setdefault(base, []).append(statement)
    return found


def _file(root: Path, name: str) -> Path:
    path = root / Path(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def _registers_with(function: ast.FunctionDef) -> Iterator[str]:
    """The names whose `register` decorates it (functools.singledispatch)."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and called.attr == "register" and isinstance(called.value, ast.Name):
            yield called.value.id


class Reached:
    """All that can run from some entry points, (module, function) each."""

    def __init__(self, entries: Iterable[Symbol]) -> None:
        self.attributes: set[str] = set()
        self.texts: set[str] = set()
        self.services: set[str] = set()
        self._seen: set[int] = set()
        self._methods: dict[str, list[tuple[Module, ast.FunctionDef]]] = {}  # of reached classes, not reached yet
        self._waiting: list[tuple[Module, ast.AST]] = []
        for name, function in entries:
            self._name(name, function)
        while self._waiting:
            self._visit(*self._waiting.pop())

    def _name(self, module_name: str, name: str) -> None:
        """Reach a name of a module of ours."""
        here = module(module_name)
        if here is None:
            return
        for definition in here.defined.get(name, ()):
            self._add(here, definition)
        for function in here.registered.get(name, ()):
            self._add(here, function)
        if name not in here.defined and name in here.imported:
            self._name(*here.imported[name])

    def _add(self, here: Module, node: ast.AST) -> None:
        if id(node) not in self._seen:
            self._seen.add(id(node))
            self._waiting.append((here, node))

    def _visit(self, here: Module, node: ast.AST) -> None:
        if isinstance(node, ast.ClassDef):
            self._class(here, node)
        else:
            self._code(here, node)

    def _class(self, here: Module, node: ast.ClassDef) -> None:
        """Its methods run when somebody uses their names; those that Python calls, and registered ones, at once."""
        for outer in [*node.bases, *node.decorator_list]:
            self._code(here, outer)
        for statement in node.body:
            if not isinstance(statement, ast.FunctionDef):
                self._code(here, statement)
            elif statement.name.startswith("__") or statement.name in self.attributes or statement.decorator_list:
                self._add(here, statement)
            else:
                self._methods.setdefault(statement.name, []).append((here, statement))

    def _code(self, here: Module, node: ast.AST) -> None:
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                self._name(here.name, each.id)
            elif isinstance(each, ast.Attribute):
                self._attribute(here, each)
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                self.texts.add(each.value)
            elif isinstance(each, ast.Call):
                self._client(each)

    def _attribute(self, here: Module, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in here.imported:
            package, name = here.imported[node.value.id]
            if module(f"{package}.{name}"):
                self._name(f"{package}.{name}", node.attr)
                return
        self.attributes.add(node.attr)
        for owner, method in self._methods.pop(node.attr, ()):
            self._add(owner, method)

    def _client(self, call: ast.Call) -> None:
        """`boto3.client("s3")`, `clients.get("s3")`, `client("ssm")`, and `partial` of one of them."""
        function, arguments = call.func, call.args
        if isinstance(function, ast.Name) and function.id == "partial" and arguments:
            function, arguments = arguments[0], arguments[1:]
        called, owner = getattr(function, "id", ""), ""
        if isinstance(function, ast.Attribute):
            called, owner = function.attr, getattr(function.value, "id", "")
        makes = called == "client" or (called, owner) == ("get", "clients")
        if makes and arguments and isinstance(arguments[0], ast.Constant) and arguments[0].value in _services():
            self.services.add(str(arguments[0].value))

    def operations(self) -> set[str]:
        """`service:method` of every call of AWS."""
        said = self.attributes | self.texts
        said |= {operation for transfer, means in TRANSFERS.items() if transfer in said for operation in means}
        return {f"{service}:{name}" for service in self.services for name in said & operations_of(service).keys()}


@cache
def _services() -> frozenset[str]:
    return frozenset(botocore.session.get_session().get_available_services())


@cache
def operations_of(service: str) -> dict[str, str]:
    """Method name -> operation."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): name for name in model.operation_names}
