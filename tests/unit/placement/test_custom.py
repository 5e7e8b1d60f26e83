"""Is a user's fitness function loaded only where settings allow it by name?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argosy.placement.arrays import AnyArray
from argosy.placement.custom import FitnessFailed, OwnFunctions, load_fitness
from argosy.placement.demand import Batch
from argosy.placement.fitness import Candidates
from argosy.placement.keys import least_allocated
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply

NAME = "argosy.placement.keys:least_allocated"


def test_an_allowed_function_is_loaded() -> None:
    assert load_fitness([NAME], allowed=[NAME]) == {NAME: least_allocated}


@pytest.mark.parametrize(
    ("name", "allowed", "said"),
    [
        ("os:system", [NAME], "do not allow"),
        ("no_such_module:f", ["no_such_module:f"], "there is no fitness function"),
        ("argosy.placement.keys:nothing", ["argosy.placement.keys:nothing"], "there is no fitness"),
        ("argosy.placement.keys:CPU", ["argosy.placement.keys:CPU"], "is not a function"),
        ("a b:c", ["a b:c"], "is not a module:function"),
    ],
)
def test_everything_else_is_refused(name: str, allowed: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load_fitness([name], allowed)


def prefer_the_largest(candidates: Candidates) -> AnyArray:
    return -candidates.total(0)


def fail(candidates: Candidates) -> AnyArray:
    raise ZeroDivisionError("by design")


def answer_with_a_text(candidates: Candidates) -> AnyArray:
    return np.array(["best"] * len(candidates.left(0)))


def answer_for_one(candidates: Candidates) -> AnyArray:
    return np.array(1.0)


SUPPLY = Supply.of([InstanceRow(name, *(cpu, 4096, 0) * 2, attributes={}) for name, cpu in (("a", 1024), ("b", 4096))])


def placed_by(name: str) -> str:
    """Where the one task goes under the function of this module."""
    functions = OwnFunctions.load([f"{__name__}:{name}"])
    batch = Batch(512, 512, 0, 1, strategy=(f"{__name__}:{name}",))
    return SUPPLY.ids[int(place([batch], SUPPLY, fitness=functions.ready).row[0])]


def test_a_loaded_function_decides() -> None:
    assert placed_by("prefer_the_largest") == "b"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fail", "fails: ZeroDivisionError: by design"),
        ("answer_with_a_text", "gives <U4 of shape"),
        ("answer_for_one", r"gives float64 of shape \(\) instead of numbers of shape \(2,\)"),
    ],
)
def test_a_function_that_fails_in_use_says_which_and_how(name: str, said: str) -> None:
    with pytest.raises(FitnessFailed, match=said) as failure:
        placed_by(name)
    assert failure.value.name == f"{__name__}:{name}"


def test_an_item_that_cannot_be_loaded_is_one_fault_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaks_at_import.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    functions = OwnFunctions.load([NAME, "no_such_module:f", "breaks_at_import:f"])
    assert list(functions.ready) == [NAME]
    assert "there is no fitness function 'no_such_module:f'" in functions.faults["no_such_module:f"]
    assert functions.faults["breaks_at_import:f"] == (
        "the module of 'breaks_at_import:f' fails: ZeroDivisionError: division by zero"
    )
    assert functions.missing(("binpack:cpu", NAME)) == ""
    assert functions.missing((NAME, "no_such_module:f")) == functions.faults["no_such_module:f"]
    assert "no strategy or fitness function 'other:f'" in functions.missing(("other:f",))


def test_a_function_that_failed_is_missing_from_then_on() -> None:
    functions = OwnFunctions.load([NAME]).without(FitnessFailed(NAME, "it fell over"))
    assert functions.missing((NAME,)) == "it fell over"
