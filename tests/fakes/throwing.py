"""Functions that throw when they are called for one run. They are found by observing calls, not from a list."""

from __future__ import annotations

import inspect
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import argosy
from argosy.engine.tick import Engine
from argosy.model.attempts import AttemptStatus
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import RunTerms
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskTable

About = Callable[[Mapping[str, Any]], bool]
"""Whether a call with these arguments, by name, is about what is meant."""
OUTSIDE = ("argosy.emulator.", "tests.harness.simulation.")
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
    if isinstance(value, Run | RunRecord):
        return getattr(value, "id", None) == run_id
    if isinstance(value, TaskTable):
        return getattr(value, "rows", None) == tasks  # half made, it has none
    if isinstance(value, RunTerms):
        return getattr(value, "name", None) == run_id.rsplit("-", 3)[0]
    for name in ("run", "key", "request", "record"):
        inner = getattr(value, name, None)
        if getattr(inner, "run_id", None) == run_id or (isinstance(inner, Run | RunRecord) and inner.id == run_id):
            return True
    return getattr(value, "run_id", None) == run_id


def is_row_of(arguments: Mapping[str, Any], run_number: int) -> bool:
    """Whether they name an attempt of the run: `state` and `row`."""
    state, row = arguments.get("state"), arguments.get("row")
    if not isinstance(state, State) or not isinstance(row, int) or row >= len(state.attempts["run"]):
        return False
    return bool(state.attempts["run"][row] == run_number and state.attempts["status"][row] != AttemptStatus.FREE)


def any_of(about: Callable[[Any], bool]) -> About:
    """Whether one of the arguments is about it."""
    return lambda arguments: any(map(about, arguments.values()))


@contextmanager
def watching(
    functions: Mapping[types.CodeType, types.FunctionType], about: About, seen: dict[str, types.FunctionType]
) -> Iterator[None]:
    """Collects the functions that a tick calls `about` the subject."""

    def watch(frame: types.FrameType, event: str, _: Any) -> None:
        function = functions.get(frame.f_code) if event == "call" else None
        if function is None or function.__closure__ or name_of(function) in seen:
            return
        arguments = {name: frame.f_locals[name] for name in _parameters(frame.f_code) if name in frame.f_locals}
        with suppress(RecursionError):  # of what is half made
            if about(arguments) and _in_tick(frame):
                seen[name_of(function)] = function

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)


def name_of(function: types.FunctionType) -> str:
    """As in `lifecycle.attempts.see`."""
    return f"{function.__module__.removeprefix(argosy.__name__ + '.')}.{function.__qualname__}"


def named(name: str) -> types.FunctionType:
    """The function of that name."""
    (found,) = [each for each in functions_of(name.partition(".")[0]).values() if name_of(each) == name]
    return found


@contextmanager
def throwing(function: types.FunctionType, about: About, anywhere: bool = False) -> Iterator[list[int]]:
    """Within this context the function throws whenever a tick calls it `about` the subject; the calls are counted.
    anywhere: for every caller.

    Its code is exchanged, so that it throws wherever it was imported to.
    """
    code, thrown = function.__code__, [0]
    real = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    real.__kwdefaults__ = function.__kwdefaults__
    parameters = _parameters(code)

    def guard(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if about({**dict(zip(parameters, args, strict=False)), **kwargs}) and (
            anywhere or _in_tick(inspect.currentframe())
        ):
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
        function.__code__ = code
        function.__defaults__, function.__kwdefaults__ = real.__defaults__, real.__kwdefaults__
        del function.__globals__[GUARD]


def _parameters(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _in_tick(frame: types.FrameType | None) -> bool:
    """Whether the controller calls, and not a service or the auditor that it calls, or a test."""
    while frame is not None:
        if frame.f_code is Engine.tick.__code__:
            return True
        if str(frame.f_globals.get("__name__")).startswith(OUTSIDE):
            return False
        frame = frame.f_back
    return False
