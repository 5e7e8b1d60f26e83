"""For how much of what waits may instances be bought within the caps of the queues, and what are the others told?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.buy import Backlog, Order, Shortfall
from argosy.market.cover import alike, tasks_per_instance
from argosy.market.limits import Purse
from argosy.model.pools import Offer
from argosy.model.resources import Resources
from argosy.placement.demand import Batch
from argosy.scheduler.caps import INSTANCES, SCALE, USD, at_cap, units_of
from argosy.scheduler.dealing import FairDealing, QueueCaps
from argosy.sharing.bounds import NO_CAP
from argosy.sharing.columns import MOST, IntArray, Limits

ANY = 1 << 31  # instances


@dataclass(frozen=True, slots=True)
class CappedDemand:
    """Of the runs that ask for places, in their order."""

    caps: QueueCaps
    queue: IntArray  # (runs,)
    wants: IntArray  # (runs,) tasks
    counts: IntArray  # (runs,) those that may be bought for
    why: tuple[str, ...]  # (runs,) what the others are told

    @classmethod
    def of(
        cls, dealing: FairDealing, wanted: Sequence[Batch], run_ids: Sequence[str], offers: Sequence[Offer]
    ) -> CappedDemand:
        """At the lowest price that anything has: what is bought is paid for whole (`purses`)."""
        assert dealing.caps is not None
        caps, order = dealing.caps, dealing.order
        known: dict[Batch, tuple[int, int, int, int]] = {}
        costs = np.array([_least(batch, offers, known) for batch in wanted], dtype=np.int64).reshape(-1, 4)
        needs = np.array([batch.need for batch in wanted], dtype=np.int64).reshape(-1, 3)
        wants = np.array([batch.count for batch in wanted], dtype=np.int64)
        limits = Limits.of(np.maximum(1, caps.lineup.supply.total.sum(axis=1)), [MOST] * 3)
        within = caps.within(np.zeros(len(caps.asks), dtype=np.int64))._replace(takes=costs)
        found = order.dealt(run_ids, wants, needs, limits, order.tasks, within)
        assert found.capped is not None
        queue = order.groups(caps.room.names)[[order.row[run_id] for run_id in run_ids]]
        why = tuple(
            caps.room.why(int(row), found.capped[row] & (cost > 0)) for row, cost in zip(queue, costs, strict=True)
        )
        return cls(caps, queue, wants, found.counts, why)

    def backlog(self, backlog: Sequence[Backlog]) -> list[Backlog]:
        """As much of it as may be bought for."""
        purses = self.purses()
        return [
            replace(each, batch=replace(each.batch, count=int(count)), purse=name if name in purses else "")
            for each, count, name in zip(backlog, self.counts, map(self._name, self.queue), strict=True)
        ]

    def purses(self) -> Mapping[str, Purse]:
        """By queue, what may be bought for it."""
        found = {}
        for number, (name, cap) in enumerate(zip(self.caps.room.names, self.caps.room.caps, strict=True)):
            if min(cap.usd_per_hour, cap.instances) < math.inf:
                left = self.caps.room.left[number]
                found[name] = Purse(
                    ANY if left[INSTANCES] >= NO_CAP else max(0, int(left[INSTANCES])) // SCALE[INSTANCES],
                    math.inf if left[USD] >= NO_CAP else max(0, int(left[USD])) / SCALE[USD],
                    at_cap(name, cap, INSTANCES),
                    at_cap(name, cap, USD),
                )
        return found

    def with_reasons(self, order: Order) -> Order:
        """The order, whose shortfalls count the tasks above the caps as well."""
        less = (self.wants - self.counts).tolist()
        order.shortfalls = [
            Shortfall(each.tasks + beyond, each.reason or (why if beyond else ""))
            for each, beyond, why in zip(order.shortfalls, less, self.why, strict=True)
        ]
        if any(less):
            order.lower_bound_usd_per_hour = None  # it speaks of what may be bought alone
        return order

    def _name(self, queue: int) -> str:
        return self.caps.room.names[queue]


def _least(
    batch: Batch, offers: Sequence[Offer], known: dict[Batch, tuple[int, int, int, int]]
) -> tuple[int, int, int, int]:
    """What a task takes at least of what could be bought for it."""
    key = alike(batch)
    if key not in known:
        needs, fits = Resources(*batch.need), tasks_per_instance(key, offers).tolist()
        each = [units_of(needs, o.whole, o.price_usd_per_hour) for o, tasks in zip(offers, fits, strict=True) if tasks]
        least = [min(unit) for unit in zip(*each, strict=True)] if each else [0, needs.cpu_units, needs.gpus, 0]
        known[key] = least[0], least[1], least[2], least[3]
    return known[key]
