"""The code that is sent with a function to another machine, and refusals by name."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

import cloudpickle
import pytest

import argosy
from argosy.client.extras import installing
from argosy.sdk.mapping.pickling import OwnClasses, own_modules_by_value, pickled_function

ELSEWHERE = "import pickle, sys; f = pickle.loads(sys.stdin.buffer.read()); print(f(20))"


def elsewhere(pickled: bytes, tmp_path: Path) -> str:
    """The function's result for 20 in a Python without the user's files."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], input=pickled, cwd=tmp_path, env={}, capture_output=True, check=False
    )
    return (done.stdout or done.stderr).decode().strip().splitlines()[-1]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Makes a module of the user's own: a name and its text."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    made: list[str] = []

    def make(name: str, text: str) -> ModuleType:
        (folder / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        made.append(name)
        return importlib.import_module(name)

    yield make
    for name in made:
        del sys.modules[name]


def test_modules_of_the_user_s_own_travel_by_value(module: Callable[..., ModuleType], tmp_path: Path) -> None:
    module("deep", "OFFSET = 2\ndef add(x): return x + OFFSET")
    own = module("own", "import deep, json\ndef f(x): return json.dumps(deep.add(x) * 2)")
    with own_modules_by_value():
        pickled = pickled_function(own.f)
    assert elsewhere(pickled, tmp_path) == "44"


def test_without_that_they_are_sent_by_name(module: Callable[..., ModuleType], tmp_path: Path) -> None:
    own = module("own_alone", "def f(x): return x")
    assert elsewhere(pickled_function(own.f), tmp_path) == "ModuleNotFoundError: No module named 'own_alone'"


def test_installed_modules_travel_by_name(tmp_path: Path) -> None:
    import numpy as np

    with own_modules_by_value():
        pickled = pickled_function(lambda x: int(np.sqrt(x * 5)))
    assert len(pickled) < 2_000
    assert cloudpickle.list_registry_pickle_by_value() == set()


def test_a_module_that_the_user_registered_stays_registered(module: Callable[..., ModuleType]) -> None:
    own = module("own_registered", "def f(x): return x")
    cloudpickle.register_pickle_by_value(own)
    try:
        with own_modules_by_value():
            pass
        assert cloudpickle.list_registry_pickle_by_value() == {"own_registered"}
    finally:
        cloudpickle.unregister_pickle_by_value(own)


def compiled_module(folder: Path, name: str) -> ModuleType:
    """As if it had been imported from the user's own folder: only its file's name says that it is compiled."""
    made = ModuleType(name)
    made.__file__ = str(folder / f"{name}{EXTENSION_SUFFIXES[0]}")
    return made


def test_a_compiled_module_of_the_user_s_own_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = compiled_module(tmp_path, "fast")
    monkeypatch.setitem(sys.modules, "fast", fast)
    with pytest.raises(argosy.CannotPickle, match=r"The function .*<lambda> needs the module fast, which is"):
        pickled_function(lambda x: fast.square(x) + 1)


def test_what_a_compiled_module_defines_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fast", compiled_module(tmp_path, "fast"))
    kind = type("Matrix", (), {"__module__": "fast"})
    with pytest.raises(argosy.CannotPickle, match="Item 3 needs the module fast"):
        OwnClasses().call(0, (kind(),), {}, "Item 3")


def test_installed_compiled_modules_are_no_trouble() -> None:
    import numpy as np

    assert pickled_function(np.linalg.norm)
    assert OwnClasses().call(0, (np.arange(3),), {}, "Item 0")


def test_what_does_not_pickle_is_named() -> None:
    with pytest.raises(argosy.CannotPickle, match=r"Item 7, a lock, cannot be pickled: cannot pickle '_thread.lock'"):
        OwnClasses().call(0, (threading.Lock(),), {}, "Item 7, a lock,")


def test_a_function_that_holds_what_does_not_pickle_is_named() -> None:
    lock = threading.Lock()

    def guarded(x: int) -> int:
        with lock:
            return x

    with pytest.raises(argosy.CannotPickle, match=r"The function .*guarded cannot be pickled"):
        pickled_function(guarded)


def test_without_cloudpickle_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # type: ignore[arg-type]
    with pytest.raises(argosy.MissingPackage) as missing, own_modules_by_value():
        pass
    assert missing.value.next_step == installing("map")


def test_arguments_and_their_names_are_kept() -> None:
    number, arguments, named = pickle.loads(OwnClasses().call(3, (1, [2]), {"k": 4}, "It"))  # noqa: S301
    assert (number, arguments, named) == (3, (1, [2]), {"k": 4})


class Point:
    """In a user's own module, which is sent by value."""

    def __init__(self, x: int) -> None:
        self.x = x


def test_an_own_class_travels_once_for_all_items() -> None:
    with own_modules_by_value():
        table = OwnClasses()
        calls = [table.call(0, (Point(x),), {}, "It") for x in range(3)]
        assert table.classes == [Point]
        assert b"Point" in table.definitions()
    assert [b"Point" in call for call in calls] == [False] * 3
    assert [table.loads(call)[1][0].x for call in calls] == [0, 1, 2]


def test_installed_classes_are_sent_by_name() -> None:
    with own_modules_by_value():
        table = OwnClasses()
        call = table.call(0, (Path("x"),), {}, "It")
    assert table.classes == []
    assert b"pathlib" in call


def test_an_own_class_that_does_not_pickle_is_named() -> None:
    with own_modules_by_value():
        table = OwnClasses()
        holds = type("Holder", (), {"lock": threading.Lock(), "__module__": __name__})
        table.call(0, (holds(),), {}, "It")
        with pytest.raises(argosy.CannotPickle, match=r"A class of your own \(Holder\) cannot be pickled"):
            table.definitions()


def test_what_cannot_be_called_or_gives_a_coroutine_is_refused_at_once() -> None:
    async def later() -> None:
        """Nothing."""

    with pytest.raises(argosy.CannotPickle, match="not a value of the type int"):
        pickled_function(3)  # type: ignore[arg-type]
    with pytest.raises(argosy.CannotPickle, match="later is asynchronous") as refused:
        pickled_function(later)
    assert "asyncio.run" in refused.value.next_step


def test_the_variable_that_cannot_be_sent_is_named() -> None:
    lock = threading.Lock()
    with pytest.raises(argosy.CannotPickle, match="it refers to lock, of the type lock: cannot pickle"):
        pickled_function(lambda: lock)


class Bound:
    """Its method cannot be sent."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def method(self) -> None:
        """Nothing."""


def test_what_is_no_plain_function_is_named_as_a_whole() -> None:
    with pytest.raises(argosy.CannotPickle, match=r"The function Bound\.method cannot be pickled: cannot pickle"):
        pickled_function(Bound().method)
