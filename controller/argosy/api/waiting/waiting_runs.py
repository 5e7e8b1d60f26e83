"""The runs that share a part of the cluster with a run that waits.

The part is made of the instances that could take a task of that run if they were empty. A run that could use other
instances as well counts with all of its waiting tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.cover import alike, hypothetical, tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.limits import QuotaKey, quota_of, vcpus_of
from argosy.market.offers import offers_of
from argosy.model.moment import Moment
from argosy.model.pools import Offer
from argosy.model.runs import Run
from argosy.placement.demand import Batch
from argosy.placement.explain import ever_fits
from argosy.placement.supply import Supply
from argosy.scheduler.buying.budget import is_about_money
from argosy.scheduler.supply.roster import PlacementRows, Roster
from argosy.scheduler.turns.asks import batch_of, shunned_by
from argosy.scheduler.turns.caps import vcpus_left
from argosy.scheduler.turns.fair_order import FairOrder, latest_starts
from argosy.sharing.columns import BoolArray, Columns, IntArray, Limits, Sharers


@dataclass(frozen=True, slots=True)
class Purchasable:
    """The offers for a run."""

    offer: Offer | None  # the cheapest for a task of it; None = no offer could take it now
    is_open: bool  # whether an instance of any offer may be bought now
    full: tuple[QuotaKey, ...] = ()  # the quotas of the offers that could take it, where none of them has room

    @classmethod
    def of(cls, moment: Moment, batch: Batch) -> Purchasable:
        """By the limits of the deployment alone."""
        state = moment.state
        offers = offers_of(state.pools.values(), moment.catalogue, moment.now, moment.policy, daemons=daemons_of(state))
        fits = tasks_per_instance(replace(batch, count=1), offers).tolist()
        prices = [(each.effective / tasks, each) for each, tasks in zip(offers, fits, strict=True) if tasks]
        able = [each for _, each in sorted(prices, key=lambda one: one[0])]
        left = vcpus_left(moment)
        has_room = any(vcpus_of(each) <= left.get(quota_of(each), math.inf) for each in able)
        quotas = () if has_room else tuple(dict.fromkeys(quota_of(each) for each in able))
        return cls(able[0] if able else None, has_room and moment.instances_left() > 0, quotas)


@dataclass(frozen=True, slots=True)
class WaitingRuns:
    """The runs, with their use and demand there. Rows are those of `order.runs`; limits are cpu units, MiB, GPUs."""

    order: FairOrder
    columns: Columns  # wants: the tasks that may start and could use that part of the cluster
    used: IntArray  # (sharers, 3) what the running tasks take there
    capacity: IntArray  # (3,) of the instances that may be given work now
    row: int  # of the run that waits
    has_instance: bool  # whether an instance that is here or ordered could take one of its tasks

    @property
    def sharers(self) -> Sharers:
        """The queues and owners, with what they use there."""
        return Sharers.of(self.order.weight, self.used, self.order.parts, self.order.factor)

    def limits(self, more: IntArray | int = 0) -> Limits:
        """The resources of that part of the cluster, with `more` added."""
        capacity = self.capacity + more
        return Limits.of(capacity, capacity - self.used.sum(axis=0))


def waiting_runs(moment: Moment, run: Run, batch: Batch, bought: Offer | None, everywhere: bool = False) -> WaitingRuns:
    """batch: one task of the run. bought: the purchase for it. everywhere: use the whole cluster, as if the
    run's tasks fitted on every instance."""
    return _Cluster(moment, Roster().at(moment), bought, everywhere).beside(run, batch)


class _Cluster:
    """The instances at one time, and the tasks that they could take."""

    def __init__(self, moment: Moment, lineup: PlacementRows, bought: Offer | None, everywhere: bool) -> None:
        self._moment, self._lineup, self._everywhere = moment, lineup, everywhere
        self._bought = Supply.of([hypothetical(bought, 0)] if bought else [])
        self._shunned = shunned_by(moment.state)
        self._fits: dict[Batch, tuple[BoolArray, bool]] = {}

    def beside(self, run: Run, batch: Batch) -> WaitingRuns:
        state, supply, ready = self._moment.state, self._lineup.supply, self._lineup.ready
        part, _ = self._where(batch)
        live = self._live(part)
        those = [each for each in state.runs.values() if not each.is_daemon]
        those = [each for each in those if each is run or each.number in live or _may_start(each)]
        order = FairOrder.of(state, those, latest_starts(self._moment, those))
        sharer, takes = [order.row[each.id] for each in order.runs], [each.needs.cpu_memory_gpus for each in order.runs]
        columns = Columns.of(sharer, [self._wants(each, part) for each in order.runs], takes)
        used = np.zeros((len(order.sharers), 3), dtype=np.int64)
        counts = np.array([live.get(each.number, 0) for each in order.runs], dtype=np.int64)
        np.add.at(used, columns.sharer, counts[:, None] * columns.takes)
        free = supply.free[:, :ready][:, part[:ready]].sum(axis=1)
        row = next(row for row, each in enumerate(order.runs) if each is run)
        return WaitingRuns(order, columns, used, free + used.sum(axis=0), row, bool(part.any()))

    def _where(self, batch: Batch) -> tuple[BoolArray, bool]:
        """The instances that could take it if they were empty, and whether purchased ones could."""
        if self._everywhere:
            return np.ones(len(self._lineup.supply), dtype=np.bool_), True
        key = alike(batch)
        if key not in self._fits:
            bought = bool(ever_fits(key, self._bought).any()) if len(self._bought) else False
            self._fits[key] = ever_fits(key, self._lineup.supply), bought
        return self._fits[key]

    def _wants(self, run: Run, part: BoolArray) -> int:
        """The tasks of a run that may start soon and could use that part of the cluster."""
        moment = self._moment
        if not _may_start(run):
            return 0
        soon = moment.now + moment.policy.linger_s
        fits, bought = self._where(replace(batch_of(moment, run, soon, self._shunned), count=1))
        return run.tasks.startable_count(soon) if bought or (fits & part).any() else 0

    def _live(self, part: BoolArray) -> dict[int, int]:
        """By Run.number, how many tasks run on instances of that part that may be given work."""
        table, here = self._moment.state.attempts, self._lineup.here
        rows = table.placed()
        positions = table.positions(here.ids)[table.instance_number[rows]]
        rows, positions = rows[positions >= 0], positions[positions >= 0]
        numbers, counts = np.unique(table["run"][rows[part[positions]]], return_counts=True)
        return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def _may_start(run: Run) -> bool:
    """Whether it takes a place that comes free."""
    return run.ready and not is_about_money(run.waiting)
