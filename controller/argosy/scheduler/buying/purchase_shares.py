"""How many tasks of each run may be bought for when capacity is scarce?

The shared limits are instances (that may be added now, and at all), dollars, and vCPUs of each quota in the settings. A
run that can use several quotas waits only when all of them are closed (`sharing.alternatives`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from argosy.market.cover import alike, tasks_per_instance
from argosy.market.limits import ROUNDING, OrderLimits, QuotaKey, quota_name, quota_of, vcpus_of
from argosy.market.order import Backlog
from argosy.model.moment import Moment
from argosy.model.pools import Offer
from argosy.placement.demand import Batch
from argosy.scheduler.buying.capped_demand import INSTANCES_COLUMN, USD_COLUMN, CappedDemand
from argosy.scheduler.placing.places import Places
from argosy.scheduler.turns.caps import INSTANCES, OF_A_VCPU, SCALE, USD, use_of_quotas
from argosy.scheduler.turns.fair_order import FairOrder, QueueCapColumns
from argosy.sharing.alternatives import NO_OTHER, LaterRounds, Way, WayCounts, dealt_by_ways
from argosy.sharing.columns import MOST, IntArray, Limits
from argosy.sharing.fill import TaskCounts

UNIT = SCALE[INSTANCES]  # of an instance
FIRST_QUOTA = 3  # columns before those of quotas: instances of now, instances, dollars


class CommonLimits(NamedTuple):
    """The limits of all purchases together."""

    room: int  # instances that may be added now
    left: int  # instances that may be added in total
    most: int  # the most instances at any time
    usd_left: float  # USD an hour left; infinite = no limit
    usd: float  # the most USD an hour
    quotas: tuple[QuotaKey, ...] = ()
    vcpus: tuple[tuple[int, int], ...] = ()  # of each quota, its size and what is left

    def units(self, usd_per_hour: float) -> int:
        """The part of the dollars that a task at that price takes."""
        return 0 if math.isinf(self.usd) else round(usd_per_hour * SCALE[USD])

    def limits(self) -> Limits:
        """Instances of now, instances, dollars, vCPUs of each quota."""
        dollars = [MOST if math.isinf(each) else round(each * SCALE[USD]) for each in (self.usd, self.usd_left)]
        instances = [MOST, max(1, self.most) * UNIT]  # instances of now start unused, so they raise no level
        whole, left = [max(1, each) * OF_A_VCPU for each, _ in self.vcpus], [each * OF_A_VCPU for _, each in self.vcpus]
        capacity = [*instances, max(1, dollars[0]), *whole]
        return Limits.of(capacity, [self.room * UNIT, self.left * UNIT, dollars[1], *left])


class QuotaOffer(NamedTuple):
    """The best offer for a batch among those of one quota."""

    quota: QuotaKey | None  # None: the quota is not known
    tasks: int  # on an instance
    usd_per_hour: float  # of one task
    vcpus: int  # of an instance
    fits: bool  # whether one more instance fits the quota


@dataclass(frozen=True, slots=True)
class Due:
    """The number of a run's waiting tasks that may be bought for."""

    tasks: int
    told: str = ""  # what holds the rest back
    by_quota: tuple[tuple[int, frozenset[QuotaKey]], ...] = ()  # tasks, and quotas where they yield to others

    def parts(self, wanted: int) -> tuple[tuple[int, frozenset[QuotaKey]], ...]:
        """One backlog for each part of `by_quota`."""
        return self.by_quota or ((min(self.tasks, wanted), frozenset()),)


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand for purchases in one tick."""

    backlog: Sequence[Backlog]  # by run of the places
    limits: OrderLimits
    capped: CappedDemand | None  # None: no queue has a cap or a guarantee


def due_instances(moment: Moment, places: Places, demand: Demand, offers: Sequence[Offer], told: str = "") -> list[Due]:
    """By run of `places`. told: the reason of runs that do not wait for a quota; "" = any limit. A run that fits
    only instances above a whole quota or all dollars closes no limit, because it would keep it closed forever."""
    assert places.share is not None
    limits, capped, wanted = demand.limits, demand.capped, [each.batch for each in demand.backlog]
    known: dict[Batch, tuple[QuotaOffer, ...]] = {}
    batches = {each.run.id: batch for each, batch in zip(places.runs, wanted, strict=True)}
    usd = moment.state.sharing.usd_per_hour * (1 + ROUNDING)
    ever = [each for each in offers if vcpus_of(each) <= limits.vcpus.get(quota_of(each), math.inf)]
    ever = [each for each in ever if each.price_usd_per_hour <= usd]
    offered = {run_id: _offered(batch, ever, limits.vcpus_left, known) for run_id, batch in batches.items()}
    ids = tuple(run.id for run in places.share.order.runs if offered.get(run.id))
    quotas = tuple(sorted({each.quota for its in offered.values() for each in its if each.quota is not None}))
    for_all = CommonLimits(
        max(0, limits.instances),
        max(0, moment.instances_left()),
        max(1, moment.policy.max_instances),
        limits.usd_per_hour,
        moment.state.sharing.usd_per_hour,
        quotas,
        tuple((limits.vcpus[key], max(0, limits.vcpus_left[key])) for key in quotas),
    )
    dealing = _PurchaseShares(moment, places.share.order, ids, offered, for_all)
    coming = {each.run.id: each.coming for each in places.runs}
    wants = np.array([batches[run_id].count for run_id in ids], dtype=np.int64)
    found = dealing.dealt(wants, coming, capped)
    due = dealing.due(found, limits, told)
    due |= {run_id: _never(batches[run_id], offers, limits) for run_id, its in offered.items() if not its}
    return [due.get(each.run.id, Due(batch.count)) for each, batch in zip(places.runs, wanted, strict=True)]


def _never(batch: Batch, offers: Sequence[Offer], limits: OrderLimits) -> Due:
    """For a batch that fits no instance within the whole limits: it waits for the quotas, if any instance could take
    it."""
    its = _offered(batch, offers, limits.vcpus_left, {})
    why = " and ".join(quota_name(each.quota, limits.vcpus) for each in its if each.quota is not None)
    return Due(0, why) if its else Due(batch.count)


def _offered(
    batch: Batch,
    offers: Sequence[Offer],
    vcpus_left: Mapping[QuotaKey, int],
    known: dict[Batch, tuple[QuotaOffer, ...]],
) -> tuple[QuotaOffer, ...]:
    """The cheapest offer per task for each quota, if possible one that still fits. Sorted by price; the list ends at
    the first offer without a known quota, which needs no alternative."""
    key = alike(batch)
    if key not in known:
        best: dict[QuotaKey | None, tuple[bool, float, QuotaOffer]] = {}
        for tasks, offer in zip(tasks_per_instance(key, offers).tolist(), offers, strict=True):
            if tasks:
                quota, vcpus = (quota_of(offer) if quota_of(offer) in vcpus_left else None), vcpus_of(offer)
                fits = quota is None or vcpus <= vcpus_left[quota]
                its = QuotaOffer(quota, tasks, offer.price_usd_per_hour / tasks, vcpus, fits)
                best[quota] = min(best.get(quota, (True, math.inf, its)), (not fits, offer.effective / tasks, its))
        ordered = [its for _, _, its in sorted(best.values(), key=lambda each: each[1])]
        last = next((number for number, its in enumerate(ordered) if its.quota is None), len(ordered))
        known[key] = tuple(ordered[: last + 1])
    return known[key]


@dataclass(frozen=True, slots=True)
class _PurchaseShares:
    """One distribution, among the runs that an offer could serve."""

    moment: Moment
    order: FairOrder
    ids: tuple[str, ...]
    offered: Mapping[str, tuple[QuotaOffer, ...]]
    for_all: CommonLimits
    column: Mapping[QuotaKey, int] = field(init=False)

    def __post_init__(self) -> None:
        columns = {key: FIRST_QUOTA + number for number, key in enumerate(self.for_all.quotas)}
        object.__setattr__(self, "column", columns)

    def dealt(self, wants: IntArray, coming: Mapping[str, int], capped: CappedDemand | None) -> WayCounts:
        ways = [[self._way(each) for each in self.offered[run_id]] for run_id in self.ids]
        limits, sharer = self.for_all.limits(), np.array([self.order.row[each] for each in self.ids], dtype=np.int64)
        used, within = self._used(ways, coming), None if capped is None else self._within(capped)
        queue = None if within is None else self.order.groups(within.queues)[sharer]

        def deal(turn: LaterRounds) -> TaskCounts:
            has = used.copy()
            np.add.at(has, sharer, turn.taken)
            left = np.maximum(0, limits.free - turn.taken.sum(axis=0))
            bound = None if within is None or queue is None else within.after(queue, turn.given)
            return self.order.dealt(self.ids, turn.wants, turn.takes, Limits.of(limits.capacity, left), has, bound)

        return dealt_by_ways(wants, ways, len(limits), deal)

    def due(self, found: WayCounts, limits: OrderLimits, told: str) -> dict[str, Due]:
        """The share of each run, by its id."""
        shut = frozenset(key for key, column in self.column.items() if found.closed[column])
        general = told or (limits.usd_limit if found.closed[USD_COLUMN] else limits.instances_limit)
        due = {}
        for number, run_id in enumerate(self.ids):
            counts, its = found.counts[number].tolist(), self.offered[run_id]
            names = [quota_name(each.quota, limits.vcpus) for each in its if each.quota is not None]
            why = " and ".join(names) if found.waits[number] else general
            parts = [(count, shut - {each.quota}) for count, each in zip(counts, its, strict=False)] if shut else []
            due[run_id] = Due(sum(counts), why, tuple(part for part in parts if part[0]))
        return due

    def _way(self, each: QuotaOffer) -> Way:
        """An instance that does not fit closes its quota, so that no smaller one of another run overtakes it."""
        of_one, takes = -(-UNIT // each.tasks), [0] * (FIRST_QUOTA + len(self.column))
        takes[0] = takes[INSTANCES_COLUMN] = of_one
        takes[USD_COLUMN] = self.for_all.units(each.usd_per_hour)
        if each.quota is None:
            return Way(NO_OTHER, tuple(takes))
        column = self.column[each.quota]
        takes[column] = -(-each.vcpus * OF_A_VCPU // each.tasks) if each.fits else MOST + 1
        return Way(column, tuple(takes))

    def _used(self, ways: Sequence[Sequence[Way]], coming: Mapping[str, int]) -> IntArray:
        """(sharers, limits) present use and incoming instances. Instances and dollars are counted as if the tasks
        ran on present offers; quotas by actual use."""
        order, of_quotas = self.order, use_of_quotas(self.moment, self.for_all.quotas)
        used = np.zeros((len(order.sharers), FIRST_QUOTA + len(self.column)), dtype=np.int64)
        for run_id, its in zip(self.ids, ways, strict=True):
            takes = np.array(its[0].takes, dtype=np.int64)
            quotas = np.where(takes > MOST, 0, takes)[FIRST_QUOTA:]
            here_or_coming = order.live.get(run_id, 0) + coming.get(run_id, 0)
            used[order.row[run_id], 1:FIRST_QUOTA] += here_or_coming * takes[1:FIRST_QUOTA]
            used[order.row[run_id], FIRST_QUOTA:] += coming.get(run_id, 0) * quotas
        for run in order.runs:
            if run.number in of_quotas:
                used[order.row[run.id], FIRST_QUOTA:] += of_quotas[run.number]
        return used

    def _within(self, capped: CappedDemand) -> QueueCapColumns:
        costs = np.array([capped.costs[run_id] for run_id in self.ids], dtype=np.int64).reshape(-1, 4)
        return capped.within()._replace(takes=costs)
