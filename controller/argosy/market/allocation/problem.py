"""Offers, tasks, and plans: whole instances with the tasks on them.

Arrays are checked once. Offers of equal size are grouped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from argosy.market.allocation.ways import Ways, ways_of
from argosy.placement.arrays import MAX_AMOUNT, MAX_TASKS, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PoolTable:
    """Pools: row p is `depth[p]` instances of `capacity[p]` (cpu units, MiB, GPUs) at `price[p]` USD per hour each.

    kind: (p,) int64, a number per instance type, by which a maximum share counts. most_tasks: (p,) int64, the maximum
    of tasks on one instance, whatever they need; None = as many as fit. gpu_mib: (p,) int64, the memory of one GPU for
    tasks that share it; None = no GPU is shared.
    """

    capacity: IntArray
    price: FloatArray
    depth: IntArray
    kind: IntArray
    most_tasks: IntArray | None = None
    gpu_mib: IntArray | None = None

    @classmethod
    def of(
        cls,
        capacity: Sequence[Sequence[int]],
        price: Sequence[float],
        depth: Sequence[int],
        kind: Sequence[int],
        most_tasks: Sequence[int] | None = None,
    ) -> PoolTable:
        """ValueError for a price that is not positive, a negative amount, or one too large for int64 sums."""
        sizes = np.array(capacity, dtype=np.int64).reshape(-1, 3)
        prices, depths = np.array(price, dtype=np.float64), np.array(depth, dtype=np.int64)
        _refuse_beyond(sizes, MAX_AMOUNT, "capacity")
        _refuse_beyond(depths, MAX_TASKS, "depth")
        if not (np.isfinite(prices) & (prices > 0)).all():
            raise ValueError("a price must be a positive number of USD per hour")
        mosts = None if most_tasks is None else np.array(most_tasks, dtype=np.int64)
        if mosts is not None:
            _refuse_beyond(mosts, MAX_TASKS, "most of tasks")
        return cls(sizes, prices, depths, np.array(kind, dtype=np.int64), mosts)


@dataclass(frozen=True, slots=True, eq=False)
class TaskShapes:
    """Shapes: row s is `count[s]` tasks that need `need[s]` (cpu units, MiB, GPUs) each.

    shares: (s, 2) int64, MiB of one GPU, 0 = it shares none, and the number of the owner: shares of different numbers
    are on different instances. None = no shape shares a GPU.
    """

    need: IntArray
    count: IntArray
    shares: IntArray | None = None

    @classmethod
    def of(cls, need: Sequence[Sequence[int]], count: Sequence[int]) -> TaskShapes:
        """ValueError for a shape that needs nothing, a negative number, or one too large for int64 sums."""
        needs, counts = np.array(need, dtype=np.int64).reshape(-1, 3), np.array(count, dtype=np.int64)
        _refuse_beyond(needs, MAX_AMOUNT, "need")
        _refuse_beyond(counts, MAX_TASKS, "count")
        if not (needs > 0).any(axis=1).all():
            raise ValueError("a shape must ask for something")
        return cls(needs, counts)


def _refuse_beyond(amounts: IntArray, most: int, name: str) -> None:
    if amounts.size and (int(amounts.min()) < 0 or int(amounts.max()) > most):
        raise ValueError(f"a {name} must be between 0 and {most}")


@dataclass(frozen=True, eq=False)
class Problem:
    """One allocation. Sizes are the distinct capacities among the offers, with the most tasks on each where that can
    bind: patterns belong to sizes, not to pools."""

    offered: PoolTable
    backlog: TaskShapes
    max_share: float | None = None
    """Largest share of the bought cpu that one kind may have, 0 < share <= 1; None = any."""

    @cached_property
    def pool_most_tasks(self) -> IntArray | None:
        """(p,) int64: the maximum of tasks on an instance; None if resources always run out before a maximum is
        reached."""
        mosts = self.offered.most_tasks
        if mosts is None:
            return None
        need, reach = self.backlog.need[self.backlog.count > 0], np.full(len(mosts), self.backlog.count.sum())
        for axis in range(3):
            if least := int(need[:, axis].min(initial=MAX_AMOUNT)):
                reach = np.minimum(reach, self.offered.capacity[:, axis] // least)
        return np.minimum(mosts, reach) if (mosts < reach).any() else None

    @cached_property
    def _grouped(self) -> tuple[IntArray, IntArray]:
        offered, none = self.offered, np.zeros(len(self.offered.price), dtype=np.int64)
        columns = [offered.capacity] + ([] if self.pool_most_tasks is None else [self.pool_most_tasks])
        if self.shares is not None:
            columns += [none if offered.gpu_mib is None else offered.gpu_mib]
        distinct, of_pool = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
        return distinct, of_pool.reshape(-1).astype(np.int64)

    @property
    def sizes(self) -> IntArray:
        """(k, 3) int64, the capacities."""
        return self._grouped[0][:, :3]

    @property
    def most_tasks(self) -> IntArray | None:
        """(k,) int64: how many tasks run on an instance of each size at most; None as in `pool_most_tasks`."""
        return None if self.pool_most_tasks is None else self._grouped[0][:, 3]

    @property
    def size_of_pool(self) -> IntArray:
        """(p,) int64."""
        return self._grouped[1]

    @property
    def shares(self) -> IntArray | None:
        """(s, 2) as in `TaskShapes`; None if no task shares a GPU."""
        found = self.backlog.shares
        return None if found is None or not found[:, 0].any() else found

    @property
    def gpu_mib(self) -> IntArray:
        """(k,) int64, of one GPU, where tasks share some."""
        return self._grouped[0][:, -1]

    @cached_property
    def ways(self) -> Ways:
        """In which tasks use the GPUs of the sizes, where tasks share some."""
        shares = np.zeros((len(self.backlog.need), 2), dtype=np.int64) if self.shares is None else self.shares
        return ways_of(self.sizes[:, 2], self.gpu_mib, self.backlog.need[:, 2], shares)

    def holds(self, patterns: IntArray) -> BoolArray:
        """(n, k) whether an empty instance of each size takes all tasks of each of `patterns` (n, s)."""
        needed = patterns @ self.backlog.need
        axes = 3 if self.shares is None else 2
        found: BoolArray = np.asarray((self.sizes[None, :, :axes] >= needed[:, None, :axes]).all(axis=2))
        if self.shares is not None:
            found &= self.ways.any_of(patterns @ self.ways.units.T <= self.ways.gpus)
        if self.most_tasks is not None:
            found &= self.most_tasks >= patterns.sum(axis=1)[:, None]
        return found

    @cached_property
    def room(self) -> IntArray:
        """(k, s) int64: how many tasks of one shape alone an empty instance takes, at most all of them."""
        room = np.minimum(rooms(self.sizes, self.backlog.need), self.backlog.count)
        if self.shares is not None:
            room = np.minimum(room, self.ways.room)
        return room if self.most_tasks is None else np.minimum(room, self.most_tasks[:, None])

    @cached_property
    def unplaceable(self) -> BoolArray:
        """(s,) bool: shapes with tasks that fit into no pool."""
        some = np.zeros(len(self.sizes), dtype=np.int64)
        np.maximum.at(some, self.size_of_pool, self.offered.depth)
        return (self.backlog.count > 0) & ~((self.room > 0) & (some > 0)[:, None]).any(axis=0)

    def cheapest(self, price: FloatArray) -> FloatArray:
        """(k,) the lowest `price` (p,) among the pools of a size that have an instance; infinite if none has."""
        lowest = np.full(len(self.sizes), np.inf)
        some = self.offered.depth > 0
        np.minimum.at(lowest, self.size_of_pool[some], price[some])
        return lowest


def rooms(free: IntArray, need: IntArray) -> IntArray:
    """(k, s): how often each need (s, 3) fits into each free capacity (k, 3); no need is zero on every axis."""
    most = np.full((len(free), len(need)), MAX_TASKS, dtype=np.int64)
    for axis in range(3):
        asked = need[:, axis] > 0
        most[:, asked] = np.minimum(most[:, asked], free[:, axis, None] // need[None, asked, axis])
    return most


@dataclass(frozen=True, slots=True, eq=False)
class Lot:
    """`times` instances of `pool`, each with `count[n]` tasks of `shape[n]`."""

    pool: int
    shape: IntArray
    count: IntArray
    times: int


@dataclass(slots=True, eq=False)
class Plan:
    """Lots, `rest` (s,) tasks without a place, and `depth` (p,) instances that are still on offer."""

    problem: Problem
    rest: IntArray
    depth: IntArray
    lots: list[Lot] = field(default_factory=list)

    @classmethod
    def empty(cls, problem: Problem) -> Plan:
        return cls(problem, problem.backlog.count.copy(), problem.offered.depth.copy())

    def add(self, lot: Lot) -> None:
        self.lots.append(lot)
        self.depth[lot.pool] -= lot.times
        self.rest[lot.shape] -= lot.count * lot.times

    def without(self, numbers: Iterable[int]) -> Plan:
        """A copy without the lots of these numbers: their tasks are to be placed again."""
        gone = set(numbers)
        plan = Plan(self.problem, self.rest.copy(), self.depth.copy())
        for number, lot in enumerate(self.lots):
            if number in gone:
                plan.rest[lot.shape] += lot.count * lot.times
                plan.depth[lot.pool] += lot.times
            else:
                plan.lots.append(lot)
        return plan

    def move(self, number: int, pool: int) -> None:
        """Buy a lot from another pool."""
        lot = self.lots[number]
        self.depth[lot.pool] += lot.times
        self.depth[pool] -= lot.times
        self.lots[number] = Lot(pool, lot.shape, lot.count, lot.times)

    def usd_per_hour(self) -> float:
        return float(self.problem.offered.price @ (self.problem.offered.depth - self.depth))

    def cost(self) -> tuple[int, float]:
        """Tasks without a place, then USD per hour: the lower, the better."""
        return int(self.rest.sum()), self.usd_per_hour()


@dataclass(slots=True, eq=False)
class BestPlan:
    """The best plan so far, and a lower bound for the tasks that it places."""

    plan: Plan
    method: str = "greedy"  # or "patterns", "dives"
    _bound: float = 0.0
    _bound_of_all: float = 0.0  # of a plan for the whole backlog

    @property
    def bound(self) -> float:
        return self._bound if self.plan.rest.any() else max(self._bound, self._bound_of_all)

    def offer(self, plan: Plan, method: str) -> None:
        """Take a plan that is better."""
        if plan.cost() < self.plan.cost():
            if not np.array_equal(plan.rest, self.plan.rest):
                self._bound = 0.0
            self.plan, self.method = plan, method

    def raise_bound(self, bound: float) -> None:
        self._bound = max(self._bound, bound)

    def raise_bound_of_all(self, bound: float) -> None:
        self._bound_of_all = max(self._bound_of_all, bound)

    def is_near(self, share: float) -> bool:
        """Whether the plan costs at most that much more than the bound, as a share of it."""
        return self.plan.usd_per_hour() <= self.bound * (1 + share)
