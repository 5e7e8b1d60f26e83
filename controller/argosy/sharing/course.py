"""When does a run that waits start, if nothing else comes?

A fluid course of the same fill: time goes in steps; at each, what has ended gives its room back, what was ordered
arrives, and the fill deals out what is free. It says nothing of single instances: room is a sum over the cluster, in
pieces at most (`pieces`), and tasks end when they are expected to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from argosy.sharing.columns import MOST, Columns, IntArray, Limits, Sharers
from argosy.sharing.fill import fill
from argosy.sharing.pieces import FloatArray, Holes, Pieces
from argosy.sharing.turns import turns

STEP_S = 30.0
STEP_GROWS = 0.02  # a step is this part of the time that has passed, once that is more: what is far off is not known
HORIZON_S = 14 * 86_400.0  # farther nobody looks
LEAST_S = 0.001  # that a task lasts
FINEST = 1 << 10  # units into which what a task takes is divided
ANY = (1 << 62) - 1  # no bound


@dataclass(frozen=True, slots=True)
class BusyRuns:
    """What waits, and what runs. Rows are those of `columns`, whose limits are those of `RoomInTime.capacity`."""

    columns: Columns
    seconds: FloatArray  # (runs,) that one task of it takes its place; inf = it never ends
    most: IntArray  # (runs,) how many of its tasks may run at once
    live_run: IntArray  # (n,) row of the run to which tasks belong that run now
    live_left: FloatArray  # (n,) in how many seconds they end
    live_count: IntArray  # (n,) how many they are
    pieces: Pieces | None = None  # in which room is free; None = one is as good as the other

    @classmethod
    def of(
        cls,
        columns: Columns,
        seconds: ArrayLike,
        most: ArrayLike = ANY,
        live: tuple[ArrayLike, ArrayLike, ArrayLike] = ((), (), ()),
    ) -> BusyRuns:
        """live: as `live_run`, `live_left` and `live_count`."""
        shape = columns.wants.shape
        return cls(
            columns,
            np.broadcast_to(np.asarray(seconds, dtype=np.float64), shape),
            np.broadcast_to(np.asarray(most, dtype=np.int64), shape),
            np.asarray(live[0], dtype=np.int64),
            np.asarray(live[1], dtype=np.float64),
            np.asarray(live[2], dtype=np.int64),
        )


@dataclass(frozen=True, slots=True)
class RoomInTime:
    """What there is of each limit, now and later."""

    capacity: IntArray  # (limits,) now, what is in use among it
    comes_in: FloatArray  # (n,) seconds until more comes
    comes: IntArray  # (n, limits) how much
    starts_per_s: float = math.inf  # tasks that may be started in a second

    @classmethod
    def of(
        cls, capacity: ArrayLike, comes_in: ArrayLike = (), comes: ArrayLike = (), starts_per_s: float = math.inf
    ) -> RoomInTime:
        """Where nothing comes, `comes_in` and `comes` are empty."""
        now = np.asarray(capacity, dtype=np.int64)
        more = np.asarray(comes, dtype=np.int64).reshape(-1, len(now))
        return cls(now, np.asarray(comes_in, dtype=np.float64), more, starts_per_s)


@dataclass(frozen=True, slots=True)
class StartCourse:
    """How it goes until a task of the run starts."""

    starts_in_s: float | None  # None: not before `HORIZON_S`, or never
    ahead: IntArray  # (runs,) tasks of each other run that start before
    ended: int  # tasks that end before


def course(runs: BusyRuns, sharers: Sharers, room: RoomInTime, row: int, horizon_s: float = HORIZON_S) -> StartCourse:
    """Until the first task of the run in this row starts that waits now. Changes nothing.

    sharers: what they use is not looked at: it follows from `runs`. The first step lasts `STEP_S`. What happens between
    two steps counts at the nearer one. A task lasts a whole number of steps, and takes as much less of its place as
    that is too long: so a place serves as many tasks in an hour as it really does.
    """
    going = _Going(runs, sharers, room, row)
    now_s = 0.0
    while now_s <= horizon_s:
        step_s = max(STEP_S, now_s * STEP_GROWS)
        given = going.step(now_s, step_s)
        if given[row]:
            return StartCourse(now_s, going.started, going.ended)
        if not given.any() and not going.changes_after(now_s + step_s / 2):
            break
        now_s += step_s
    return StartCourse(None, going.started, going.ended)


def ends_in_s(runs: BusyRuns, sharers: Sharers, room: RoomInTime, row: int, horizon_s: float) -> float | None:
    """In how many seconds the last task of the run in this row ends, by the same course; None: it has not started by
    the horizon, or never ends."""
    going, now_s, last_s = _Going(runs, sharers, room, row), 0.0, 0.0
    if not math.isfinite(runs.seconds[row]):
        return None
    while going.waits and now_s <= horizon_s:
        step_s = max(STEP_S, now_s * STEP_GROWS)
        given = going.step(now_s, step_s)
        if given[row]:
            last_s = now_s + float(runs.seconds[row])
        elif not given.any() and not going.changes_after(now_s + step_s / 2):
            return None
        now_s += step_s
    live = runs.live_left[runs.live_run == row]
    return None if going.waits else max(last_s, float(live.max(initial=0.0)))


class _Going:
    """What runs and what waits, while time passes."""

    def __init__(self, runs: BusyRuns, sharers: Sharers, room: RoomInTime, row: int) -> None:
        columns = runs.columns
        # Runs behind it in its own queue do not come first.
        behind = (columns.sharer == columns.sharer[row]) & (np.arange(len(columns.wants)) > row)
        self._row, self._runs, self._sharers = row, runs, sharers
        self._ending = np.isfinite(runs.seconds)
        most = np.maximum(room.capacity + room.comes.sum(axis=0), 1)
        units = np.clip(MOST // most, 1, FINEST)  # so that parts of what a task takes are whole numbers
        self._takes = np.minimum(columns.takes, MOST) * units
        self._capacity, self._comes, self._room = room.capacity * units, room.comes * units, room
        self._left = np.where(behind, 0, columns.wants)
        self._live = np.zeros(len(self._left), dtype=np.int64)
        self._used = np.zeros((len(sharers.weight), len(room.capacity)), dtype=np.int64)
        # Of the tasks that run, some in each row: whose they are, when they end, how many, which part of a place each
        # of them takes.
        self._who = np.zeros(0, dtype=np.int64)
        self._ends = np.zeros(0, dtype=np.float64)
        self._count = np.zeros(0, dtype=np.int64)
        self._part = np.zeros(0, dtype=np.float64)
        self._holes = Holes(runs.pieces) if runs.pieces else None
        self._larger = False  # whether pieces became larger in the last step
        self._came = np.zeros(len(room.comes_in), dtype=np.bool_)
        self.started = np.zeros(len(self._left), dtype=np.int64)
        self.ended = 0
        self._run(runs.live_run, runs.live_left, runs.live_count, np.ones(len(runs.live_run)))

    def step(self, now_s: float, step_s: float) -> IntArray:
        """(runs,) how many tasks of each start at that time."""
        self._end(now_s + step_s / 2)
        self._come(now_s + step_s / 2)
        lasts, part = self._lasting(step_s)
        case = self._waiting(part, step_s)
        given = fill(*case).counts
        self._note(given, case)
        self._larger = self._holes.take(given, part) if self._holes else False
        rows = np.flatnonzero(given)
        self._left = self._left - given
        self._run(rows, now_s + lasts[rows], given[rows], part[rows])
        return given

    @property
    def waits(self) -> bool:
        """Whether any task of the run has not started."""
        return bool(self._left[self._row])

    def changes_after(self, until_s: float) -> bool:
        """Whether anything ends or comes after that time."""
        ends = np.isfinite(self._ends) & (self._ends > until_s)
        return bool(ends.any() or not self._came.all() or self._larger)

    def _lasting(self, step_s: float) -> tuple[FloatArray, FloatArray]:
        """(runs,) for how many seconds a task takes its place, a whole number of steps, and which part of it."""
        seconds = np.where(self._ending, np.maximum(self._runs.seconds, LEAST_S), step_s)
        lasts = np.ceil(seconds / step_s) * step_s
        return np.where(self._ending, lasts, np.inf), seconds / lasts

    def _waiting(self, part: FloatArray, step_s: float) -> tuple[Columns, Sharers, Limits]:
        """What may start in a step, of what is there now. The last limit is of starts; those before it, of pieces."""
        capacity = self._capacity + self._comes[self._came].sum(axis=0)
        free = capacity - self._used.sum(axis=0)
        may_start = self._room.starts_per_s * step_s
        starts = MOST if may_start >= MOST else max(1, int(may_start))
        most = np.maximum(self._runs.most - self._live, 0) / np.maximum(part, 1e-9)
        wants = np.minimum(self._left, np.minimum(most, MOST).astype(np.int64))
        ones = np.ones((len(wants), 1), dtype=np.int64)
        takes, large = [_parts_of(self._takes, part), ones], np.zeros(0, dtype=np.int64)
        if self._holes:
            takes.insert(1, self._holes.takes(part))
            large = self._holes.free
        none = np.zeros((len(self._used), len(large) + 1), dtype=np.int64)
        return (
            Columns.of(self._runs.columns.sharer, wants, np.concatenate(takes, axis=1)),
            replace(self._sharers, used=np.concatenate([self._used, none], axis=1)),
            Limits.of([*capacity, *[MOST] * len(large), starts], [*free, *large, starts]),
        )

    def _note(self, given: IntArray, case: tuple[Columns, Sharers, Limits]) -> None:
        """Who starts before the run's first task does."""
        if given[self._row]:
            order = turns(*case, given)
            given = np.bincount(order[: int((order == self._row).argmax())], minlength=len(given))
        self.started += given

    def _run(self, who: IntArray, ends: FloatArray, count: IntArray, part: FloatArray) -> None:
        self._who, self._ends = np.append(self._who, who), np.append(self._ends, ends)
        self._count, self._part = np.append(self._count, count), np.append(self._part, part)
        self._take(who, count, part)

    def _come(self, until_s: float) -> None:
        new = (self._room.comes_in <= until_s) & ~self._came
        self._came |= new
        if self._holes and new.any():
            self._holes.come(new)

    def _end(self, until_s: float) -> None:
        over = self._ends <= until_s
        if not over.any():
            return
        self._take(self._who[over], -self._count[over], self._part[over])
        self.ended += int(self._count[over].sum())
        if self._holes:
            self._holes.end(self._who[over], self._count[over], self._part[over])
        self._who, self._ends = self._who[~over], self._ends[~over]
        self._count, self._part = self._count[~over], self._part[~over]

    def _take(self, who: IntArray, count: IntArray, part: FloatArray) -> None:
        np.add.at(self._live, who, count)
        sharer = self._runs.columns.sharer[who]
        np.add.at(self._used, sharer, count[:, None] * _parts_of(self._takes[who], part))


def _parts_of(takes: IntArray, part: FloatArray) -> IntArray:
    """(n, limits) what a task takes that holds a part of its place: to the nearest unit, and at least one."""
    found: IntArray = np.maximum(np.rint(takes * part[:, None]).astype(np.int64), takes > 0)
    return found
