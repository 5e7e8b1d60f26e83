"""Which offers cover the demand that active and ordered instances cannot take?

Buying is placing onto instances that do not exist yet (DESIGN D6). Each batch, in queue order, first uses the room left
on instances chosen earlier in this tick. Then it takes the offer that places the rest at the lowest price per task,
spread over the zones where that type costs about the same, so that one shortage does not affect all of it. A batch
whose strategy spreads its tasks over an attribute has its purchases spread over the values (`spreading`). Prices are
compared with their risk added (`Offer.effective`); limits of money count the price paid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from argosy.market.cover import (
    MONEY,
    RUN_LIMIT,
    Spread,
    alike,
    cover,
    cover_evenly,
    hypothetical,
    less,
    tasks_per_instance,
)
from argosy.market.joint_order import JointOrder, joint_order
from argosy.market.limits import ROUNDING, BatchLimits, BuyRoom, Choice, Headroom, OrderLimits, QuotaKey, quota_of
from argosy.model.instances import Purchase
from argosy.model.pools import Offer, Patterns
from argosy.placement.arrays import IntArray
from argosy.placement.demand import Batch
from argosy.placement.fitness import Fitness
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply

_SETTLING = 4  # how often an order is compared with the result of the next tick
NO_FITNESS: Mapping[str, Fitness] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Backlog:
    """The tasks of one batch that found no place, and the limits of its purchases."""

    batch: Batch
    limits: BatchLimits
    spread: Spread | None = None  # the attribute over whose values its tasks go first
    purses: tuple[str, ...] = ()  # the purses of the order that limit its purchases
    shut: frozenset[QuotaKey] = frozenset()  # quotas that it leaves to other runs

    def is_free(self, room: int) -> bool:
        """Whether only the deployment limits it, which allows `room` more instances."""
        return not (self.purses or self.shut) and self.limits.free(room)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The tasks of one batch that found no offer, and the limit that held them back."""

    tasks: int
    reason: str = ""  # "" = no limit: they wait for another reason


@dataclass(slots=True)
class Order:
    """The instances to add."""

    instances: Counter[tuple[str, Purchase]] = field(default_factory=Counter)  # per (pool, purchase)
    shortfalls: list[Shortfall] = field(default_factory=list)  # one per batch
    usd_per_hour: float = 0.0  # of `instances`, with risk added
    lower_bound_usd_per_hour: float | None = None  # lower bound of covering the batches; None = not known
    method: str = "run by run"  # or "patterns", "greedy"
    patterns: Patterns = ()  # of the allocator, for the next order
    kept: Counter[tuple[str, Purchase]] = field(default_factory=Counter)  # owed instances that a floor waits for
    beside: set[str] = field(default_factory=set)  # ids of present instances that it completes gangs with
    why_small: str = ""  # why the cluster stays below the requested size
    why_no_headroom: str = ""  # why some of the room for further tasks is missing

    @property
    def uncovered(self) -> int:
        """How many tasks found no offer."""
        return sum(shortfall.tasks for shortfall in self.shortfalls)

    @property
    def gap(self) -> float | None:
        """The cost above the lower bound, as a share of it; None if the bound is unknown or covers more tasks
        than the order."""
        low = self.lower_bound_usd_per_hour
        return max(0.0, self.usd_per_hour / low - 1) if low and not self.uncovered else None


def buy(
    backlogs: Sequence[Backlog],
    offers: Sequence[Offer],
    limits: OrderLimits,
    fitness: Mapping[str, Fitness] = NO_FITNESS,
    patterns: Patterns = (),
) -> Order:
    """Cover the backlogs, in queue order, with offers.

    A batch that requires on-demand says so in its constraints. fitness: users' own functions, which affect placement on
    bought instances and not purchases. patterns: of an earlier order, to begin with.
    """
    ask = _OrderInput(backlogs, offers, limits, fitness)
    alone = ask.settled([])
    joint = ask.joint_order(patterns)
    if joint.bought:
        # The allocator fills by patterns, but tasks are placed first come, first served: that result counts.
        together = ask.settled(joint.bought)
        if ask.is_better(together, alone):
            alone = replace(together, method=joint.method)
    return replace(
        alone,
        usd_per_hour=ask.price(alone),
        lower_bound_usd_per_hour=ask.lower_bound(joint),
        patterns=joint.patterns or patterns,
    )


@dataclass(frozen=True, slots=True)
class _OrderInput:
    """The input of one order."""

    backlogs: Sequence[Backlog]
    offers: Sequence[Offer]
    limits: OrderLimits
    fitness: Mapping[str, Fitness]
    known: dict[Batch, IntArray] = field(default_factory=dict)

    def fits(self, batch: Batch) -> IntArray:
        """(offers,) tasks of the batch that fit on an empty instance of each; computed once for equal batches."""
        key = alike(batch)
        if key not in self.known:
            self.known[key] = tasks_per_instance(batch, self.offers)
        return self.known[key]

    def settled(self, first: Sequence[Offer]) -> Order:
        """An order that the next tick finds sufficient, so that one backlog is not bought for tick after tick.

        In the next tick the first batch finds the instances that were bought for the last one, and may fill them
        differently. first: one offer per instance that is bought in any case.
        """
        order = self._one_by_one(first, self.backlogs)
        room = self.limits.instances
        free = [
            each if each.is_free(room) else replace(each, limits=replace(each.limits, instances=0))
            for each in self.backlogs
        ]
        for _ in range(_SETTLING if len(self._asking) > 1 else 0):
            by_name = {(offer.pool, offer.purchase): offer for offer in self.offers}
            bought = [by_name[name] for name, count in sorted(order.instances.items()) for _ in range(count)]
            again = self._one_by_one(bought, free)
            again.shortfalls = [
                Shortfall(rest := min(one.tasks, other.tasks), one.reason if rest else "")
                for one, other in zip(order.shortfalls, again.shortfalls, strict=True)
            ]
            if again.instances == order.instances:
                break
            order = again
        return order

    def joint_order(self, patterns: Patterns) -> JointOrder:
        """The allocator's order for the batches whose own limits do not bind, in order of filling."""
        free = [each.batch for each in self._asking if each.is_free(self.limits.instances) and not each.spread]
        if self.limits.instances <= 0 or len({(batch.need, batch.gpu_share_mib) for batch in free}) < 2:
            return JointOrder()
        fits = np.array([self.fits(batch) for batch in free])
        fits = fits.reshape(len(free), len(self.offers))
        joint = joint_order(free, fits, self.offers, self.limits, patterns)
        bought = sorted(joint.bought, key=lambda offer: (offer.pool, offer.purchase))
        return replace(joint, bought=tuple(self._within(bought)), all_of_it=len(free) == len(self._asking))

    def is_better(self, order: Order, other: Order) -> bool:
        """Whether it leaves fewer tasks without an offer, or as many and is cheaper."""
        both = zip(order.shortfalls, other.shortfalls, strict=True)
        if self.limits.in_turn and any(one.tasks > before.tasks for one, before in both):
            return False
        here, there = order.uncovered, other.uncovered
        return here < there or (here == there and self.price(order) < self.price(other) * (1 - ROUNDING))

    def price(self, order: Order) -> float:
        """USD an hour, with risk added."""
        price = {(offer.pool, offer.purchase): offer.effective for offer in self.offers}
        return sum(price[bought] * count for bought, count in order.instances.items())

    def lower_bound(self, joint: JointOrder) -> float | None:
        """Lower bound of covering the batches: the allocator's bound, or, for one batch, in closed form."""
        if len(self._asking) == 1:
            batch = self._asking[0].batch
            fits = self.fits(batch)
            prices = [o.effective / tasks for o, tasks in zip(self.offers, fits.tolist(), strict=True) if tasks]
            whole = [o.effective for o, tasks in zip(self.offers, fits.tolist(), strict=True) if tasks]
            return max(batch.count * min(prices), min(whole)) if prices else None
        return joint.lower_bound_usd_per_hour if joint.all_of_it else None

    @property
    def _asking(self) -> list[Backlog]:
        return [each for each in self.backlogs if each.batch.count]

    def _within(self, wanted: Sequence[Offer]) -> list[Offer]:
        """As many of them as the deployment's limits allow."""
        headroom = Headroom(self.limits)
        choice = Choice.of(self.offers, sum(offer.resources.cpu_units for offer in wanted))
        kept = []
        for offer in wanted:
            if headroom.most(offer, choice) > 0:
                headroom.take(offer)
                kept.append(offer)
        return kept

    def _one_by_one(self, first: Sequence[Offer], backlogs: Sequence[Backlog]) -> Order:
        """Each batch in turn onto bought instances, beginning with `first`; the best offers for the rest."""
        order = Order()
        headroom, purses = Headroom(self.limits), dict(self.limits.purses)
        for offer in first:
            headroom.take(offer)
        bought = list(first)
        chosen = [hypothetical(offer, number) for number, offer in enumerate(first)]
        for backlog in backlogs:
            batch, reason = backlog.batch, ""
            rest = self._fill(backlog, batch, chosen, bought)
            if rest:
                left = replace(batch, count=rest)
                paying = {name: purses[name] for name in backlog.purses}
                bound = _paid(replace(backlog, batch=left), paying.values())
                picked, reason = self._covered(bound, chosen, headroom)
                for name, purse in paying.items():
                    reason = _named(reason, bound.limits, backlog.limits, purse)
                    purses[name] = purse.after(picked)
                chosen += [hypothetical(offer, number) for number, offer in enumerate(picked, len(chosen))]
                bought += picked
                if picked:
                    rest = self._fill(backlog, left, chosen, bought)
            order.shortfalls.append(Shortfall(rest, reason if rest else ""))
        order.instances.update((o.pool, o.purchase) for o, row in zip(bought, chosen, strict=True) if row.running_tasks)
        return order

    def _fill(self, backlog: Backlog, batch: Batch, chosen: list[InstanceRow], bought: Sequence[Offer]) -> int:
        """Place the batch on the chosen rows, one for each bought instance, and take its room there. Returns the
        number of tasks left over. Instances of quotas in `shut` are left to other runs."""
        may = [n for n, offer in enumerate(bought) if not backlog.shut or quota_of(offer) not in backlog.shut]
        if not may:
            return batch.count
        placed = place([batch], Supply.of([chosen[n] for n in may]), fitness=self.fitness)
        for row, count in zip(placed.row.tolist(), placed.count.tolist(), strict=True):
            chosen[may[row]] = less(chosen[may[row]], batch, count)
        return int(placed.unplaced[0])

    def _covered(self, backlog: Backlog, chosen: Sequence[InstanceRow], headroom: Headroom) -> tuple[list[Offer], str]:
        batch, fits = backlog.batch, self.fits(backlog.batch)
        if backlog.shut:
            fits = np.where([quota_of(offer) in backlog.shut for offer in self.offers], 0, fits)
        if backlog.spread is None:
            return cover(batch, backlog.limits, self.offers, fits, headroom)
        spread = backlog.spread.also_on(Supply.of(chosen), batch.group)
        return cover_evenly(spread, batch, backlog.limits, self.offers, fits, headroom)


def _paid(backlog: Backlog, purses: Iterable[BuyRoom]) -> Backlog:
    """The backlog within the limits of its purses."""
    limits = backlog.limits
    for purse in purses:
        usd = min(limits.usd_per_hour, max(0.0, purse.usd_per_hour))
        limits = replace(limits, instances=min(limits.instances, max(0, purse.instances)), usd_per_hour=usd)
    return replace(backlog, limits=limits)


def _named(reason: str, bound: BatchLimits, own: BatchLimits, purse: BuyRoom) -> str:
    """The reason why a batch is held back, if that was this purse. bound: the limits with those of its purses."""
    if reason == RUN_LIMIT and max(0, purse.instances) == bound.instances < own.instances:
        return purse.why_instances
    is_purse = max(0.0, purse.usd_per_hour) == bound.usd_per_hour < own.usd_per_hour
    return purse.why_usd if reason.startswith(MONEY) and is_purse else reason
