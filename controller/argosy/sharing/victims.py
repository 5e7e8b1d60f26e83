"""Exchanges: which tasks are stopped so that a task of another sharer finds room, if any may be?

The problem: a run of a sharer that uses less than its share waits, and no more room may be bought. Stopping tasks of
others must be just, must end, and should lose little work.

The idea: an exchange takes the place of some tasks on one instance for one task of a sharer with a lower level. It is
made only if afterwards none of those that lost a task has a lower level than the sharer that got one, and that sharer
has risen. So the sorted levels of all sharers rise with every exchange and with every start: between arrivals and ends
there is no way back, whatever the sizes of tasks, and exchanging always ends. This guard is the last check, once it is
settled which tasks go: some of those picked first turn out not to be needed, and what holds for many need not hold for
few (Kueue's issue 14543). Of the exchanges that may be made, the one is chosen that loses the least work.

Example: 8 cpus, all used by sharer 0. On instance 0 are two of its tasks of 2 cpus, which would lose work worth 1 and 3
USD; on instance 1 one of 4 cpus, which would lose 2.50 USD. A task of sharer 1 that needs 2 cpus takes the place of the
first one. A task of 4 cpus takes the place of the one on instance 1, which loses less than the two on instance 0.

>>> takes, loss = np.array([[2], [2], [4]]), np.array([1.0, 3.0, 2.5])
>>> tasks = Holders(np.array([0, 0, 1]), np.array([0, 0, 0]), takes, loss, free=np.array([[0], [0]]))
>>> levels = Standings(Sharers.of(weight=[1, 1], used=[[8], [0]]), Limits.of([8], [0]))
>>> exchange(Wish(1, np.array([2])), tasks, levels, lambda place, rows: True)
Exchange(place=0, victims=(0,), loss=1.0)
>>> exchange(Wish(1, np.array([4])), tasks, levels, lambda place, rows: True)
Exchange(place=1, victims=(2,), loss=2.5)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.sharing.columns import ONE_FACTOR, BoolArray, IntArray, Limits, Sharers
from argosy.sharing.levels import FULL, scaled

FloatArray: TypeAlias = NDArray[np.float64]

MOST_TRIED = 16  # instances, those first that seem to lose least
Fits = Callable[[int, Sequence[int]], bool]
"""Whether the task really finds its place on an instance without some of the tasks there."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Tasks that may be stopped, and what is free beside them. Nothing of it changes between the exchanges of a tick
    but the instances that are spared, so that many thousands of tasks are sorted once."""

    place: IntArray  # (tasks,) row of their instance
    sharer: IntArray  # (tasks,)
    takes: IntArray  # (tasks, limits)
    loss: FloatArray  # (tasks,) what the work is worth that is lost, in USD
    free: IntArray  # (instances, axes) of the first limits; the others only say how high somebody stands
    _spared: set[int] = field(init=False, default_factory=set)
    _by_place: IntArray = field(init=False)  # all rows, by instance
    _begins: IntArray = field(init=False)  # (instances + 1,) where each one's rows begin in it
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
        """(tasks, axes) of what takes room."""
        return self.takes[:, : self.free.shape[1]]

    def asked(self, wish: Wish) -> IntArray:
        """(axes,)"""
        return wish.takes[: self.free.shape[1]]

    def spare(self, place: int) -> None:
        """Nobody is stopped on this instance from now on."""
        self._spared.add(place)

    def on(self, place: int) -> IntArray:
        """The rows of an instance, ascending."""
        return self._by_place[self._begins[place] : self._begins[place + 1]]

    def places(self, wish: Wish, goes: BoolArray) -> Iterator[int]:
        """Instances where it would fit if all tasks of those sharers went, those first where the work that is lost
        seems least. goes: (sharers,)."""
        key = wish.takes.tobytes(), goes.tobytes()
        if key not in self._ranked:
            self._ranked[key] = self._rank(wish, goes)
        return (each for each in self._ranked[key] if each not in self._spared)

    def _rank(self, wish: Wish, goes: BoolArray) -> list[int]:
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

    def _priced(self, wish: Wish) -> IntArray:
        """All rows: by instance, and there by what is lost for each part of the task that finds its room by it."""
        key = wish.takes.tobytes()
        if key not in self._by_price:
            rows = np.arange(len(self))
            self._by_price[key] = np.lexsort((rows, _price(wish, self, rows), self.place))
        return self._by_price[key]


@dataclass(slots=True)
class Standings:
    """How high the sharers stand. What is exchanged is moved with `move`."""

    sharers: Sharers
    limits: Limits
    used: IntArray = field(init=False)  # (sharers, limits), which changes

    def __post_init__(self) -> None:
        self.used = self.sharers.used.copy()

    @property
    def remembers(self) -> bool:
        """Whether what was used lately makes any weight count more or less."""
        return bool((self.sharers.factor != ONE_FACTOR).any())

    def level(self, sharer: int, more: IntArray | None = None, by_weight: bool = False) -> int:
        """With so much more than it uses. Who has the weight 0 stands above all who have one. by_weight: by that alone,
        whatever was used lately."""
        used = self.used[sharer] if more is None else np.maximum(0, self.used[sharer] + more)
        at, to = slice(sharer, sharer + 1), self.sharers
        factor = None if by_weight else to.factor[at]
        level = int(scaled(used, self.limits.capacity, to.weight[at], to.parts[at], factor).max(initial=0))
        return level if to.weight[sharer] else FULL + level

    def levels(self) -> IntArray:
        """(sharers,) of all of them, as `level`."""
        weight, parts = self.sharers.weight[:, None], self.sharers.parts[:, None]
        levels: IntArray = scaled(self.used, self.limits.capacity, weight, parts).max(axis=1, initial=0)
        return levels + np.where(self.sharers.weight > 0, 0, FULL)

    def move(self, sharer: int, more: IntArray) -> None:
        """It uses so much more from now on."""
        self.used[sharer] = np.maximum(0, self.used[sharer] + more)


@dataclass(frozen=True, slots=True)
class Wish:
    """One task that waits."""

    sharer: int
    takes: IntArray  # (limits,)


@dataclass(frozen=True, slots=True)
class Exchange:
    """These make room for it."""

    place: int  # row of the instance
    victims: tuple[int, ...]  # rows of `Holders`, ascending
    loss: float  # USD


def exchange(wish: Wish, holders: Holders, standing: Standings, fits: Fits) -> Exchange | None:
    """The one that loses least; None where no task may be stopped for this one."""
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


def is_just(wish: Wish, holders: Holders, standing: Standings, victims: Sequence[int]) -> bool:
    """The guard: he rises, and none of those who give stands lower than he does afterwards; by the weights alone, and
    by what was used lately as well. The former ends: what was used lately changes with time, and would not."""
    rows = np.array(victims, dtype=np.int64)
    ways = (True, False) if standing.remembers else (True,)
    return all(_is_just(wish, holders, standing, rows, by_weight) for by_weight in ways)


def _is_just(wish: Wish, holders: Holders, standing: Standings, rows: IntArray, by_weight: bool) -> bool:
    height = standing.level(wish.sharer, wish.takes, by_weight)
    if height <= standing.level(wish.sharer, by_weight=by_weight):
        return False
    for sharer in np.unique(holders.sharer[rows]).tolist():
        given = holders.takes[rows[holders.sharer[rows] == sharer]].sum(axis=0)
        if sharer == wish.sharer or standing.level(sharer, -given, by_weight) < height:
            return False
    return True


def _may_go(wish: Wish, standing: Standings) -> BoolArray:
    """(sharers,) who stand higher now: a first sieve, not the guard."""
    goes: BoolArray = standing.levels() >= standing.level(wish.sharer, wish.takes)
    goes[wish.sharer] = False
    return goes


def _price(wish: Wish, holders: Holders, rows: IntArray) -> FloatArray:
    """(rows,) what is lost for each part of the task that finds its room by it."""
    asked = holders.asked(wish)
    wanted = asked > 0
    part = np.minimum(1.0, holders.gives[rows][:, wanted] / asked[wanted]).max(axis=1, initial=0.0)
    found: FloatArray = np.full(len(rows), np.inf)
    np.divide(holders.loss[rows], part, out=found, where=part > 0)
    return found


def _picked(wish: Wish, holders: Holders, standing: Standings, where: int, goes: BoolArray) -> Exchange | None:
    """Who goes on one instance: those first who cost least for what they give, until it fits; then whoever is not
    needed stays, the dearest first. If that is not just, once more with those left out who would make it unjust."""
    rows = holders.on(where)
    rows = rows[goes[holders.sharer[rows]]]
    rows = rows[np.lexsort((rows, _price(wish, holders, rows)))]
    missing = holders.asked(wish) - holders.free[where]
    for picky in (False, True):
        chosen = _trimmed(holders, _enough(wish, holders, standing, rows, missing, picky), missing)
        if chosen and is_just(wish, holders, standing, chosen):
            return Exchange(where, tuple(sorted(chosen)), float(holders.loss[chosen].sum()))
    return None


def _enough(
    wish: Wish, holders: Holders, standing: Standings, rows: IntArray, missing: IntArray, picky: bool
) -> list[int]:
    """The first of those rows that make room enough; none where all of them do not."""
    chosen: list[int] = []
    for row in rows.tolist():
        if (missing <= 0).all():
            break
        gives = ((holders.gives[row] > 0) & (missing > 0)).any()
        if gives and (not picky or is_just(wish, holders, standing, [*chosen, row])):
            chosen.append(row)
            missing = missing - holders.gives[row]
    return chosen if (missing <= 0).all() else []


def _trimmed(holders: Holders, chosen: list[int], missing: IntArray) -> list[int]:
    """Without those who are not needed."""
    missing = missing - holders.gives[chosen].sum(axis=0)
    stay = list(chosen)
    for row in sorted(chosen, key=lambda row: (-holders.loss[row], row)):
        if (missing + holders.gives[row] <= 0).all():
            stay.remove(row)
            missing = missing + holders.gives[row]
    return stay
