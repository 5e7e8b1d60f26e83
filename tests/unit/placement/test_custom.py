"""Is a user's fitness function loaded only where settings allow it by name?"""

from __future__ import annotations

import pytest

from controller.placement.custom import load_fitness
from controller.placement.fitness import least_allocated

NAME = "controller.placement.fitness:least_allocated"


def test_an_allowed_function_is_loaded() -> None:
    assert load_fitness([NAME], allowed=[NAME]) == {NAME: least_allocated}


@pytest.mark.parametrize(
    ("name", "allowed", "said"),
    [
        ("os:system", [NAME], "do not allow"),
        ("no_such_module:f", ["no_such_module:f"], "there is no fitness function"),
        ("controller.placement.fitness:nothing", ["controller.placement.fitness:nothing"], "there is no fitness"),
        ("controller.placement.fitness:CPU", ["controller.placement.fitness:CPU"], "is no function"),
        ("a b:c", ["a b:c"], "is no module:function"),
    ],
)
def test_everything_else_is_refused(name: str, allowed: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load_fitness([name], allowed)
