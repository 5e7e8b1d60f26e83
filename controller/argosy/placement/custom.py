"""Users' fitness functions for strategies, and why a function is not available."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

import numpy as np

from argosy.placement.arrays import AnyArray
from argosy.placement.fitness import Candidates, Fitness
from argosy.placement.strategy import is_function_name, own_functions


class FitnessFailed(ValueError):
    """A user's function failed or returned nonsense. name: the function; the message describes the failure."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class OwnFunctions:
    """The users' functions of a deployment, ready for `place(fitness=...)`, and why others are not available."""

    ready: Mapping[str, Fitness] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    """Name -> sentence."""

    @classmethod
    def load(cls, allowed: Collection[str]) -> OwnFunctions:
        """All functions that the settings list. One that cannot be loaded becomes a fault; the others still work."""
        ready, faults = {}, {}
        for name in allowed:
            try:
                ready[name] = _watched(name, load_fitness([name], allowed)[name])
            except ValueError as error:
                faults[name] = str(error)
        return cls(ready, faults)

    def without(self, failed: FitnessFailed) -> OwnFunctions:
        """The functions without a failed one."""
        ready = {name: function for name, function in self.ready.items() if name != failed.name}
        return replace(self, ready=ready, faults={**self.faults, failed.name: str(failed)})

    def missing(self, strategy: tuple[str, ...]) -> str:
        """Why a chain cannot be followed here, as a sentence; "" if it can."""
        for name in own_functions(strategy):
            if name not in self.ready:
                unknown = f"this deployment has no strategy or fitness function {name[:80]!r}"
                return self.faults.get(name, unknown)
        return ""


def load_fitness(names: Iterable[str], allowed: Collection[str]) -> dict[str, Fitness]:
    """The functions called `module:function` that a strategy names, ready for `place(fitness=...)`.

    Importing runs the module: only names in `allowed`, from the deployment's settings, are imported. ValueError for a
    name that is not listed, has another form, or leads to no function.
    """
    return {name: _load(name, allowed) for name in names}


def _load(name: str, allowed: Collection[str]) -> Fitness:
    if name not in allowed:
        raise ValueError(f"the settings do not allow the fitness function {name[:80]!r}")
    if not is_function_name(name):
        raise ValueError(f"{name[:80]!r} is not a module:function")
    module, _, function = name.partition(":")
    try:
        found: Fitness = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"there is no fitness function {name[:80]!r}: {error}") from error
    except Exception as error:
        raise ValueError(f"the module of {name[:80]!r} fails: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ValueError(f"{name[:80]!r} is not a function")
    return found


def _watched(name: str, function: Fitness) -> Fitness:
    """The function, guarded: every failure and unusable answer raises FitnessFailed."""

    def of(candidates: Candidates) -> AnyArray:
        try:
            answer = np.asarray(function(candidates))
        except Exception as error:
            raise FitnessFailed(
                name, f"the fitness function {name!r} fails: {type(error).__name__}: {error}"
            ) from error
        wanted = candidates.left(0).shape
        if answer.dtype.kind not in "iubf" or answer.shape != wanted:
            shape = f"{answer.dtype} of shape {answer.shape} instead of numbers of shape {wanted}"
            raise FitnessFailed(name, f"the fitness function {name!r} gives {shape}")
        return answer

    return of
