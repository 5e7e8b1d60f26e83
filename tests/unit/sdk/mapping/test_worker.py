"""The program of the tasks of `argosy.map`, run alone as in a container, and the values of its parts here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import argosy
from argosy.sdk.mapping.calls import PROGRAM, write_program
from argosy.sdk.mapping.outcomes import CallOutcome, outcomes_of
from argosy.sdk.mapping.pickling import OwnClasses, framed_here, own_modules_by_value, pickled_function
from argosy.sdk.mapping.worker import PART, ClassTable, framed, python_version


class Task:
    """One task's folders."""

    def __init__(self, folder: Path) -> None:
        self.program, self.given, self.out = folder / "program", folder / "in", folder / "out"
        for each in (self.program, self.given, self.out):
            each.mkdir()
        write_program(self.program)

    def gives(self, functions: bytes, calls: bytes) -> subprocess.CompletedProcess[str]:
        (self.given / "functions.bin").write_bytes(functions)
        (self.given / "calls-17.bin").write_bytes(calls)
        environment = {"ARGOSY_IN": str(self.given), "ARGOSY_OUT": str(self.out), "PATH": os.environ["PATH"]}
        command = [sys.executable, PROGRAM]
        return subprocess.run(command, cwd=self.program, env=environment, capture_output=True, text=True, check=False)

    def outcomes(self, function: Callable[..., Any], *items: Any) -> list[CallOutcome]:
        """For calls with these items; the first of them is item 100."""
        with own_modules_by_value():
            table = OwnClasses()
            calls = framed_here([table.call(0, (item,), {}, "It") for item in items])
            done = self.gives(framed_here([table.definitions(), pickled_function(function)]), calls)
        assert done.returncode == 0, done.stderr
        return outcomes_of((self.out / PART).read_bytes(), 100, table)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(tmp_path)


def test_each_call_gives_its_value(task: Task) -> None:
    offset = 5
    assert [each.taken() for each in task.outcomes(lambda x: x * x + offset, 1, 2, 3)] == [6, 9, 14]


def test_an_exception_is_an_outcome_with_its_traceback_as_its_cause(task: Task) -> None:
    def inverse(x: int) -> float:
        return 1 / x

    half, failed = task.outcomes(inverse, 2, 0)
    assert half.taken() == 0.5
    with pytest.raises(ZeroDivisionError, match="division by zero") as raised:
        failed.taken()
    cause = raised.value.__cause__
    assert isinstance(cause, argosy.RemoteTraceback)
    assert "in inverse" in cause.text
    assert PROGRAM not in cause.text
    assert str(cause).startswith('\n"""\nTraceback (most recent call last)')


class Refused(Exception):
    """Its arguments differ from those of its constructor."""

    def __init__(self, code: int, *, why: str) -> None:
        super().__init__(f"{code}: {why}")


def test_an_exception_that_would_not_survive_the_journey_comes_as_its_name_and_text(task: Task) -> None:
    def refuse(x: int) -> None:
        raise Refused(x, why="no")

    [failed] = task.outcomes(refuse, 7)
    with pytest.raises(argosy.RemoteError, match="Refused: 7: no") as raised:
        failed.taken()
    assert raised.value.kind == "Refused"


def test_leaving_the_program_is_an_outcome_too(task: Task) -> None:
    ended, other = task.outcomes(lambda x: sys.exit(x) if x else x, 3, 0)
    with pytest.raises(argosy.RemoteError, match="SystemExit: 3"):
        ended.taken()
    assert other.taken() == 0


def test_a_result_that_does_not_pickle_says_so(task: Task) -> None:
    def opened(x: int) -> Any:
        import threading

        return threading.Lock() if x else x

    failed, fine = task.outcomes(opened, 1, 0)
    with pytest.raises(TypeError, match="the result, a lock, cannot be pickled"):
        failed.taken()
    assert fine.taken() == 0


def test_an_exception_without_a_text_is_reported(task: Task) -> None:
    def raise_it(x: int) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

            def __reduce__(self) -> Any:
                raise ValueError("no pickle")

        raise Mute

    [failed] = task.outcomes(raise_it, 1)
    with pytest.raises(argosy.RemoteError, match=r"raise_it\.<locals>\.Mute: <no text>"):
        failed.taken()


def test_a_module_that_the_image_has_not_is_the_outcome_of_the_call(task: Task) -> None:
    def missing(x: int) -> Any:
        import surely_not_there  # type: ignore[import-not-found]

        return surely_not_there.f(x)

    [failed] = task.outcomes(missing, 1)
    with pytest.raises(ModuleNotFoundError, match="surely_not_there"):
        failed.taken()


class Grumpy:
    """It can be pickled, and not be unpickled."""

    def __init__(self) -> None:
        self.here = os.getpid()

    def __setstate__(self, state: dict[str, int]) -> None:
        raise RuntimeError("I was made elsewhere")


def test_a_result_that_does_not_unpickle_names_its_item(task: Task) -> None:
    bad, fine = task.outcomes(lambda x: Grumpy() if x else x, 1, 0)
    with pytest.raises(
        argosy.UnreadableResult, match="result of item 100 cannot be unpickled here: RuntimeError: I was"
    ):
        bad.taken()
    assert fine.taken() == 0


def test_another_python_is_refused_before_anything_is_unpickled(task: Task) -> None:
    """The pickle would end this process if it were read."""
    deadly = b"cos\n_exit\n(K\x03tR."
    done = task.gives(framed([deadly], python="3.2", cloudpickle=cloudpickle.__version__), framed_here([]))
    assert done.returncode == 64
    assert done.stderr == (
        f"argosy: the function was sent by Python 3.2 and this image has Python {python_version()}: use an image with"
        f" Python 3.2, or call argosy.map from Python {python_version()}.\n"
    )


def test_another_cloudpickle_is_refused(task: Task) -> None:
    done = task.gives(framed([b""], python=python_version(), cloudpickle="1.0"), framed_here([]))
    assert (done.returncode, done.stderr.partition(" and ")[0]) == (
        64,
        "argosy: the function was sent by cloudpickle 1.0",
    )


@pytest.mark.parametrize(
    ("functions", "why"),
    [
        (b"\x80\x05K\x01.", "the object is not one of argosy.map's"),
        (b"[1]\n", "the object is not one of argosy.map's"),
        (json.dumps({"argosy": 2, "sizes": []}).encode() + b"\n", "the object has form 2, this program reads form 1"),
        (framed([b"abc"])[:-1], "the object has 2 bytes of pickles where 3 were expected"),
    ],
)
def test_an_object_that_is_not_ours_is_refused(task: Task, functions: bytes, why: str) -> None:
    done = task.gives(functions, framed_here([]))
    assert (done.returncode, done.stderr) == (64, f"argosy: {why}.\n")
    assert not list(task.out.iterdir())


def test_a_part_of_another_python_is_not_unpickled_here() -> None:
    part = framed([b"cos\n_exit\n(K\x03tR."], python="3.2", cloudpickle=cloudpickle.__version__)
    with pytest.raises(
        argosy.UnreadableResult, match="The results from item 5 on cannot be read: the function was sent"
    ):
        outcomes_of(part, 5, ClassTable())


def test_classes_come_back_as_what_they_were(task: Task) -> None:
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    [point] = [each.taken() for each in task.outcomes(Point, 4)]
    assert isinstance(point, Point)
    assert point.x == 4


class Item:
    """Of a user's own module; it keeps the arguments of its constructor."""

    def __init__(self, x: int) -> None:
        self.x = x

    def doubled(self) -> Item:
        return Item(2 * self.x)


def test_own_classes_are_the_same_for_functions_items_and_results(task: Task) -> None:
    def twice(item: Item) -> Item:
        assert isinstance(item, Item)
        return item.doubled()

    [doubled] = [each.taken() for each in task.outcomes(twice, Item(3))]
    assert type(doubled) is Item
    assert doubled.x == 6


def test_classes_that_cannot_be_had_in_the_image_are_the_outcome_of_every_call(task: Task) -> None:
    classes = b"cnot_in_the_image\nThing\n."
    calls = framed_here([OwnClasses().call(0, (1,), {}, "It")])
    done = task.gives(framed_here([classes, pickled_function(abs)]), calls)
    assert done.returncode == 0
    [outcome] = outcomes_of((task.out / PART).read_bytes(), 0, ClassTable())
    assert isinstance(outcome.error, ModuleNotFoundError)
