"""Functions that throw when they are called for one run. They are found by watching what is called, not from a list."""

from __future__ import annotations

import pkgutil
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import argosy
from argosy.model.run_terms import RunTerms
from argosy.model.runs import Run
from argosy.model.tasks import TaskTable

GUARD = "__thrown_for__"


class Planted(RuntimeError):
    """The fault that the test throws."""


def functions_of(*rooms: str) -> dict[types.CodeType, types.FunctionType]:
    """The functions and methods of packages of argosy, by their code."""
    found: dict[types.CodeType, types.FunctionType] = {}
    for room in rooms:
        package = import_module(f"argosy.{room}")
        names = [module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
        for name in names:
            for value in vars(import_module(name)).values():
                for function in _functions(value, name):
                    found[function.__code__] = function
    return found


def _functions(value: Any, module: str) -> Iterator[types.FunctionType]:
    if isinstance(value, types.FunctionType) and value.__module__ == module:
        yield value
    elif isinstance(value, type) and value.__module__ == module:
        for member in vars(value).values():
            inner = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if isinstance(inner, types.FunctionType) and inner.__module__ == module:
                yield inner


def names_run(value: Any, run_id: str, tasks: int) -> bool:
    """Whether an argument is, or is about, the run. tasks: how many it has, which no other run has."""
    if isinstance(value, str):
        return value == run_id
    if isinstance(value, Run):
        return getattr(value, "id", None) == run_id
    if isinstance(value, TaskTable):
        return getattr(value, "rows", None) == tasks  # half made, it has none
    if isinstance(value, RunTerms):
        return getattr(value, "name", None) == run_id.rsplit("-", 3)[0]
    for name in ("run", "key", "request"):
        inner = getattr(value, name, None)
        if getattr(inner, "run_id", None) == run_id or (isinstance(inner, Run) and inner.id == run_id):
            return True
    return getattr(value, "run_id", None) == run_id


@contextmanager
def watching(
    functions: dict[types.CodeType, types.FunctionType],
    about: Callable[[Any], bool],
    seen: dict[str, types.FunctionType],
) -> Iterator[None]:
    """Collects the functions that are called with an argument that is `about` what is looked for."""

    def watch(frame: types.FrameType, event: str, _: Any) -> None:
        function = functions.get(frame.f_code) if event == "call" else None
        if function is None or function.__closure__:
            return
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(about(frame.f_locals[name]) for name in names if name in frame.f_locals):
            seen[f"{function.__module__.removeprefix(argosy.__name__ + '.')}.{function.__qualname__}"] = function

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)


@contextmanager
def throwing(function: types.FunctionType, about: Callable[[Any], bool]) -> Iterator[list[int]]:
    """While this lasts the function throws whenever an argument is `about` what is meant; how often is counted.

    Its code is exchanged, so that it throws wherever it was imported to.
    """
    code, thrown = function.__code__, [0]
    real = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    real.__kwdefaults__ = function.__kwdefaults__
    defaults, kwdefaults = function.__defaults__, function.__kwdefaults__

    def guard(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(about(value) for value in (*args, *kwargs.values())):
            thrown[0] += 1
            raise Planted(function.__qualname__)
        return real(*args, **kwargs)

    function.__globals__[GUARD] = guard
    scope: dict[str, Any] = {}
    exec(f"def thrower(*args, **kwargs):\n    return {GUARD}(args, kwargs)", scope)  # noqa: S102
    function.__code__, function.__defaults__, function.__kwdefaults__ = scope["thrower"].__code__, None, None
    try:
        yield thrown
    finally:
        function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, kwdefaults
        del function.__globals__[GUARD]
