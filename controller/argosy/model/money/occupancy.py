"""The parts of instances that all live attempts take, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.model.instances import Instance
from argosy.model.resources import AXES, Resources
from argosy.model.state import State

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class AttemptShares:
    """The live attempts that take room on the given instances, of runs whose needs are known."""

    row: IntArray
    """(a,) in the attempt table."""
    place: IntArray
    """(a,) of the instance among those."""
    numbers: IntArray
    """(r,) Run.number of each run whose needs are known, ascending."""
    which: IntArray
    """(a,) of these."""
    share: FloatArray
    """(a,) of the instance (dominant share, 0..1)."""

    @classmethod
    def of(cls, state: State, needs: Mapping[int, Resources], instances: Sequence[Instance]) -> AttemptShares:
        """needs: of a task of each open run, by Run.number."""
        table = state.attempts
        rows = table.placed()
        place = table.positions([instance.id for instance in instances])[table.instance_number[rows]]
        numbers = np.array(sorted(needs) or [-1], dtype=np.int64)
        runs = table["run"][rows].astype(np.int64)
        which = np.minimum(np.searchsorted(numbers, runs), len(numbers) - 1)
        known = (place >= 0) & (numbers[which] == runs)
        if not known.all():
            rows, place, which = (column[known] for column in (rows, place, which))
        taken = _axes([needs[number] for number in sorted(needs)])
        there = _axes([instance.size for instance in instances])
        share = part_of((axis.take(which) for axis in taken), (axis.take(place) for axis in there))
        return cls(rows, place, numbers, which, share)

    @property
    def run(self) -> IntArray:
        """(a,) Run.number."""
        return self.numbers[self.which]

    def at_work(self, state: State, at: float) -> tuple[IntArray, IntArray, FloatArray]:
        """For started attempts: the index of the instance, Run.number, and share-seconds until `at`. Several may have
        the same instance and run."""
        started_at = state.attempts["started_at"][self.row]
        share_s = self.share * np.maximum(0.0, at - started_at)
        runs = len(self.numbers)
        cells = runs * (int(self.place.max(initial=-1)) + 1)
        if cells <= len(self.place):  # few runs: added up
            cell = self.place * runs + self.which
            at_work = np.flatnonzero(np.bincount(cell, weights=started_at > 0, minlength=cells))
            return at_work // runs, self.numbers[at_work % runs], sums(cell, share_s * (started_at > 0), cells)[at_work]
        chosen = started_at > 0
        return self.place[chosen], self.run[chosen], share_s[chosen]

    def summed(self, instances: int, chosen: NDArray[np.bool_] | None = None) -> FloatArray:
        """(instances,): the part of each that attempts take together; only the `chosen` (a,) attempts."""
        place, share = (self.place, self.share) if chosen is None else (self.place[chosen], self.share[chosen])
        return sums(place, share, instances)


def part_of(needs: Iterable[NDArray[Any]], sizes: Iterable[NDArray[Any]]) -> FloatArray:
    """The parts of instances that tasks take, as `Resources.share_of`. needs, sizes: the axes of `Resources`, in shapes
    that can be broadcast together."""
    found: Any = 0.0
    for need, size in zip(needs, sizes, strict=True):
        none = np.zeros(np.broadcast_shapes(need.shape, size.shape))
        found = np.maximum(found, np.divide(need, size, out=none, where=size > 0))
    return found  # type: ignore[no-any-return]


def sums(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    """(groups,): sums of the (a,) values of each group, by its number."""
    found: FloatArray = np.bincount(group, weights=values, minlength=groups).astype(np.float64, copy=False)
    return found


def _axes(amounts: Sequence[Resources]) -> FloatArray:
    """(AXES, n)."""
    return np.array(amounts, dtype=np.float64).reshape(-1, AXES).T.copy()
