"""Which functions of a user's own may a strategy name, and where do they come from?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from importlib import import_module
from typing import Final

from controller.placement.fitness import Fitness

_NAME: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")


def load_fitness(names: Iterable[str], allowed: Collection[str]) -> dict[str, Fitness]:
    """The functions called `module:function` that a strategy names, ready for `place(fitness=...)`.

    Importing runs the module: only what `allowed`, from the deployment's settings, lists to the letter is imported.
    ValueError for a name that is not listed, not of that form, or leads to no function.
    """
    return {name: _load(name, allowed) for name in names}


def _load(name: str, allowed: Collection[str]) -> Fitness:
    if name not in allowed:
        raise ValueError(f"the settings do not allow the fitness function {name[:80]!r}")
    if not _NAME.match(name):
        raise ValueError(f"{name[:80]!r} is no module:function")
    module, _, function = name.partition(":")
    try:
        found: Fitness = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"there is no fitness function {name[:80]!r}: {error}") from error
    if not callable(found):
        raise ValueError(f"{name[:80]!r} is no function")
    return found
