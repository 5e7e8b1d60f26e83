"""Purchases for thousands of distinct tasks: solve the fluid LP, fill true instances, correct it, and repeat.

The LP's purchases are made as long as true tasks fill them well. Otherwise the LP gets the usable share of such an
instance and is solved again for the remaining tasks. So a backlog moves from small instances that happen to be filled
exactly to larger ones that are always filled well. Instances for the remaining tasks are bought one by one.

An instance is filled from `RemainingTasks`: tasks by value, highest first, and the last two by a search over pairs. Of
very many tasks it takes an even sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from argosy.market.allocation.effort import TimeLimit
from argosy.market.allocation.fluid import Fluid, FluidPlanner
from argosy.market.allocation.problem import Lot, Plan
from argosy.placement.arrays import BoolArray, FloatArray, IntArray

_DIVES = 12
_LAST_DIVES = 3  # the number of last dives, which round the LP's purchases up
_LACK = (0.02, 0.03)  # share of its worth that a filling may lack at first: for a whole backlog, for a part of one
_MORE_LACK = 0.004  # added to it in every dive
_LAST_LACK = 0.07
_TRIES = 6  # after this many fillings that lack more, the size is left alone
_LEARNED = ((0.98, 0.99), (0.6, 0.985))  # lower and upper limits of the usable share, for each of the two cases
_FEW = 0.02  # of the worth of all tasks: a smaller rest is bought for one instance at a time
_LOOKED_AT = 10  # sizes that are filled to choose an instance
_ALIKE = 0.97  # share of the best worth per USD that is good enough to buy more of the same
_CHEAPER = 1 - 1e-9
_LEAST_VALUE = 1e-9  # USD per hour: every task is worth something
_SEEN = 3_000  # tasks considered at once
_PAIRED = 110  # tasks among which every pair is tried
_BALANCED = 24  # of this many most valuable tasks, the one that leaves cpu and memory most even is taken
_BELONGS = 0.985  # a task is worth at least this share of the price of its room on the size
_NEAR_THE_END = 4.2  # mean tasks: if the room is worth less, pairs are tried


class InstanceTasks(NamedTuple):
    """The tasks of one instance."""

    shape: IntArray
    times: IntArray  # how many of each shape
    worth: float  # USD per hour


class RemainingTasks:
    """Tasks to be placed: `rest` (s,) of shapes with `need` (s, 3) and `value` (s,) each. The caller changes `rest`."""

    def __init__(self, need: IntArray, value: FloatArray, rest: IntArray) -> None:
        self.need, self.value, self.rest = need, value, rest
        self._ranked: IntArray = np.argsort(-value, kind="stable").astype(np.int64)
        self._refill()

    @property
    def is_empty(self) -> bool:
        return not len(self._shape)

    @property
    def first(self) -> int:
        """The most valuable shape."""
        return int(self._shape[0])

    def put_aside(self) -> None:
        """Leave out the most valuable shape from now on."""
        self._ranked = self._ranked[self._ranked != self._shape[0]]
        self._keep(np.arange(len(self._shape)) > 0)
        if not len(self._shape):
            self._refill()

    def filling(self, capacity: IntArray, price: FloatArray, begin: float = 0.0) -> InstanceTasks:
        """For an instance of `capacity` (3,); empty if no task fits.

        price: (3,) USD per hour of a cpu unit, a MiB and a GPU there: tasks worth much less than the price of their
        room go elsewhere. begin: the share of the tasks, by value, after which the first one is taken.
        """
        room = capacity.astype(np.float64)
        seen = self._fits(self._need, room).nonzero()[0]
        good = self._worth[seen] >= _BELONGS * (price @ self._need[:, seen])
        if good.any():
            seen = seen[good]
        taken = self._chosen(seen[int(begin * len(seen)) :], room, capacity, price)
        taken += self._filled_up(room, taken)
        at = np.sort(np.array(taken, dtype=np.int64))
        first = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]])) if len(at) else at
        shape, count = self._shape[at[first]], np.diff(np.append(first, len(at)))
        return InstanceTasks(shape, count, float(self.value[shape] @ count))

    def taken(self, tasks: int) -> None:
        """Update after that many tasks were taken out of `rest`."""
        self._gone += tasks
        self._left = self.rest[self._shape]
        if self._gone * 6 > len(self._shape) or not self._left.any():
            self._refill()
        else:
            self._keep(self._left > 0)

    def _refill(self) -> None:
        self._ranked = self._ranked[self.rest[self._ranked] > 0]
        step = -(-len(self._ranked) // _SEEN) or 1
        self._shape = self._ranked[:: max(1, step)]
        self._gone = 0
        self._need = np.ascontiguousarray(self.need[self._shape].T.astype(np.float64))
        self._worth, self._left = self.value[self._shape], self.rest[self._shape]
        self._gpus = bool(self._need[2].any())

    def _keep(self, kept: BoolArray) -> None:
        if not kept.all():
            self._shape, self._worth, self._left = self._shape[kept], self._worth[kept], self._left[kept]
            self._need = self._need[:, kept]

    def _fits(self, need: FloatArray, room: FloatArray) -> BoolArray:
        found: BoolArray = (need[0] <= room[0]) & (need[1] <= room[1])
        return found & (need[2] <= room[2]) if self._gpus else found

    def _chosen(self, seen: IntArray, room: FloatArray, capacity: IntArray, price: FloatArray) -> list[int]:
        """Positions of the tasks, taken from `room` in place."""
        taken: list[int] = []
        need, worth, left = self._need[:, seen], self._worth[seen], self._left[seen].copy()
        while True:
            kept = self._fits(need, room) & (left > 0)
            if not kept.all():
                seen, need, worth, left = seen[kept], need[:, kept], worth[kept], left[kept]
            if not len(seen):
                return taken
            space = float(price @ room)
            if space <= _NEAR_THE_END * float(worth.sum()) / len(worth) or space <= 2.2 * float(worth[0]):
                at = self._first_of_a_pair(need, worth, left, room)
            elif taken:
                first = need[:, :_BALANCED]
                rest = (room[:2, None] - first[:2]) / np.maximum(capacity[:2, None], 1)
                at = int(np.abs(rest[0] - rest[1]).argmin())
            else:
                at = 0
            taken.append(int(seen[at]))
            room -= need[:, at]
            left[at] -= 1

    def _first_of_a_pair(self, need: FloatArray, worth: FloatArray, left: IntArray, room: FloatArray) -> int:
        """The more valuable task of the best pair that fits, or the best single one."""
        n = len(worth)
        some = np.arange(n) if n <= _PAIRED else np.linspace(0, n - 1, _PAIRED).astype(np.int64)
        one = need[:, some]
        rest = room[:, None] - one
        fits = (one[0][None, :] <= rest[0][:, None]) & (one[1][None, :] <= rest[1][:, None])
        if self._gpus:
            fits &= one[2][None, :] <= rest[2][:, None]
        np.fill_diagonal(fits, left[some] > 1)
        both = np.where(fits, worth[some][:, None] + worth[some][None, :], 0.0)
        i, j = divmod(int(both.argmax()), len(some))
        best, pair = float(both[i, j]), (int(some[i]), int(some[j]))
        if best <= worth[0]:
            return 0
        for at in set(pair):
            partners = self._fits(need, room - need[:, at])
            partners[at] &= left[at] > 1
            other = int(partners.argmax())
            if partners[other] and worth[at] + worth[other] > best:
                best, pair = float(worth[at] + worth[other]), (at, other)
        return min(pair)

    def _filled_up(self, room: FloatArray, taken: list[int]) -> list[int]:
        """Positions of tasks that still fit, independent of their worth there."""
        more: list[int] = []
        left = self._left.copy()
        np.subtract.at(left, taken, 1)
        while True:
            fits = self._fits(self._need, room) & (left > 0)
            at = int(fits.argmax()) if len(fits) else 0
            if not len(fits) or not fits[at]:
                return more
            more.append(at)
            room -= self._need[:, at]
            left[at] -= 1


class Diver:
    """Completes plans of one problem. Only the LP's columns are kept from one plan to the next."""

    def __init__(self, planner: FluidPlanner, time: TimeLimit) -> None:
        self.problem, self._planner, self._time = planner.problem, planner, time
        self._by_price = np.argsort(self.problem.offered.price, kind="stable")

    def complete(self, plan: Plan, after_dive: Callable[[Plan, int], None] | None = None) -> bool:
        """Buy for all tasks without a place in `plan`; False when time is up before that is done.

        after_dive: receives the incomplete plan after each dive.
        """
        usable, whole, kept = np.ones(len(self.problem.sizes)), 0.0, len(plan.lots)
        is_part = kept > 0
        least, most = _LEARNED[is_part]
        for number in range(_DIVES):
            if self._time.passed():
                return False
            if not plan.rest.any():
                break
            fluid = self._planner.plan(plan.rest, plan.depth, usable)
            left = float(plan.rest @ fluid.task_value)
            whole = whole or left
            if left <= _FEW * whole:
                break
            for size, share in self._dive(plan, fluid, number, is_part).items():
                usable[size] *= min(most, max(least, share))
            if after_dive and not self._time.passed():
                after_dive(plan, number)
        if not self._by_the_instance(plan, usable):
            return False
        fit_smaller(plan, kept)
        return True

    def _dive(self, plan: Plan, fluid: Fluid, number: int, is_part: bool) -> dict[int, float]:
        """Buy the LP's instances, the cheapest first, as long as they are filled well.

        Returns the share of worth that was reached on sizes that were not filled well.
        """
        stock = RemainingTasks(self.problem.backlog.need, fluid.task_value, plan.rest)
        rounding = _Rounding(plan, stock, fluid)
        last = number >= _DIVES - _LAST_DIVES
        wanted = (np.ceil(fluid.bought - 1e-6) if last else np.floor(fluid.bought + 1e-6)).astype(np.int64)
        least = 1 - (_LAST_LACK if last else _LACK[is_part] + _MORE_LACK * number)
        lacking: dict[int, float] = {}
        for pool in self._by_price[wanted[self._by_price] > 0].tolist():
            if stock.is_empty or self._time.passed():
                break
            share = rounding.buy(pool, int(wanted[pool]), least)
            if share < 1:
                size = int(self.problem.size_of_pool[pool])
                lacking[size] = min(lacking.get(size, 1.0), share)
        return lacking

    def _by_the_instance(self, plan: Plan, usable: FloatArray) -> bool:
        """Buy the instance with the most worth per USD, repeatedly, until every task has a place or nothing can be
        bought."""
        if not plan.rest.any():
            return True
        fluid = self._planner.plan(plan.rest, plan.depth, usable)
        stock = RemainingTasks(self.problem.backlog.need, np.maximum(fluid.task_value, _LEAST_VALUE), plan.rest)
        rounding = _Rounding(plan, stock, fluid)
        while not stock.is_empty:
            if self._time.passed():
                return False
            pool, ratio = rounding.best_pool(self._by_price)
            if pool < 0:
                stock.put_aside()
            else:
                rounding.buy_more_of(pool, ratio * _ALIKE)
        return True


@dataclass(frozen=True, slots=True)
class _Rounding:
    """The LP's fractional purchases on their way to whole instances: the plan so far, the tasks left, and the LP."""

    plan: Plan
    stock: RemainingTasks
    fluid: Fluid

    def buy(self, pool: int, wanted: int, least: float) -> float:
        """Buy up to `wanted` instances; the mean share that was filled if that was often below `least`, or 1."""
        worth, failed = max(float(self.fluid.worth[self.plan.problem.size_of_pool[pool]]), _LEAST_VALUE), 0.0
        failures = 0
        while wanted > 0 and failures < _TRIES:
            filling = self._filling(pool, failures / _TRIES)
            if not len(filling.shape):
                return 1.0
            if filling.worth >= least * worth:
                wanted -= self._take(pool, filling, wanted)
            else:
                failures, failed = failures + 1, failed + filling.worth / worth
        return failed / _TRIES if failures == _TRIES else 1.0

    def _filling(self, pool: int, begin: float = 0.0) -> InstanceTasks:
        size = int(self.plan.problem.size_of_pool[pool])
        return self.stock.filling(self.plan.problem.sizes[size], self.fluid.axis_price[size], begin)

    def best_pool(self, by_price: IntArray) -> tuple[int, float]:
        """The pool, among those that hold the most valuable task, and its worth per USD; -1 if there is none. by_price:
        all pools, the cheapest first."""
        problem, plan, stock = self.plan.problem, self.plan, self.stock
        price, size_of = problem.offered.price, problem.size_of_pool
        holds = (problem.offered.capacity >= problem.backlog.need[stock.first]).all(axis=1)
        pools = by_price[((plan.depth > 0) & holds)[by_price]]
        pools = pools[np.unique(size_of[pools], return_index=True)[1]]  # the cheapest of each size
        promise = np.minimum(self.fluid.worth[size_of[pools]], float(plan.rest @ stock.value)) / price[pools]
        best, most = -1, -1.0
        for pool in pools[np.argsort(-promise, kind="stable")[:_LOOKED_AT]].tolist():
            worth = self._filling(pool).worth
            if worth / price[pool] > most:
                best, most = pool, worth / float(price[pool])
        return best, most

    def buy_more_of(self, pool: int, least: float) -> None:
        """Buy from the pool as long as its tasks are worth at least that much per USD."""
        price = float(self.plan.problem.offered.price[pool])
        while self.plan.depth[pool] > 0 and not self.stock.is_empty:
            filling = self._filling(pool)
            if not len(filling.shape) or filling.worth < least * price:
                return
            self._take(pool, filling, int(self.plan.depth[pool]))

    def _take(self, pool: int, filling: InstanceTasks, most: int) -> int:
        """Buy up to `most` instances with the same tasks; returns how many."""
        shape, count, _ = filling
        times = min(most, int((self.plan.rest[shape] // count).min()))
        self.plan.add(Lot(pool, shape, count, times))
        self.stock.taken(int(count.sum()))
        return times


def fit_smaller(plan: Plan, first: int = 0) -> None:
    """Move lots from number `first` on that leave room to the cheapest instances that hold them, expensive lots
    first."""
    offered, backlog = plan.problem.offered, plan.problem.backlog
    for number in sorted(range(first, len(plan.lots)), key=lambda n: -offered.price[plan.lots[n].pool]):
        lot = plan.lots[number]
        better = (plan.depth >= lot.times) & (offered.price < offered.price[lot.pool] * _CHEAPER)
        better &= (offered.capacity >= lot.count @ backlog.need[lot.shape]).all(axis=1)
        if better.any():
            plan.move(number, int(np.flatnonzero(better)[np.argmin(offered.price[better])]))
