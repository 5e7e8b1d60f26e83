"""Which tasks are stopped to make room for a task of another sharer?

The problem: a run of a sharer below its share waits, and no more room may be bought. Stopping tasks of other sharers
must be just, must come to an end, and should lose little work.

The idea: an exchange stops some tasks on one instance for one task of a sharer with a lower level. It is allowed only
if the sharer that receives rises, and no sharer that gives ends below it. So the sorted levels of all sharers rise with
every exchange and every start. Between arrivals and ends no state returns, whatever the sizes of tasks, so exchanging
always ends. The guard is checked last, on the final set of victims: some of those picked first turn out not to be
needed, and a set can be just while a part of it is not (Kueue's issue 14543). Of the allowed exchanges, the one that
loses the least work is chosen.

Example: 8 cpus, all used by sharer 0. Instance 0 runs two of its tasks of 2 cpus, which would lose work worth 1 and 3
USD. Instance 1 runs one of 4 cpus, which would lose 2.50 USD. A task of sharer 1 that needs 2 cpus replaces the first
one. A task of 4 cpus replaces the one on instance 1, which loses less than the two on instance 0.

>>> takes, loss = np.array([[2], [2], [4]]), np.array([1.0, 3.0, 2.5])
>>> tasks = Holders(np.array([0, 0, 1]), np.array([0, 0, 0]), takes, loss, free=np.array([[0], [0]]))
>>> levels = Standings(Sharers.of(weight=[1, 1], used=[[8], [0]]), Limits.of([8], [0]))
>>> exchange(WaitingTask(1, np.array([2])), tasks, levels, lambda place, rows: True)
Exchange(place=0, victims=(0,), loss=1.0)
>>> exchange(WaitingTask(1, np.array([4])), tasks, levels, lambda place, rows: True)
Exchange(place=1, victims=(2,), loss=2.5)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.sharing.columns import ONE_FACTOR, BoolArray, IntArray, Limits, Sharers
from argosy.sharing.levels import FULL, scaled

FloatArray: TypeAlias = NDArray[np.float64]

MOST_TRIED = 16  # instances, in ascending order of the loss they seem to cause
Fits = Callable[[int, Sequence[int]], bool]
"""Whether placement can put the task on an instance once some of the tasks there are gone."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Tasks that may be stopped, and the free room next to them. Only the set of spared instances changes between the
    exchanges of a tick, so that many thousands of tasks are sorted once."""

    place: IntArray  # (tasks,) row of their instance
    sharer: IntArray  # (tasks,)
    takes: IntArray  # (tasks, limits)
    loss: FloatArray  # (tasks,) value of the work that is lost, in USD
    free: IntArray  # (instances, axes) of the first limits; the other limits only count for levels
    _spared: set[int] = field(init=False, default_factory=set)
    _by_place: IntArray = field(init=False)  # all rows, by instance
    _begins: IntArray = field(init=False)  # (instances + 1,) where the rows of each instance begin in it
    _by_price: dict[bytes, IntArray] = field(init=False, default_factory=dict)
    _ranked: dict[tuple[bytes, bytes], list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        by_place = np.argsort(self.place, kind="stable")
        object.__setattr__(self, "_by_place", by_place)
        object.__setattr__(self, "_begins", np.searchsorted(self.place[by_place], np.arange(len(self.free) + 1)))

    def __len__(self) -> int:
        return len(self.place)

    @property
    def gives(self) -> IntArray:
        """(tasks, axes) the room that each task takes."""
        return self.takes[:, : self.free.shape[1]]

    def asked(self, wish: WaitingTask) -> IntArray:
        """(axes,)"""
        return wish.takes[: self.free.shape[1]]

    def spare(self, place: int) -> None:
        """Excludes the instance from further exchanges."""
        self._spared.add(place)

    def on(self, place: int) -> IntArray:
        """The rows of an instance, ascending."""
        return self._by_place[self._begins[place] : self._begins[place + 1]]

    def places(self, wish: WaitingTask, goes: BoolArray) -> Iterator[int]:
        """Instances where it would fit if all tasks of those sharers were stopped, in ascending order of the estimated
        loss. goes: (sharers,)."""
        key = wish.takes.tobytes(), goes.tobytes()
        if key not in self._ranked:
            self._ranked[key] = self._rank(wish, goes)
        return (each for each in self._ranked[key] if each not in self._spared)

    def _rank(self, wish: WaitingTask, goes: BoolArray) -> list[int]:
        rows = self._priced(wish)
        rows = rows[goes[self.sharer[rows]]]
        place = self.place[rows]
        begins = np.append(True, place[1:] != place[:-1])[: len(place)]
        first = np.maximum.accumulate(np.where(begins, np.arange(len(place)), 0))
        sums, losses = np.cumsum(self.gives[rows], axis=0), np.cumsum(self.loss[rows])
        sums = sums - (sums - self.gives[rows])[first]
        losses = losses - (losses - self.loss[rows])[first]
        enough = ((self.free[place] + sums) >= self.asked(wish)).all(axis=1)
        places, at = np.unique(place[enough], return_index=True)
        found: list[int] = places[np.lexsort((places, losses[enough][at]))].tolist()
        return found

    def _priced(self, wish: WaitingTask) -> IntArray:
        """All rows, by instance and then by loss per share of the wish that the row makes room for."""
        key = wish.takes.tobytes()
        if key not in self._by_price:
            rows = np.arange(len(self))
            self._by_price[key] = np.lexsort((rows, _price(wish, self, rows), self.place))
        return self._by_price[key]


@dataclass(slots=True)
class Standings:
    """The level of each sharer. `move` updates it after an exchange."""

    sharers: Sharers
    limits: Limits
    used: IntArray = field(init=False)  # (sharers, limits), updated by `move`

    def __post_init__(self) -> None:
        self.used = self.sharers.used.copy()

    @property
    def remembers(self) -> bool:
        """Whether past use changes any weight."""
        return bool((self.sharers.factor != ONE_FACTOR).any())

    def level(self, sharer: int, more: IntArray | None = None, by_weight: bool = False) -> int:
        """The level with that much more use; weight 0 ranks above all others. by_weight: ignores past use."""
        used = self.used[sharer] if more is None else np.maximum(0, self.used[sharer] + more)
        at, to = slice(sharer, sharer + 1), self.sharers
        factor = None if by_weight else to.factor[at]
        level = int(scaled(used, self.limits.capacity, to.weight[at], to.parts[at], factor).max(initial=0))
        return level if to.weight[sharer] else FULL + level

    def levels(self) -> IntArray:
        """(sharers,) the levels of all sharers by weight, as `level`."""
        weight, parts = self.sharers.weight[:, None], self.sharers.parts[:, None]
        levels: IntArray = scaled(self.used, self.limits.capacity, weight, parts).max(axis=1, initial=0)
        return levels + np.where(self.sharers.weight > 0, 0, FULL)

    def move(self, sharer: int, more: IntArray) -> None:
        """Adds to its use."""
        self.used[sharer] = np.maximum(0, self.used[sharer] + more)


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """One waiting task."""

    sharer: int
    takes: IntArray  # (limits,)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The tasks that make room for it."""

    place: int  # row of the instance
    victims: tuple[int, ...]  # rows of `Holders`, ascending
    loss: float  # USD


def exchange(wish: WaitingTask, holders: Holders, standing: Standings, fits: Fits) -> Exchange | None:
    """The exchange with the least loss; None if no task may be stopped for this one."""
    if not standing.sharers.weight[wish.sharer]:
        return None
    goes = _may_go(wish, standing)
    found = [
        each
        for place in islice(holders.places(wish, goes), MOST_TRIED)
        if (each := _picked(wish, holders, standing, place, goes)) is not None
    ]
    found.sort(key=lambda each: (each.loss, each.place))
    return next((each for each in found if fits(each.place, each.victims)), None)


def is_just(wish: WaitingTask, holders: Holders, standing: Standings, victims: Sequence[int]) -> bool:
    """The guard: the taker rises, and no giver ends below it. Both must hold by the weights alone and with past use as
    well. The check by weights alone guarantees an end, because past use changes with time."""
    rows = np.array(victims, dtype=np.int64)
    ways = (True, False) if standing.remembers else (True,)
    return all(_is_just(wish, holders, standing, rows, by_weight) for by_weight in ways)


def _is_just(wish: WaitingTask, holders: Holders, standing: Standings, rows: IntArray, by_weight: bool) -> bool:
    height = standing.level(wish.sharer, wish.takes, by_weight)
    if height <= standing.level(wish.sharer, by_weight=by_weight):
        return False
    for sharer in np.unique(holders.sharer[rows]).tolist():
        given = holders.takes[rows[holders.sharer[rows] == sharer]].sum(axis=0)
        if sharer == wish.sharer or standing.level(sharer, -given, by_weight) < height:
            return False
    return True


def _may_go(wish: WaitingTask, standing: Standings) -> BoolArray:
    """(sharers,) that are as high by weight now as the taker will be: a first filter before the guard."""
    goes: BoolArray = standing.levels() >= standing.level(wish.sharer, wish.takes, by_weight=True)
    goes[wish.sharer] = False
    return goes


def _price(wish: WaitingTask, holders: Holders, rows: IntArray) -> FloatArray:
    """(rows,) loss per share of the task that the row makes room for."""
    asked = holders.asked(wish)
    wanted = asked > 0
    part = np.minimum(1.0, holders.gives[rows][:, wanted] / asked[wanted]).max(axis=1, initial=0.0)
    found: FloatArray = np.full(len(rows), np.inf)
    np.divide(holders.loss[rows], part, out=found, where=part > 0)
    return found


def _picked(wish: WaitingTask, holders: Holders, standing: Standings, where: int, goes: BoolArray) -> Exchange | None:
    """Chooses the victims on one instance: the cheapest for their room first, until the task fits; then drops those
    that are not needed, the most expensive first. If the result is unjust, tries once more without the rows that make
    it so."""
    rows = holders.on(where)
    rows = rows[goes[holders.sharer[rows]]]
    rows = rows[np.lexsort((rows, _price(wish, holders, rows)))]
    missing = holders.asked(wish) - holders.free[where]
    for may_go in (lambda _: True, partial(is_just, wish, holders, standing)):
        chosen = _trimmed(holders, _enough(holders, rows, missing, may_go), missing)
        if chosen and is_just(wish, holders, standing, chosen):
            return Exchange(where, tuple(sorted(chosen)), float(holders.loss[chosen].sum()))
    return None


def _enough(holders: Holders, rows: IntArray, missing: IntArray, may_go: Callable[[list[int]], bool]) -> list[int]:
    """The first rows that together make enough room; empty if all rows do not. may_go: skips a row with which the
    chosen rows may not go."""
    chosen: list[int] = []
    for row in rows.tolist():
        if (missing <= 0).all():
            break
        gives = ((holders.gives[row] > 0) & (missing > 0)).any()
        if gives and may_go([*chosen, row]):
            chosen.append(row)
            missing = missing - holders.gives[row]
    return chosen if (missing <= 0).all() else []


def _trimmed(holders: Holders, chosen: list[int], missing: IntArray) -> list[int]:
    """Without the rows that are not needed."""
    missing = missing - holders.gives[chosen].sum(axis=0)
    stay = list(chosen)
    for row in sorted(chosen, key=lambda row: (-holders.loss[row], row)):
        if (missing + holders.gives[row] <= 0).all():
            stay.remove(row)
            missing = missing + holders.gives[row]
    return stay
