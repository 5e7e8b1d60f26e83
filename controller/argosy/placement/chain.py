"""Placement of a batch's equal tasks by a chain of steps: in closed form where that is exact, else one at a time.

If keys depend on one instance only, a placement on one instance never changes another's key. Therefore:

- keys that never rise: fill in key order;
- keys that stay constant, before a spread or a draw: their distinct values are classes, taken in order, each with the
  rest of the chain;
- spread over instances: a water level; the tie for the last round is a placement of one task each by the rest of the
  chain;
- spread over an attribute: a water level over its values, and inside each the rest of the chain; in the last round each
  value puts its next instance forward, and the best of those by the rest of the chain win;
- keys that may rise: the instances' sequences of keys, merged;
- a spread or a draw after a key that drops with every task: one instance at a time, to the brim;
- anything else (a spread over two attributes), and small batches that draw (`draws`): one task at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from argosy.placement import kernels
from argosy.placement.arrays import BoolArray, IntArray, sums
from argosy.placement.candidates import RowCandidates
from argosy.placement.demand import Batch
from argosy.placement.draws import TaskDraws
from argosy.placement.fitness import Mix
from argosy.placement.keys import Key, Trend
from argosy.placement.pass_state import PassState
from argosy.placement.strategy import Random, SpreadInstances, SpreadValues, Step
from argosy.placement.supply import Supply

_BLOCKS = 32  # blocks of tasks looked at per instance where keys never fall
_SLOTS = 1 << 20  # keys worked out at once where keys may rise: 8 MiB


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """n tasks of a batch, to be placed on some of its rows."""

    at: IntArray
    """(a,) int64: positions in the turn's `rows`."""
    room: IntArray
    """(a,) int64."""
    counts: IntArray
    """(f,) int64: tasks of this batch that were put on the turn's rows so far."""
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class BatchTurn:
    """The turn of one batch: its tasks may go to `rows`, which all have room. (f,) below is their number."""

    state: PassState
    batch: Batch
    mix: Mix
    rows: IntArray
    """(f,) int64, ascending."""
    room: IntArray
    """(f,) int64."""
    random: np.random.Generator | TaskDraws | None
    """For the steps that draw."""

    def only(self, kept: BoolArray) -> BatchTurn:
        """The same turn on fewer rows; `kept` (f,) bool."""
        return self if kept.all() else replace(self, rows=self.rows[kept], room=self.room[kept])

    def place(self, steps: Sequence[Step], n: int) -> IntArray:
        """(f,) int64: how many of n tasks each row gets; fewer than n in all when the rows are full."""
        if not len(self.rows):
            return np.zeros(0, dtype=np.int64)
        room = np.minimum(self.room, n)
        none_yet = np.zeros(len(self.rows), np.int64)
        part = _Part(np.arange(len(self.rows)), room, none_yet, min(n, int(room.sum())))
        if isinstance(self.random, TaskDraws):
            return self._one_at_a_time(tuple(steps), part, to_the_brim=False)
        return self._follow(tuple(steps), part)

    def first_choice(self, keys: Sequence[Key]) -> IntArray:
        """(1,) int64: the row for a single task by a chain of keys: each in turn keeps the best of the rows."""
        rows = self.rows
        for key in keys:
            values = key.of(RowCandidates(self.state, self.batch, rows, None, self.mix))
            if values.shape == rows.shape:  # else it is one value for all
                rows = rows[values == values.min()]
        return rows[:1]

    def _follow(self, steps: tuple[Step, ...], part: _Part) -> IntArray:
        """(a,) int64: tasks of the part for each of its positions."""
        if part.n == 0:
            return np.zeros(len(part.at), dtype=np.int64)
        if part.n == int(part.room.sum()):
            return part.room
        first = next((i for i, step in enumerate(steps) if not isinstance(step, Key)), len(steps))
        prefix = steps[:first]
        trends = {step.trend_for(self.batch) for step in prefix if isinstance(step, Key)}
        if first == len(steps):
            return self._by_keys(prefix, trends, part)
        if trends - {Trend.STILL}:
            to_the_brim = Trend.DROPS in trends and not trends & {Trend.ANY, Trend.RISES}
            return self._one_at_a_time(steps, part, to_the_brim=to_the_brim)
        if prefix:
            return self._by_classes(prefix, steps[first:], part)
        return self._by_first(steps, part)

    def _by_first(self, steps: tuple[Step, ...], part: _Part) -> IntArray:
        """`_follow` for a chain that begins with a draw or a spread."""
        step, rest = steps[0], steps[1:]
        if isinstance(step, Random):
            return kernels.draw(part.room, part.n, self._chance())
        if isinstance(step, SpreadInstances):
            return self._over_instances(rest, part)
        if isinstance(step, SpreadValues) and not any(isinstance(later, SpreadValues) for later in rest):
            return self._over_values(step, rest, part)
        return self._one_at_a_time(steps, part, to_the_brim=False)

    def _by_keys(self, keys: tuple[Step, ...], trends: set[Trend], part: _Part) -> IntArray:
        at, room, counts, n = part.at, part.room, part.counts, part.n
        if n == 1 or not trends & {Trend.ANY, Trend.RISES}:
            return kernels.fill_in_order(self.key(keys, at, counts), room, n)
        taken = np.zeros(len(at), dtype=np.int64)
        if n < len(at) and room.all():  # the first task of any other row comes after those of the n best ones
            best = np.sort(self.key(keys, at, counts).argsort(kind="stable")[:n])
            taken[best] = self._by_keys(keys, trends, replace(part, at=at[best], room=room[best]))
            return taken
        risers = [key for key in keys if isinstance(key, Key) and key.trend_for(self.batch) is not Trend.STILL]
        rises = len(risers) == 1 and risers[0].trend is Trend.RISES
        width = 4 + 2 * n // len(at)
        while n:
            open_ = np.flatnonzero(room > taken)
            left, now = (room - taken)[open_], counts[at[open_]] + taken[open_]
            stride = int(min(left.max() // _BLOCKS, n // (2 * len(open_)))) if rises else 1
            got = np.zeros(1, np.int64)
            if stride > 1:
                ends = np.minimum(np.arange(1, _BLOCKS + 1) * stride, left[:, None])
                last_keys = self._slots(keys, at[open_], now, ends)
                got = kernels.take_blocks(last_keys, np.diff(ends, axis=1, prepend=0), left, n)
            if not got.any():
                width = int(min(left.max(), n, max(1, _SLOTS // len(open_)), width))
                slots = self._slots(keys, at[open_], now, np.arange(1, width + 1))
                got, _ = kernels.take_slots(slots, left, ~self._bending(keys, at[open_]), n)
                width *= 4
            taken[open_] += got
            n -= int(got.sum())
        return taken

    def _slots(self, keys: tuple[Step, ...], at: IntArray, now: IntArray, nth: IntArray) -> IntArray:
        """(a, s) int64: the key each position has for the nth task from now, `nth` (s,) or (a, s) from 1."""
        already = now[:, None] + (nth - 1)
        return self.key(keys, np.repeat(at, already.shape[1]), None, already.ravel()).reshape(already.shape)

    def _bending(self, keys: tuple[Step, ...], at: IntArray) -> BoolArray:
        """(a,) bool: the positions on which some key of the chain may rise."""
        seen = RowCandidates(self.state, self.batch, self.rows[at], None, self.mix)
        bends = np.zeros(len(at), dtype=np.bool_)
        for key in keys:
            if isinstance(key, Key) and key.trend_for(self.batch) in (Trend.ANY, Trend.RISES):
                bends |= True if key.bends is None else key.bends(seen)
        return bends

    def _by_classes(self, prefix: tuple[Step, ...], rest: tuple[Step, ...], part: _Part) -> IntArray:
        classes = self.key(prefix, part.at, part.counts)
        taken = np.zeros(len(part.at), dtype=np.int64)
        counts, n = part.counts.copy(), part.n
        for value in np.unique(classes):
            here = np.flatnonzero(classes == value)
            at, room = part.at[here], part.room[here]
            share = min(n, int(room.sum()))
            taken[here] = self._follow(rest, _Part(at, room, counts, share))
            counts[at] += taken[here]
            n -= share
            if not n:
                break
        return taken

    def _over_instances(self, rest: tuple[Step, ...], part: _Part) -> IntArray:
        at = part.at
        taken, tied, left = kernels.water_level(self._existing(at) + part.counts[at], part.room, part.n)
        if left:
            after = part.counts.copy()
            after[at] += taken
            taken[tied] += self._follow(rest, _Part(at[tied], np.ones(len(tied), np.int64), after, left))
        return taken

    def _over_values(self, step: SpreadValues, rest: tuple[Step, ...], part: _Part) -> IntArray:
        values = self.state.supply.attribute(step.attribute)
        at, room = part.at, part.room
        code = values.codes[self.rows[at]]
        rooms = sums(code, room, len(values.values) + 1)
        present = np.flatnonzero(rooms)
        existing = self._existing_values(step, part.counts)[present]
        shares, tied, left = kernels.water_level(existing, rooms[present], part.n)
        taken = np.zeros(len(at), dtype=np.int64)
        after = part.counts.copy()
        for value, share in zip(present.tolist(), shares.tolist(), strict=True):
            here = np.flatnonzero(code == value)
            taken[here] = self._follow(rest, _Part(at[here], np.minimum(room[here], share), after, share))
        after[at] += taken
        if left:
            open_ = np.flatnonzero((room > taken) & np.isin(code, present[tied]))
            one_each = _Part(at[open_], np.ones(len(open_), np.int64), after, left)
            taken[open_] += self._best_of_each(rest, one_each, code[open_])
        return taken

    def _best_of_each(self, rest: tuple[Step, ...], part: _Part, code: IntArray) -> IntArray:
        """One task each to the n best of the instances that every value of an attribute puts forward.

        code: (a,) int64, the value at each position.
        """
        order = self._order(rest, part.at, part.counts)
        _, heads = np.unique(code[order], return_index=True)
        taken = np.zeros(len(part.at), dtype=np.int64)
        taken[order[np.sort(heads)[: part.n]]] = 1
        return taken

    def _order(self, rest: tuple[Step, ...], at: IntArray, counts: IntArray) -> IntArray:
        """Positions of `at` from best to worst for one task; ties by row, or by chance where the chain says so."""
        columns: list[IntArray] = []
        for step in rest:
            if isinstance(step, Random):
                columns.append(self._chance().permutation(len(at)))
            elif isinstance(step, SpreadInstances):
                columns.append(self._existing(at) + counts[at])
            elif isinstance(step, Key):
                columns.append(self.key((step,), at, counts))
        return kernels.combine(columns).argsort(kind="stable") if columns else np.arange(len(at))

    def _one_at_a_time(self, steps: tuple[Step, ...], part: _Part, *, to_the_brim: bool) -> IntArray:
        """The definition itself: each step in turn keeps the best of the candidates.

        to_the_brim: a key before the first spread or draw drops with every task, so that the chosen one stays the best
        until it is full.
        """
        at, room, n = part.at, part.room, part.n
        taken = np.zeros(len(at), dtype=np.int64)
        now = part.counts.copy()
        while n:
            number = part.n - n
            kept = np.flatnonzero(room > taken)
            for step in steps:
                if len(kept) > 1:
                    kept = self._best(step, at, kept, now, number)
            chosen = kept[0]
            got = min(n, int(room[chosen] - taken[chosen])) if to_the_brim else 1
            taken[chosen] += got
            now[at[chosen]] += got
            n -= got
        return taken

    def _best(self, step: Step, at: IntArray, kept: IntArray, counts: IntArray, number: int) -> IntArray:
        """number: of the task, from 0."""
        if isinstance(step, Random):
            if isinstance(self.random, TaskDraws):
                return kept[[self.random.pick(number, len(kept))]]
            return kept[self._chance().integers(len(kept), size=1)]
        if isinstance(step, SpreadInstances):
            key = self._existing(at[kept]) + counts[at[kept]]
        elif isinstance(step, SpreadValues):
            codes = self.state.supply.attribute(step.attribute).codes
            key = self._existing_values(step, counts)[codes[self.rows[at[kept]]]]
        else:
            key = self.key((step,), at[kept], counts)
        best: IntArray = kept[key == key.min()]
        return best

    def _chance(self) -> np.random.Generator:
        if not isinstance(self.random, np.random.Generator):
            raise ValueError("a chain with a random step needs a random generator")
        return self.random

    def _existing(self, at: IntArray) -> IntArray:
        """(a,) int64: tasks of the group on each position before this turn."""
        return self.state.of_group(self.batch.group)[self.rows[at]]

    def _existing_values(self, step: SpreadValues, counts: IntArray) -> IntArray:
        """(v + 1,) int64: tasks of the group for each value of the attribute, on all instances, `counts` included."""
        values = self.state.supply.attribute(step.attribute)
        all_counts = self.state.of_group(self.batch.group).copy()
        all_counts[self.rows] += counts
        return sums(values.codes, all_counts, len(values.values) + 1)

    def key(
        self, keys: Sequence[Step], at: IntArray, counts: IntArray | None, already: IntArray | None = None
    ) -> IntArray:
        """(a,) int64: the keys of a chain at some positions, as one number comparable within this call."""
        if already is None and counts is not None:
            already = counts[at] if counts.any() else None
        if not keys:
            return np.zeros(len(at), dtype=np.int64)
        rows = self.rows.take(at)
        seen = RowCandidates(self.state, self.batch, rows, already, self.mix)
        named = [key for key in keys if isinstance(key, Key)]
        kept = tuple(takewhile(lambda key: key.by_size, named))
        columns = [kept_key(kept, self.batch, self.state.supply, self.mix).take(rows).astype(np.int64)] if kept else []
        columns += [key.of(seen) for key in named[len(kept) :]]
        return kernels.combine([c if c.shape == at.shape else np.broadcast_to(c, at.shape) for c in columns])


def leading_keys(steps: Sequence[Step]) -> Iterator[Key]:
    """The steps before the first one that is not a key."""
    for step in steps:
        if not isinstance(step, Key):
            return
        yield step


def kept_key(keys: tuple[Key, ...], batch: Batch, supply: Supply, mix: Mix) -> NDArray[np.int16]:
    """(m,): keys by size as one number, for every row of the supply."""

    def made(whole: Supply) -> IntArray:
        seen = RowCandidates(PassState(whole), batch, np.arange(len(whole)), None, mix)
        return kernels.combine([key.of(seen) for key in keys])

    return supply.kept_key((tuple(key.name for key in keys), batch.need), made)
