"""Placement strategies: chains of steps, each breaking the ties of those before it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from argosy.placement.fitness import AXES, Fitness
from argosy.placement.keys import BUILT_IN, Key, as_key, linear, mixed

MAX_STEPS: Final = 5  # RunTask's own limit
_RANDOM: Final = re.compile(r"random(:(\d{1,18}))?\Z")
_BINPACK: Final = re.compile(r"binpack:(cpu|memory|gpu)\Z")
_SPREAD: Final = re.compile(r"spread:(instanceId|host|attribute:[A-Za-z0-9_./\\-]{1,128})\Z")
_MIX: Final = re.compile(r"mix:((?:cpu|memory|gpu)=\d{1,3}(?:\+(?:cpu|memory|gpu)=\d{1,3})*)\Z")
_FUNCTION: Final = re.compile(r"(?!(random|spread|binpack|mix):)[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*\Z")
_KNOWN: Final = (
    "random[:seed], spread:instanceId, spread:attribute:NAME, binpack:cpu, binpack:memory, binpack:gpu, "
    "mix:cpu=N+memory=N+gpu=N, " + ", ".join(sorted(BUILT_IN))
)


@dataclass(frozen=True, slots=True)
class SpreadInstances:
    """Fewest tasks of the group on the instance."""


@dataclass(frozen=True, slots=True)
class SpreadValues:
    """Fewest tasks of the group on all instances with the same value of an attribute; no value counts as one value."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Random:
    """Every remaining candidate is equally likely."""

    seed: int


Step: TypeAlias = Key | SpreadInstances | SpreadValues | Random

# Chosen by measurement: docs/maintainers/decisions/0023-least-waste.md.
DEFAULT_STRATEGY: Final = ("least-waste", "best-fit")
EMPTYING: Final = ("least-waste", "busy-first", "image-first", "best-fit")
"""The default where idle instances can be released."""
LEAST_INTERRUPTED: Final = "least-interrupted"
FINISH_TOGETHER: Final = "finish-together"


def steps_of(strategy: Sequence[str], fitness: Mapping[str, Fitness]) -> tuple[Step, ...]:
    """The steps of a chain; an empty one is the default.

    ValueError for a name that is neither built in nor in `fitness`.
    """
    steps: list[Step] = []
    for name in strategy or DEFAULT_STRATEGY:
        steps += _steps(name, fitness)
    return tuple(steps)


def spread_attribute(strategy: Sequence[str]) -> str | None:
    """The attribute over whose values a chain spreads tasks first; None = over none."""
    found = _SPREAD.match(strategy[0]) if strategy else None
    return found[1].removeprefix("attribute:") if found and found[1].startswith("attribute:") else None


def check_strategy(strategy: Sequence[str], allowed: Collection[str] = ()) -> list[str]:
    """One sentence for each fault of a chain. allowed: the names of users' functions that the settings allow."""
    faults = []
    if len(strategy) > MAX_STEPS:
        faults.append(f"A strategy has at most {MAX_STEPS} steps; this one has {len(strategy)}.")
    for name in strategy:
        if name in allowed:
            continue
        if is_function_name(name):
            faults.append(f"{name[:80]!r} is neither a strategy nor an allowed fitness function.")
            continue
        try:
            _steps(name, {})
        except ValueError as error:
            faults.append(f"{error}.")
    return faults


def is_function_name(name: str) -> bool:
    """Whether a step has the form `module:function` and does not begin as a built-in strategy does."""
    return _FUNCTION.match(name) is not None


@lru_cache(maxsize=4_096)
def own_functions(strategy: tuple[str, ...]) -> tuple[str, ...]:
    """The steps that are not built in: they need a user's function."""
    return tuple(name for name in strategy if not _is_built_in(name))


def may_read(strategy: tuple[str, ...], step: str) -> bool:
    """Whether a chain reads what `step` reads: it has that step, or a user's function, which may read everything."""
    return step in strategy or bool(own_functions(strategy))


def _is_built_in(name: str) -> bool:
    try:
        _steps(name, {})
    except ValueError:
        return False
    return True


def _steps(name: str, fitness: Mapping[str, Fitness]) -> tuple[Step, ...]:
    if found := BUILT_IN.get(name):
        return found
    if match := _BINPACK.match(name):
        cpu, memory, gpu = (int(axis == match[1]) for axis in AXES)
        return (linear(name, (cpu, memory, gpu)),)
    if match := _SPREAD.match(name):
        return (
            (SpreadInstances(),)
            if match[1] in ("instanceId", "host")
            else (SpreadValues(match[1][len("attribute:") :]),)
        )
    if match := _RANDOM.match(name):
        return (Random(int(match[2] or 0)),)
    if match := _MIX.match(name):
        return (mixed(name, _weights(name, match[1])),)
    if name in fitness:
        return (as_key(name, fitness[name]),)
    raise ValueError(f"{name[:80]!r} is not a strategy; the strategies are {_KNOWN}")


def _weights(name: str, text: str) -> tuple[int, int, int]:
    given = [part.split("=") for part in text.split("+")]
    weights = {axis: int(weight) for axis, weight in given}
    if len(weights) != len(given) or not any(weights.values()):
        raise ValueError(f"{name!r} weighs a resource twice, or none at all")
    return weights.get("cpu", 0), weights.get("memory", 0), weights.get("gpu", 0)
