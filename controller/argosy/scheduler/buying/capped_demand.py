"""The part of the demand that queue caps allow to be bought."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from argosy.market.cover import alike, tasks_per_instance
from argosy.market.limits import ROUNDING, BuyRoom, OrderLimits
from argosy.market.order import Backlog, Order, Shortfall
from argosy.model.pools import Offer
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.shares.sharing import Cap
from argosy.placement.demand import Batch
from argosy.scheduler.turns.caps import INSTANCES, SCALE, USD, at_cap, units_of
from argosy.scheduler.turns.fair_order import QueueCapColumns
from argosy.scheduler.turns.fair_share import FairShare, QueueCaps
from argosy.sharing.bounds import LENT, NO_CAP
from argosy.sharing.columns import MOST, IntArray, Limits

ANY = 1 << 31  # instances
INSTANCES_COLUMN, USD_COLUMN = 1, 2  # of the limits shared by all queues (`affordable`)
BUT = "all but {}"
KEPT = "the guarantee of queue {}, which is not lent"


@dataclass(frozen=True, slots=True)
class CappedDemand:
    """The runs that ask for places, in their order."""

    caps: QueueCaps
    queue: IntArray  # (runs,)
    wants: IntArray  # (runs,) tasks
    counts: IntArray  # (runs,) tasks that may be bought for
    why: tuple[str, ...]  # (runs,) the reason given to the other tasks
    costs: Mapping[str, IntArray] = field(default_factory=dict)  # by run id, the least that a task takes

    @classmethod
    def of(
        cls, dealing: FairShare, wanted: Sequence[Batch], runs: Sequence[Run], offers: Sequence[Offer]
    ) -> CappedDemand:
        """Counts tasks at the lowest price of any offer, whereas purchases count in full (`purses`). A run
        that fits no offer, and never will, counts nothing: it would close the cap to the others."""
        assert dealing.caps is not None
        caps, order = dealing.caps, dealing.order
        run_ids = [run.id for run in runs]
        known: dict[tuple[Batch, Cap], IntArray] = {}
        queue = order.groups(caps.room.names)[[order.row[run_id] for run_id in run_ids]]
        both = zip(wanted, queue.tolist(), strict=True)
        costs = np.array([_least(batch, offers, caps.room.caps[row], known) for batch, row in both], dtype=np.int64)
        costs = costs.reshape(-1, 4)
        needs = np.array([batch.need for batch in wanted], dtype=np.int64).reshape(-1, 3)
        wants = np.array([batch.count for batch in wanted], dtype=np.int64)
        limits = Limits.of(np.maximum(1, caps.lineup.supply.total.sum(axis=1)), [MOST] * 3)
        within = caps.within(np.zeros(len(caps.asks), dtype=np.int64))._replace(takes=costs).without_guarantees()
        never = np.array([bool(run.unaffordable_since) for run in runs], dtype=np.bool_) & (costs[:, INSTANCES] == 0)
        counted = np.where(never, 0, wants)
        found = order.dealt(run_ids, counted, needs, limits, order.tasks, within)
        assert found.capped is not None
        beyond = (found.capped[queue] & (costs > 0)) | (costs > caps.room.whole[queue])
        why = tuple(caps.room.why(int(row), units) for row, units in zip(queue, beyond, strict=True))
        return cls(caps, queue, wants, found.counts, why, dict(zip(run_ids, costs, strict=True)))

    def backlog(self, backlog: Sequence[Backlog], purses: Mapping[str, BuyRoom]) -> list[Backlog]:
        """The part of the backlog that may be bought for."""
        found = []
        for each, count, name in zip(backlog, self.counts.tolist(), map(self._name, self.queue), strict=True):
            but = BUT.format(name) if BUT.format(name) in purses else BUT.format("")
            its = tuple(purse for purse in (name, but) if purse in purses)
            found.append(replace(each, batch=replace(each.batch, count=count), purses=its))
        return found

    def within(self) -> QueueCapColumns:
        """The demand that may be bought for. Guarantees that are not lent are withheld from the shared instances and
        dollars."""
        room, nothing = self.caps.room, np.zeros(len(self.caps.asks), dtype=np.int64)
        limit = np.where(room.unit == USD, USD_COLUMN, INSTANCES_COLUMN)
        keeps = np.array([not each.lend for each in room.promised])
        return self.caps.within(nothing)._replace(kept_from=np.where(keeps, limit, LENT))

    @property
    def keeps_any(self) -> bool:
        """Whether a queue lacks part of a guarantee that it does not lend."""
        return bool(self.caps.room.kept(USD) or self.caps.room.kept(INSTANCES))

    def purses(self, limits: OrderLimits, left: int) -> Mapping[str, BuyRoom]:
        """The limits of each queue that has a cap; and, for each queue that withholds its unused guarantee, those of
        all other queues. left: instances that may be added at all."""
        usd, instances = self.caps.room.kept(USD), self.caps.room.kept(INSTANCES)
        found = dict(self._within_caps())
        for name in ("", *usd, *instances) if self.keeps_any else ():
            others = [each for each in {**usd, **instances} if each != name]
            kept_usd = sum(usd.get(each, 0) for each in others) / SCALE[USD]
            kept = -(-sum(instances.get(each, 0) for each in others) // SCALE[INSTANCES])
            told = KEPT.format(", ".join(sorted(others)))
            found[BUT.format(name)] = BuyRoom(max(0, left - kept), max(0.0, limits.usd_per_hour - kept_usd), told, told)
        return found

    def _within_caps(self) -> Mapping[str, BuyRoom]:
        found = {}
        for number, (name, cap) in enumerate(zip(self.caps.room.names, self.caps.room.caps, strict=True)):
            if min(cap.usd_per_hour, cap.instances) < math.inf:
                left = self.caps.room.left[number]
                found[name] = BuyRoom(
                    ANY if left[INSTANCES] >= NO_CAP else max(0, int(left[INSTANCES])) // SCALE[INSTANCES],
                    math.inf if left[USD] >= NO_CAP else max(0, int(left[USD])) / SCALE[USD],
                    at_cap(name, cap, INSTANCES),
                    at_cap(name, cap, USD),
                )
        return found

    def with_reasons(self, order: Order) -> Order:
        """The order, with tasks above the caps among its shortfalls."""
        less = (self.wants - self.counts).tolist()
        order.shortfalls = [
            Shortfall(each.tasks + beyond, each.reason or (why if beyond else ""))
            for each, beyond, why in zip(order.shortfalls, less, self.why, strict=True)
        ]
        if any(less):
            order.lower_bound_usd_per_hour = None  # the bound covers only the demand that may be bought for
        return order

    def _name(self, queue: int) -> str:
        return self.caps.room.names[queue]


def _least(batch: Batch, offers: Sequence[Offer], cap: Cap, known: dict[tuple[Batch, Cap], IntArray]) -> IntArray:
    """(4,) the least that a task takes of any instance on offer: of one that the whole cap pays for, or, if it pays for
    none, all of the instance."""
    key = alike(batch), cap
    if key not in known:
        needs, fits = Resources(*batch.need, batch.gpu_share_mib), tasks_per_instance(key[0], offers).tolist()
        able = [offer for offer, tasks in zip(offers, fits, strict=True) if tasks]
        paid = [o for o in able if cap.instances >= 1 and o.price_usd_per_hour <= cap.usd_per_hour * (1 + ROUNDING)]
        each = [units_of(needs if paid else o.whole, o.whole, o.price_usd_per_hour) for o in paid or able]
        least = np.array(each, dtype=np.int64).reshape(-1, 4).min(axis=0, initial=MOST)
        least = np.where(least < MOST, least, 0)
        known[key] = np.array([least[USD], needs.cpu_units, needs.gpus, least[INSTANCES]], dtype=np.int64)
    return known[key]
