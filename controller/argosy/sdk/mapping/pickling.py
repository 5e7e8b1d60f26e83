"""A function as bytes that another machine can call, with the user's own modules. It names whatever cannot travel.

A module outside site-packages and the standard library is the user's own: no image has it, so it is sent by value. A
compiled one cannot.
"""

from __future__ import annotations

import inspect
import io
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from argosy.client.errors import InvalidInput
from argosy.sdk.errors import MissingPackage
from argosy.sdk.mapping.worker import ClassTable, framed, numbering_pickler, python_version

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_MAIN = frozenset({"__main__", "__mp_main__"})  # which cloudpickle sends by value anyway
_BY_REFERENCE = _MAIN | {"argosy", "cloudpickle"}
_REGISTRY = threading.Lock()  # cloudpickle's list of modules is one for the whole process
_REGISTERED: list[ModuleType] = []  # of the user's own, by us


class CannotPickle(InvalidInput):
    """A function, or an argument of it, cannot be sent; the message names it."""


def cloudpickle_module() -> Any:
    """Raises MissingPackage."""
    try:
        import cloudpickle
    except ImportError as fault:
        raise MissingPackage("Calling functions on other machines", "cloudpickle", "map") from fault
    return cloudpickle


def framed_here(pickles: Sequence[bytes]) -> bytes:
    """With the values that a worker checks before it unpickles them."""
    return framed(pickles, python=python_version(), cloudpickle=cloudpickle_module().__version__)


def name_of(function: Callable[..., Any]) -> str:
    """Its name for people."""
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


class OwnClasses(ClassTable):
    """Pickles the parts of one run. The user's own classes are put into the table as they are met: a million items of
    such a
    class would otherwise bring its definition a million times.
    """

    def __init__(self) -> None:
        super().__init__()
        self._modules = frozenset(cloudpickle_module().list_registry_pickle_by_value()) | _MAIN

    def number_of(self, obj: Any) -> int | None:
        if isinstance(obj, type) and id(obj) not in self.numbers and obj.__module__ in self._modules:
            self.numbers[id(obj)] = len(self.classes)
            self.classes.append(obj)
        return super().number_of(obj)

    def call(self, number: int, arguments: tuple[Any, ...], named: dict[str, Any], what: str) -> bytes:
        """A call of the function with that number. what: how a message names it. Raises CannotPickle."""
        return _pickled((number, arguments, named), what, self)

    def definitions(self) -> bytes:
        """The classes that calls have referred to so far. Raises CannotPickle."""
        names = ", ".join(each.__qualname__ for each in self.classes)
        return _pickled(self.classes, f"A class of your own ({names})", ClassTable())


def pickled_function(function: Callable[..., Any]) -> bytes:
    """With all that it refers to. Raises CannotPickle."""
    what = f"The function {name_of(function)}"
    if not callable(function):
        raise CannotPickle(f"A function is needed, not a value of the type {type(function).__qualname__}.")
    if inspect.iscoroutinefunction(function):
        step = "call it within another function, with asyncio.run"
        raise CannotPickle(f"{what} is asynchronous: a call would return no result.", next_step=step)
    try:
        return _pickled(function, what, ClassTable())
    except CannotPickle as refusal:
        why = refusal.__cause__ and _culprit(function)
        if not why:
            raise
        raise CannotPickle(f"{what} cannot be pickled, because it refers to {why}") from refusal.__cause__


def _culprit(function: Callable[..., Any]) -> str | None:
    """Which variable of those that a function refers to cannot be pickled, and why."""
    if not isinstance(function, FunctionType):
        return None
    found = inspect.getclosurevars(function)
    for name, value in {**found.globals, **found.nonlocals}.items():
        try:
            _pickled(value, name, ClassTable())
        except CannotPickle as refusal:
            return f"{name}, of the type {type(value).__qualname__}: {refusal.__cause__ or refusal}"
    return None


def _pickled(value: Any, what: str, table: ClassTable) -> bytes:
    file = io.BytesIO()
    pickler = _refusing_pickler()(file)
    pickler.table, pickler.what = table, what
    try:
        pickler.dump(value)
    except CannotPickle:
        raise
    except Exception as fault:  # whatever an object's own __reduce__ raises
        raise CannotPickle(f"{what} cannot be pickled: {fault}") from fault
    return file.getvalue()


@cache
def _refusing_pickler() -> Any:
    class RefusingPickler(numbering_pickler()):  # type: ignore[misc]
        """Refuses compiled modules by name: only their name would be sent, and no image has them."""

        what = ""

        def reducer_override(self, obj: Any) -> Any:
            if (compiled := _compiled(obj)) is not None:
                raise CannotPickle(
                    f"{self.what} needs the module {compiled}, which is compiled and not an installed package: it"
                    " cannot be sent. Use an image that has it, and import it inside the function."
                )
            return super().reducer_override(obj)

    return RefusingPickler


@contextmanager
def own_modules_by_value() -> Iterator[None]:
    """Within this context, the user's own modules are pickled by value. Ctrl-C may leave some registered, until the
    next one."""
    cloudpickle = cloudpickle_module()
    with _REGISTRY:
        _unregister()
        known = cloudpickle.list_registry_pickle_by_value()
        mine = [each for name, each in list(sys.modules.items()) if name not in known and _is_own(name, each)]
        _REGISTERED.extend(mine)
        try:
            for module in mine:
                cloudpickle.register_pickle_by_value(module)
            yield
        finally:
            _unregister()


def _unregister() -> None:
    cloudpickle = cloudpickle_module()
    while _REGISTERED:
        if _REGISTERED[-1].__name__ in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.unregister_pickle_by_value(_REGISTERED[-1])
        _REGISTERED.pop()


def _is_own(name: str, module: Any) -> bool:
    if not isinstance(module, ModuleType) or name.partition(".")[0] in _BY_REFERENCE or module.__name__ != name:
        return False
    file = getattr(module, "__file__", None)
    return bool(file) and str(file).endswith(".py") and _is_outside(str(file))


def _compiled(obj: Any) -> str | None:
    """The module of the user's own that this is, or is from, if it is compiled."""
    module = obj if isinstance(obj, ModuleType) else sys.modules.get(str(getattr(obj, "__module__", None)))
    file = str(getattr(module, "__file__", None) or "")
    if module is None or not file.endswith(tuple(EXTENSION_SUFFIXES)) or not _is_outside(file):
        return None
    return str(module.__name__)


@cache
def _is_outside(file: str) -> bool:
    """Whether it is neither of the standard library nor an installed package."""
    path = Path(file).resolve()
    return not _INSTALLED.intersection(path.parts) and not any(path.is_relative_to(each) for each in _library())


@cache
def _library() -> list[Path]:
    paths = sysconfig.get_paths()
    found = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return [Path(each).resolve() for each in [*found, *site.getsitepackages(), site.getusersitepackages()]]
