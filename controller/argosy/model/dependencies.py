"""Which runs does a run wait for, and for which of their tasks?"""

from __future__ import annotations

from typing import NamedTuple

ONE_TO_ONE_LIMIT = 8  # N_TO_N dependencies of a run: each is a bit of the column `met`


class Dependency(NamedTuple):
    """A run that another one waits for. one_to_one: task by task (N_TO_N); on_end: for its end, whatever its status."""

    run_id: str
    one_to_one: bool = False
    on_end: bool = False


class DependencyBit(NamedTuple):
    """A dependency task by task, and its bit of the column `met`."""

    dependency: Dependency
    bit: int


def bits_of(dependencies: tuple[Dependency, ...]) -> list[DependencyBit]:
    """The dependencies that are task by task, in the order of the spec."""
    found = [each for each in dependencies if each.one_to_one]
    return [DependencyBit(each, 1 << place) for place, each in enumerate(found)]


def all_bits(dependencies: tuple[Dependency, ...]) -> int:
    """The value of `met` at which a task may start."""
    return sum(each.bit for each in bits_of(dependencies))
